use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use alto_core::matrix::Matrix;
use alto_core::model::{BlockWeights, Checkpoint, ModelConfig, ModelError, ModelWeights};
use alto_core::tensor_file::TensorFile;
use proptest::prelude::*;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::json;

use crate::{assert_error, copy_of, edit_json, scratch, testdata};

const MODEL: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

fn read(dir: &Path) -> Result<ModelWeights, ModelError> {
    ModelWeights::read(dir, &ModelConfig::read(dir)?)
}

fn oracle(model: &str) -> ModelWeights {
    read(&testdata("oracle").join(model)).unwrap()
}

/// Every number of the model.
fn numbers(weights: &ModelWeights) -> Vec<f32> {
    let mut all = weights.embedding.data().to_vec();
    for block in &weights.blocks {
        let BlockWeights { attention_norm, q, k, v, o, feed_forward_norm, gate, up, down } = block;
        all.extend(attention_norm.iter().chain(feed_forward_norm));
        all.extend([q, k, v, o, gate, up, down].into_iter().flat_map(Matrix::data));
    }
    all.extend(&weights.norm);
    all.extend(weights.head.iter().flat_map(Matrix::data));
    all
}

type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn write(path: &Path, tensors: &Tensors) {
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        (name, TensorView::new(*dtype, shape.clone(), bytes).expect("bytes for the shape"))
    });
    fs::write(path, safetensors::serialize(views, None::<HashMap<_, _>>).unwrap()).unwrap();
}

/// A copy of a model whose tensors were changed.
fn edited(model: &str, edit: impl FnOnce(&mut Tensors)) -> tempfile::TempDir {
    let copy = copy_of(&testdata("oracle").join(model));
    let path = copy.path().join(MODEL);
    let bytes = fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors =
        file.iter().map(|(name, t)| (name.to_owned(), (t.dtype(), t.shape().to_vec(), t.data().to_vec()))).collect();
    edit(&mut tensors);
    write(&path, &tensors);
    copy
}

#[test]
fn one_file_and_several_hold_the_same_model() {
    let whole = oracle("llama_untied");
    assert_eq!(oracle("llama_untied_sharded"), whole);
    assert_eq!(whole.blocks.len(), 2);
    assert_eq!((whole.blocks[1].k.rows(), whole.blocks[1].k.columns()), (32, 64));
    assert!(whole.head.is_some());
}

#[test]
fn bf16_is_f32_rounded() {
    let (rounded, whole) = (numbers(&oracle("llama_untied_bf16")), numbers(&oracle("llama_untied")));
    assert_eq!(rounded.len(), whole.len());
    // bf16 keeps eight bits: half a unit in the last place is 2^-9 of the number.
    let worst = rounded.iter().zip(&whole).map(|(r, w)| (r - w).abs() / w.abs().max(1e-30)).fold(0.0, f32::max);
    assert!(worst > 0.0 && worst <= 1.0 / 256.0, "{worst}");
}

#[test]
fn f16_is_converted_exactly() {
    let dir = scratch();
    let values = [1.0, -0.5, 65504.0, 6e-8, 0.0, -0.333_251_95f32];
    let bytes = values.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect();
    write(&dir.path().join(MODEL), &Tensors::from([("x".to_owned(), (Dtype::F16, vec![2, 3], bytes))]));
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    assert_eq!(checkpoint.shape("x"), Some(&[2, 3][..]));
    assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["x"]);
    let read = checkpoint.tensor("x", &[2, 3]).unwrap();
    assert_eq!(read, values.map(|x| half::f16::from_f32(x).to_f32()));
}

#[test]
fn tensors_longer_than_one_read_arrive_whole() {
    let dir = scratch();
    let values: Vec<f32> = (0..700_000).map(|i| i as f32).collect();
    for dtype in [Dtype::F32, Dtype::BF16] {
        let bytes = match dtype {
            Dtype::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            _ => values.iter().flat_map(|&x| half::bf16::from_f32(x).to_le_bytes()).collect(),
        };
        write(&dir.path().join(MODEL), &Tensors::from([("x".to_owned(), (dtype, vec![700_000], bytes))]));
        let read = Checkpoint::open(dir.path()).unwrap().tensor("x", &[700_000]).unwrap();
        let near = read.iter().zip(&values).all(|(r, v)| (r - v).abs() <= v / 256.0);
        assert!(near && (dtype != Dtype::F32 || read == values), "{dtype}");
    }
}

