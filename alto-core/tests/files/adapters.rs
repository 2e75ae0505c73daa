use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use alto_core::adapter::{Adapter, LoraPair};
use alto_core::job::AdapterConfig;
use alto_core::matrix::Matrix;
use alto_core::model::{Linear, ModelConfig};
use alto_core::peft::{export, import};
use alto_core::tensor_file::TensorFile;
use serde_json::{Value, json};

use crate::{Edit, assert_error, copy_of, edit_json, scratch, testdata};

const SETTINGS: &str = "adapter_config.json";
const TENSORS: &str = "adapter_model.safetensors";

/// An adapter of rank 3 on two layers of the small Llama, every number of it another.
fn adapter() -> Adapter {
    let config = ModelConfig::read(&testdata("oracle/llama_untied")).unwrap();
    let targets = [Linear::Q, Linear::Down];
    let mut number = 0.0;
    let mut matrix = |rows: usize, columns: usize| {
        let data = (0..rows * columns).map(|_| {
            number += 1.0 / 64.0;
            number
        });
        Matrix::new(rows, columns, data.collect())
    };
    let mut modules = BTreeMap::new();
    for layer in 0..config.layers {
        for linear in targets {
            let [d_out, d_in] = linear.shape(&config);
            modules.insert(linear.path(layer), LoraPair { a: matrix(3, d_in), b: matrix(d_out, 3) });
        }
    }
    let targets = targets.iter().map(|linear| linear.name().to_owned()).collect();
    Adapter { config: AdapterConfig { rank: 3, alpha: 6.0, rank_stabilized: false, targets }, modules }
}

/// Cases of the oracle: a directory with `init` and `final` in it.
fn cases() -> Vec<std::path::PathBuf> {
    let mut cases = vec![];
    for model in ["llama_untied", "llama_tied", "llama3_rope", "qwen2", "qwen3"] {
        for entry in fs::read_dir(testdata("oracle").join(model)).unwrap() {
            let dir = entry.unwrap().path();
            if dir.join("init").is_dir() {
                cases.push(dir);
            }
        }
    }
    cases.sort();
    assert!(cases.len() >= 20, "only {} cases", cases.len());
    cases
}

/// The names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn what_is_exported_is_imported_again() {
    let dir = scratch();
    for rank_stabilized in [false, true] {
        let mut adapter = adapter();
        adapter.config.rank_stabilized = rank_stabilized;
        adapter.config.alpha = if rank_stabilized { 0.1 } else { 6.0 };
        let path = dir.path().join(format!("new/adapter-{rank_stabilized}"));
        export(&adapter, &path, "some/model").unwrap();
        assert_eq!(names(&path), [SETTINGS, TENSORS]);
        assert_eq!(import(&path).unwrap(), adapter);
    }
    assert_eq!(names(&dir.path().join("new")), ["adapter-false", "adapter-true"]);
}

#[test]
fn an_export_has_pefts_layout() {
    let dir = scratch();
    let path = dir.path().join("adapter");
    export(&adapter(), &path, "some/model").unwrap();
    let settings: Value = serde_json::from_slice(&fs::read(path.join(SETTINGS)).unwrap()).unwrap();
    assert_eq!(settings["peft_type"], "LORA");
    assert_eq!(settings["task_type"], "CAUSAL_LM");
    assert_eq!(settings["base_model_name_or_path"], "some/model");
    assert_eq!((&settings["r"], &settings["lora_alpha"]), (&json!(3), &json!(6)));
    assert_eq!(settings["target_modules"], json!(["down_proj", "q_proj"]));
    assert_eq!((&settings["bias"], &settings["use_rslora"]), (&json!("none"), &json!(false)));
    let file = TensorFile::open(&path.join(TENSORS)).unwrap();
    assert_eq!(file.names().count(), 8);
    assert_eq!(file.shape("base_model.model.model.layers.1.mlp.down_proj.lora_A.weight"), Some(&[3, 160][..]));
    assert_eq!(file.shape("base_model.model.model.layers.1.mlp.down_proj.lora_B.weight"), Some(&[64, 3][..]));
    let bytes = fs::read(path.join(TENSORS)).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(header.metadata().as_ref().and_then(|map| map.get("format")).map(String::as_str), Some("pt"));
}

