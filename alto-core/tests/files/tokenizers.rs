use std::fs;

use alto_core::data::{DataError, Tokenizer};
use serde_json::{Value, json};

use crate::{Edit, assert_error, copy_of, edit_json, testdata};

const MODEL: &str = "quickstart/gsm-nano";

/// The quick-start's tokenizer with files changed.
fn with(edits: &[(&str, Edit<Value>)]) -> Result<Tokenizer, DataError> {
    let copy = copy_of(&testdata(MODEL));
    for (file, edit) in edits {
        edit_json(&copy.path().join(file), edit);
    }
    Tokenizer::read(copy.path())
}

fn add_beginning(tokenizer: &mut Value) {
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<pad>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<pad>": {"id": "<pad>", "ids": [0], "tokens": ["<pad>"]}}
    });
}

#[test]
fn texts_encode_as_in_python() {
    let tokenizer = Tokenizer::read(&testdata(MODEL)).unwrap();
    assert_eq!(tokenizer.vocabulary(), 1024);
    assert_eq!((tokenizer.begin(), tokenizer.end()), (&[1][..], Some(2)));
    // transformers 5.24 on the first row of val.jsonl.
    let row = fs::read_to_string(testdata("quickstart/data/val.jsonl")).unwrap();
    let row: Value = serde_json::from_str(row.lines().next().unwrap()).unwrap();
    let prompt = tokenizer.encode(row["prompt"].as_str().unwrap()).unwrap();
    assert_eq!((prompt.len(), &prompt[..8]), (90, &[51, 87, 427, 406, 28, 454, 67, 74][..]));
    let completion = tokenizer.encode(row["completion"].as_str().unwrap()).unwrap();
    assert_eq!((completion.len(), &completion[..8]), (130, &[567, 317, 454, 223, 31, 266, 439, 279][..]));
}

#[test]
fn a_pair_begins_and_ends_once() {
    let tokenizer = Tokenizer::read(&testdata(MODEL)).unwrap();
    let (prompt, completion) = tokenizer.encode_pair("One", " two").unwrap();
    let begun = [vec![1], tokenizer.encode("One").unwrap()].concat();
    let ended = [tokenizer.encode(" two").unwrap(), vec![2]].concat();
    assert_eq!((&prompt, &completion), (&begun, &ended));
    assert_eq!(tokenizer.encode_pair("<s>One", " two</s>").unwrap(), (begun, ended));
    assert_eq!(tokenizer.encode_pair("", "</s>").unwrap(), (vec![1], vec![2]));
}

#[test]
fn a_token_never_straddles_prompt_and_completion() {
    let tokenizer = Tokenizer::read(&testdata(MODEL)).unwrap();
    // Joined, the two make other tokens.
    let (front, back) = (" th", "e");
    let joined = tokenizer.encode(" the").unwrap();
    assert!(!joined.starts_with(&tokenizer.encode(front).unwrap()), "the example has lost its point");
    let (prompt, completion) = tokenizer.encode_pair(front, back).unwrap();
    assert_eq!(prompt[1..], tokenizer.encode(front).unwrap());
    assert_eq!(completion[..completion.len() - 1], tokenizer.encode(back).unwrap());
}