#[test]
fn a_tied_model_has_no_head_of_its_own() {
    assert_eq!(oracle("llama_tied").head, None);
    let with_head = edited("llama_tied", |tensors| {
        tensors.insert("lm_head.weight".to_owned(), (Dtype::F32, vec![1], vec![0; 4]));
    });
    assert_eq!(read(with_head.path()).unwrap(), oracle("llama_tied"));
    let quickstart = read(&testdata("quickstart/gsm-nano")).unwrap();
    assert_eq!((quickstart.blocks.len(), numbers(&quickstart).len()), (4, 869_504));
}

#[test]
fn an_untied_model_needs_its_head() {
    let headless = edited("llama_untied", |tensors| drop(tensors.remove("lm_head.weight")));
    assert_error(read(headless.path()), &[MODEL, "lm_head.weight", "tie_word_embeddings"]);
}

#[test]
fn missing_and_misshapen_tensors_are_named() {
    let name = "model.layers.1.self_attn.k_proj.weight";
    let missing = edited("llama_untied", |tensors| drop(tensors.remove(name)));
    assert_error(read(missing.path()), &[name, MODEL]);
    let turned = edited("llama_untied", |tensors| {
        if let Some((_, shape, _)) = tensors.get_mut(name) {
            shape.reverse();
        }
    });
    assert_error(read(turned.path()), &[name, MODEL, "[64, 32]", "[32, 64]"]);
    let deeper = copy_of(&testdata("oracle/llama_untied"));
    edit_json(&deeper.path().join("config.json"), |config| config["num_hidden_layers"] = json!(2_000_000_000));
    assert_error(read(deeper.path()), &["model.layers.2.input_layernorm.weight"]);
}

#[test]
fn unsupported_dtypes_are_named() {
    let name = "model.norm.weight";
    for (dtype, width) in [(Dtype::F64, 8), (Dtype::I64, 8), (Dtype::I32, 4), (Dtype::U8, 1), (Dtype::F8_E4M3, 1)] {
        let other = edited("llama_untied", |tensors| {
            tensors.insert(name.to_owned(), (dtype, vec![64], vec![0; 64 * width]));
        });
        assert_error(read(other.path()), &[name, MODEL, &dtype.to_string(), "BF16"]);
    }
}

#[test]
fn weights_that_are_not_finite_are_named() {
    let name = "model.layers.0.mlp.up_proj.weight";
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let broken = edited("llama_untied", |tensors| {
            if let Some((_, _, bytes)) = tensors.get_mut(name) {
                bytes[400..404].copy_from_slice(&bad.to_le_bytes());
            }
        });
        assert_error(read(broken.path()), &[name, MODEL, &bad.to_string(), "index 100"]);
    }
}

#[test]
fn a_directory_without_weights_is_named() {
    let empty = scratch();
    let dir = empty.path().display().to_string();
    assert_error(Checkpoint::open(empty.path()), &[&dir, MODEL, INDEX]);
    assert_error(Checkpoint::open(&empty.path().join("nowhere")), &["nowhere", MODEL]);
}