#[test]
fn adapters_written_by_peft_are_imported() {
    for case in cases() {
        let trace: Value = serde_json::from_slice(&fs::read(case.join("trace.json")).unwrap()).unwrap();
        let (start, end) = (import(&case.join("init")).unwrap(), import(&case.join("final")).unwrap());
        assert_eq!(start.is_identity(), trace["case"]["init"] != "random_B", "{}", case.display());
        assert!(!end.is_identity(), "{}", case.display());
        for adapter in [&start, &end] {
            assert_eq!(adapter.config.rank as u64, trace["case"]["r"], "{}", case.display());
            assert_eq!(adapter.config.alpha, trace["case"]["alpha"], "{}", case.display());
            assert!(adapter.modules.len() == 2 * adapter.config.targets.len(), "{}", case.display());
        }
    }
    let stabilized = import(&testdata("oracle/llama_untied/r8_rslora_wd/init")).unwrap();
    assert!(stabilized.config.rank_stabilized);
}

#[test]
fn pefts_adapters_come_back_unchanged() {
    let dir = scratch();
    for (index, case) in cases().iter().enumerate() {
        let adapter = import(&case.join("final")).unwrap();
        let path = dir.path().join(index.to_string());
        export(&adapter, &path, "base").unwrap();
        let bytes = |dir: &Path| fs::read(dir.join(TENSORS)).unwrap();
        assert_eq!(bytes(&path), bytes(&case.join("final")), "{}", case.display());
    }
}