#[test]
fn a_completion_gets_no_space_that_the_text_lacks() {
    // As Llama 2 does, this one puts a space in front of whatever it encodes.
    let spaced =
        with(&[("tokenizer.json", |t| t["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = json!(true))]);
    let spaced = spaced.unwrap();
    assert_ne!(spaced.encode("b").unwrap(), spaced.encode_pair("", "b").unwrap().0);
    let (prompt, completion) = spaced.encode_pair("A\n", "b").unwrap();
    assert_eq!([&prompt[1..], &completion[..completion.len() - 1]].concat(), spaced.encode("A\nb").unwrap());
}

#[test]
fn the_tokenizers_own_beginning_comes_first_and_is_not_doubled() {
    let own = with(&[("tokenizer.json", add_beginning)]).unwrap();
    assert_eq!(own.begin(), [0]);
    let (prompt, _) = own.encode_pair("One", " two").unwrap();
    assert_eq!(prompt, [vec![0], own.encode("One").unwrap()].concat());
}

#[test]
fn truncation_and_padding_in_the_file_change_no_text() {
    let long = "One two three. ".repeat(50);
    let plain = Tokenizer::read(&testdata(MODEL)).unwrap().encode(&long).unwrap();
    let cut = with(&[("tokenizer.json", |tokenizer| {
        tokenizer["truncation"] =
            json!({"max_length": 8, "strategy": "LongestFirst", "stride": 0, "direction": "Right"});
        tokenizer["padding"] = json!({
            "strategy": {"Fixed": 4096}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "<pad>"
        });
    })]);
    assert_eq!(cut.unwrap().encode(&long).unwrap(), plain);
}

#[test]
fn beginning_and_end_are_looked_for_in_three_files() {
    let remove = |value: &mut Value| {
        let map = value.as_object_mut().unwrap();
        map.remove("bos_token");
        map.remove("eos_token");
    };
    let object: Edit<Value> = |config| config["bos_token"] = json!({"content": "<pad>", "special": true});
    assert_eq!(with(&[("tokenizer_config.json", object)]).unwrap().begin(), [0]);
    let null: Edit<Value> = |config| config["bos_token"] = Value::Null;
    assert!(with(&[("tokenizer_config.json", null)]).unwrap().begin().is_empty());
    let other: Edit<Value> = |map| map["eos_token"] = json!("<pad>");
    let map = with(&[("tokenizer_config.json", remove), ("special_tokens_map.json", other)]).unwrap();
    assert_eq!((map.begin(), map.end()), (&[1][..], Some(0)));
    let ids: Edit<Value> = |config| {
        config["bos_token_id"] = Value::Null;
        config["eos_token_id"] = json!([2, 0]);
    };
    let three =
        [("tokenizer_config.json", remove as Edit<Value>), ("special_tokens_map.json", remove), ("config.json", ids)];
    let ids = with(&three).unwrap();
    assert_eq!((ids.begin(), ids.end()), (&[][..], Some(2)));
}

#[test]
fn files_that_are_no_tokenizer_are_named() {
    let copy = copy_of(&testdata(MODEL));
    let path = copy.path().join("tokenizer.json");
    for text in ["", "{}", "[1]", "\u{0}"] {
        fs::write(&path, text).unwrap();
        assert_error(Tokenizer::read(copy.path()), &["tokenizer.json", "not a Hugging Face tokenizer"]);
    }
    fs::remove_file(path).unwrap();
    assert_error(Tokenizer::read(copy.path()), &["tokenizer.json", "No such file"]);
    let copy = copy_of(&testdata(MODEL));
    fs::write(copy.path().join("tokenizer_config.json"), "{").unwrap();
    assert_error(Tokenizer::read(copy.path()), &["tokenizer_config.json", "line 1"]);
}

#[test]
fn special_tokens_that_the_tokenizer_lacks_are_named() {
    let unknown: Edit<Value> = |config| config["eos_token"] = json!("<end>");
    assert_error(with(&[("tokenizer_config.json", unknown)]), &["tokenizer_config.json", "eos_token", "<end>"]);
    let number: Edit<Value> = |config| config["eos_token"] = json!(2);
    assert_error(with(&[("tokenizer_config.json", number)]), &["tokenizer_config.json", "eos_token is 2"]);
    let copy = copy_of(&testdata(MODEL));
    fs::remove_file(copy.path().join("tokenizer_config.json")).unwrap();
    fs::remove_file(copy.path().join("special_tokens_map.json")).unwrap();
    for id in [json!(1024), json!(-1), json!([]), json!("1"), json!(u64::MAX)] {
        edit_json(&copy.path().join("config.json"), |config| config["eos_token_id"] = id);
        assert_error(Tokenizer::read(copy.path()), &["config.json", "eos_token_id"]);
    }
}

#[test]
fn a_completion_that_gives_no_token_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let words = r#"{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}"#;
    std::fs::write(dir.path().join("tokenizer.json"), words).unwrap();
    let tokenizer = Tokenizer::read(dir.path()).unwrap();
    assert_eq!(tokenizer.encode_pair("a", "b").unwrap(), (vec![0], vec![1]));
    let error = tokenizer.encode_pair("a", "xx").unwrap_err().to_string();
    assert_eq!(error, "the tokenizer gives no token for the completion \"xx\", expected some text that it knows");
}