#[test]
fn an_index_must_agree_with_its_files() {
    let sharded = || copy_of(&testdata("oracle/llama_untied_sharded"));
    let shard = "model-00002-of-00003.safetensors";

    let dir = sharded();
    fs::remove_file(dir.path().join(shard)).unwrap();
    assert_error(Checkpoint::open(dir.path()), &[INDEX, shard, "no such file"]);

    let dir = sharded();
    edit_json(&dir.path().join(INDEX), |index| index["weight_map"]["model.norm.weight"] = json!(shard));
    assert_error(Checkpoint::open(dir.path()), &[INDEX, shard, "model.norm.weight", "doesn't have it"]);

    let dir = sharded();
    edit_json(&dir.path().join(INDEX), |index| {
        drop(index["weight_map"].as_object_mut().unwrap().remove("lm_head.weight"))
    });
    assert_error(read(dir.path()), &[INDEX, "lm_head.weight"]);

    for outside in ["../model.safetensors", "/etc/passwd", "", "..", "a/b"] {
        let dir = sharded();
        edit_json(&dir.path().join(INDEX), |index| index["weight_map"]["lm_head.weight"] = json!(outside));
        assert_error(Checkpoint::open(dir.path()), &[INDEX, "lm_head.weight", "plain name"]);
    }
    for text in ["", "[]", "{}", "{\"weight_map\": 3}", "{\"weight_map\": {\"a\": 3}}"] {
        let dir = sharded();
        fs::write(dir.path().join(INDEX), text).unwrap();
        assert_error(Checkpoint::open(dir.path()), &[INDEX, "not a valid JSON"]);
    }
}

#[test]
fn a_file_cut_anywhere_says_so() {
    let whole = fs::read(testdata("oracle/llama_untied").join(MODEL)).unwrap();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let dir = scratch();
    let path = dir.path().join(MODEL);
    for cut in [0, 1, 7, 8, 9, 500, header - 1, header, header + 1, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        assert_error(TensorFile::open(&path), &[MODEL, &format!("{cut}"), "cut off"]);
    }
    fs::write(&path, &whole[..header]).unwrap();
    assert_error(TensorFile::open(&path), &[&header.to_string(), &whole.len().to_string()]);
    fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
    assert_error(TensorFile::open(&path), &[&whole.len().to_string(), "damaged"]);
}

#[test]
fn a_header_is_not_believed() {
    let dir = scratch();
    let path = dir.path().join(MODEL);
    for length in [u64::MAX, u64::MAX / 2, 100_000_001, 17] {
        fs::write(&path, [&length.to_le_bytes()[..], &[b'{'; 16]].concat()).unwrap();
        assert_error(TensorFile::open(&path), &[MODEL, &length.to_string(), "24"]);
    }
    let huge = u64::MAX;
    for header in [
        "".to_owned(),
        "[]".to_owned(),
        "{\"x\": 1}".to_owned(),
        "[".repeat(100_000),
        r#"{"x": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}}"#.to_owned(),
        r#"{"x": {"dtype": "F32", "shape": [4], "data_offsets": [4, 20]}}"#.to_owned(),
        r#"{"x": {"dtype": "F33", "shape": [4], "data_offsets": [0, 16]}}"#.to_owned(),
        r#"{"x": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}"#.to_owned(),
        format!(r#"{{"x": {{"dtype": "F32", "shape": [{huge}, {huge}], "data_offsets": [0, 16]}}}}"#),
        format!(r#"{{"x": {{"dtype": "F32", "shape": [{}], "data_offsets": [0, {}]}}}}"#, huge / 4, huge / 4 * 4),
    ] {
        let length = header.len() as u64;
        fs::write(&path, [&length.to_le_bytes()[..], header.as_bytes(), &[0; 16]].concat()).unwrap();
        assert_error(TensorFile::open(&path), &[MODEL]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), length in 0u64..400) {
        let dir = scratch();
        let path = dir.path().join(MODEL);
        fs::write(&path, &bytes).unwrap();
        prop_assert!(TensorFile::open(&path).is_err());
        fs::write(&path, [&length.to_le_bytes()[..], &bytes].concat()).unwrap();
        prop_assert!(TensorFile::open(&path).is_err());
    }

    #[test]
    fn a_changed_byte_never_panics(at in 0usize..4000, byte in any::<u8>()) {
        let dir = scratch();
        let path = dir.path().join(MODEL);
        let mut bytes = fs::read(testdata("oracle/llama_untied").join(MODEL)).unwrap();
        bytes[at] = byte;
        fs::write(&path, &bytes).unwrap();
        let config = ModelConfig::read(&testdata("oracle/llama_untied")).unwrap();
        if let Err(error) = ModelWeights::read(dir.path(), &config) {
            prop_assert!(error.to_string().contains(MODEL));
        }
    }
}
