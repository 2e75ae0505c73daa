//! Models that can't be had.

use std::fs;

use crate::desk::{Desk, testdata};

#[test]
fn a_missing_file_of_the_model_is_named() {
    for (file, named) in [
        ("config.json", "can't read model/config.json"),
        ("model.safetensors", "model has no weights, expected model.safetensors or model.safetensors.index.json"),
        ("tokenizer.json", "can't read model/tokenizer.json"),
    ] {
        let desk = Desk::new();
        fs::remove_file(desk.path("model").join(file)).unwrap();
        desk.refuses(&[], &[named]);
    }
    Desk::new().refuses(&[("--model", "nowhere")], &["can't read nowhere/config.json", "No such file"]);
}

#[test]
fn a_truncated_file_of_the_model_is_named() {
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        let desk = Desk::new();
        let path = desk.path("model").join(file);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
        desk.refuses(&[], &["model", file]);
    }
}

#[test]
fn a_tensor_of_the_wrong_shape_is_named_with_both_shapes() {
    let desk = Desk::new();
    desk.replace("model/config.json", "\"intermediate_size\": 352", "\"intermediate_size\": 350");
    desk.refuses(&[], &["model.safetensors", "mlp", "352", "350"]);
}

#[test]
fn an_unknown_model_type_is_named() {
    let desk = Desk::new();
    fs::copy(testdata("oracle/qwen2/config.json"), desk.path("model/config.json")).unwrap();
    desk.refuses(&[], &["model/config.json: model_type qwen2 is not supported, expected llama"]);
}

#[test]
fn an_unsupported_setting_is_named() {
    let desk = Desk::new();
    desk.replace("model/config.json", "\"attention_bias\": false", "\"attention_bias\": true");
    desk.refuses(&[], &["model/config.json: attention_bias is true, expected false"]);
}