#[test]
fn nothing_is_overwritten() {
    let dir = scratch();
    let (file, empty) = (dir.path().join("file"), dir.path().join("empty"));
    fs::write(&file, "mine").unwrap();
    fs::create_dir(&empty).unwrap();
    for path in [&file, &empty] {
        assert_error(export(&adapter(), path, "base"), &[&path.display().to_string(), "exists"]);
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert_eq!(names(dir.path()), ["empty", "file"]);
    assert!(names(&empty).is_empty());
}

#[test]
fn adapters_not_worth_a_file_leave_none() {
    let dir = scratch();
    let path = dir.path().join("adapter");
    let bad: [(Edit<Adapter>, &[&str]); 7] = [
        (|a| a.modules.values_mut().for_each(|pair| pair.b.data_mut().fill(0.0)), &["nothing was trained"]),
        (|a| a.modules.clear(), &["nothing was trained"]),
        (|a| first(a).a.data_mut()[2] = f32::NAN, &["model.layers.0.mlp.down_proj.lora_A", "NaN", "index 2"]),
        (|a| first(a).b.data_mut()[0] = f32::INFINITY, &["model.layers.0.mlp.down_proj.lora_B", "inf"]),
        (|a| a.config.rank = 4, &["lora_A is 3 x 160", "rank is 4"]),
        (|a| a.config.targets.extend(["k_proj".to_owned()]), &["k_proj", "has no factors"]),
        (
            |a| a.config.targets.retain(|target| target != "q_proj"),
            &["model.layers.0.self_attn.q_proj", "is not one of them"],
        ),
    ];
    for (spoil, parts) in bad {
        let mut adapter = adapter();
        spoil(&mut adapter);
        assert_error(export(&adapter, &path, "base"), parts);
        assert!(names(dir.path()).is_empty());
    }
}

fn first(adapter: &mut Adapter) -> &mut LoraPair {
    adapter.modules.values_mut().next().unwrap()
}

#[test]
fn an_export_that_fails_leaves_nothing() {
    let dir = scratch();
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    let below = file.join("adapter");
    assert_error(export(&adapter(), &below, "base"), &[&below.display().to_string()]);
    assert_eq!((names(dir.path()), fs::read(&file).unwrap()), (vec!["file".to_owned()], b"mine".to_vec()));
}

#[test]
fn settings_that_are_not_supported_are_refused() {
    let cases = [
        ("peft_type", json!("LOHA")),
        ("peft_type", Value::Null),
        ("task_type", json!("SEQ_CLS")),
        ("r", json!(0)),
        ("r", json!(1.5)),
        ("lora_alpha", json!(0)),
        ("lora_alpha", json!("16")),
        ("use_rslora", json!("yes")),
        ("lora_dropout", json!(0.05)),
        ("bias", json!("all")),
        ("rank_pattern", json!({"q_proj": 4})),
        ("alpha_pattern", json!({"q_proj": 4})),
        ("use_dora", json!(true)),
        ("modules_to_save", json!(["lm_head"])),
        ("layers_to_transform", json!([0])),
        ("layer_replication", json!([[0, 1]])),
        ("fan_in_fan_out", json!(true)),
        ("init_lora_weights", json!("pissa")),
        ("lora_bias", json!(true)),
        ("trainable_token_indices", json!([1])),
        ("alora_invocation_tokens", json!([1])),
        ("some_new_kind_of_lora", json!(0.5)),
        ("target_modules", json!(".*q_proj")),
        ("target_modules", json!([])),
        ("target_modules", Value::Null),
    ];
    for (key, value) in cases {
        let copy = copy_of(&testdata("oracle/llama_untied/r8_linear/init"));
        let shown = value.to_string();
        edit_json(&copy.path().join(SETTINGS), |settings| settings[key] = value);
        assert_error(import(copy.path()), &[SETTINGS, &format!("{key} is {shown}"), "expected"]);
    }
}

#[test]
fn other_ways_to_write_the_same_settings_are_fine() {
    let init = testdata("oracle/llama_untied/r8_linear/init");
    let expected = import(&init).unwrap();
    let edits: [Edit<Value>; 5] = [
        |s| s["target_modules"] = json!("all-linear"),
        |s| s["target_modules"][0] = json!("mlp.down_proj"),
        |s| s["init_lora_weights"] = json!("gaussian"),
        |s| s["some_new_kind_of_lora"] = json!(false),
        |s| s["base_model_name_or_path"] = json!("/somewhere"),
    ];
    for edit in edits {
        let copy = copy_of(&init);
        edit_json(&copy.path().join(SETTINGS), edit);
        assert_eq!(import(copy.path()).unwrap(), expected);
    }
}

#[test]
fn settings_and_tensors_must_agree() {
    let init = testdata("oracle/llama_untied/r8_linear/init");
    let edits: [(Edit<Value>, &[&str]); 3] = [
        (|s| s["r"] = json!(4), &["lora_A.weight", TENSORS, "[8, ", "expected [4, d_in]"]),
        (|s| s["target_modules"] = json!(["q_proj"]), &["model.layers.0.mlp.down_proj", "is not one of them"]),
        (|s| s["target_modules"][0] = json!("lm_head"), &["model.layers.0.mlp.down_proj", "is not one of them"]),
    ];
    for (edit, parts) in edits {
        let copy = copy_of(&init);
        edit_json(&copy.path().join(SETTINGS), edit);
        assert_error(import(copy.path()), parts);
    }
}

/// A copy of PEFT's adapter in which tensors have other names, or are gone where there is none.
fn renamed(rename: impl Fn(&str) -> Option<String>) -> tempfile::TempDir {
    let copy = copy_of(&testdata("oracle/llama_untied/r8_linear/init"));
    let path = copy.path().join(TENSORS);
    let bytes = fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensors = file.iter().filter_map(|(name, view)| Some((rename(name)?, view)));
    fs::write(&path, safetensors::serialize(tensors, None::<std::collections::HashMap<_, _>>).unwrap()).unwrap();
    copy
}

#[test]
fn incomplete_and_foreign_tensors_are_named() {
    let module = "base_model.model.model.layers.1.self_attn.k_proj";
    let without = |end: &'static str| {
        renamed(move |name| (!name.starts_with(module) || !name.ends_with(end)).then(|| name.to_owned()))
    };
    assert_error(import(without("lora_A.weight").path()), &[TENSORS, module, "lora_A.weight"]);
    assert_error(import(without("lora_B.weight").path()), &[TENSORS, module, "lora_B.weight"]);
    assert_error(import(without("").path()), &["k_proj of block 1", "part of the blocks"]);
    let foreign = renamed(|name| Some(name.replace("lora_A.weight", "lora_embedding_A")));
    assert_error(import(foreign.path()), &[TENSORS, "lora_embedding_A", "expected only"]);
}

#[test]
fn damaged_directories_are_named() {
    assert_error(import(Path::new("/no/such/adapter")), &["/no/such/adapter", SETTINGS, "No such file"]);
    let init = testdata("oracle/llama_untied/r8_linear/init");
    let copy = copy_of(&init);
    let whole = fs::read(copy.path().join(TENSORS)).unwrap();
    fs::write(copy.path().join(TENSORS), &whole[..whole.len() / 2]).unwrap();
    assert_error(import(copy.path()), &[TENSORS, &whole.len().to_string(), "cut off"]);
    fs::remove_file(copy.path().join(TENSORS)).unwrap();
    assert_error(import(copy.path()), &[TENSORS, "No such file"]);
    for text in ["", "[]", "{\"r\": 8"] {
        fs::write(copy.path().join(SETTINGS), text).unwrap();
        assert_error(import(copy.path()), &[SETTINGS, "JSON"]);
    }
}
