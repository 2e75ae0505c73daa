//! Data that can't be trained on.

use std::fs;

use crate::desk::{Desk, testdata};

const GOOD: &str = "{\"prompt\": \"Question: 1 + 1?\\nAnswer:\", \"completion\": \" 2\"}\n";

#[test]
fn a_missing_file_of_rows_is_named() {
    Desk::new().refuses(&[("--train", "nothing.jsonl")], &["can't read nothing.jsonl", "No such file"]);
    Desk::new().refuses(&[("--val", "nothing.jsonl")], &["can't read nothing.jsonl", "No such file"]);
}

#[test]
fn a_bad_line_is_named_with_what_would_be_right() {
    let long = format!("{{\"prompt\": \"{}\", \"completion\": \"a\"}}", "why ".repeat(600));
    for (line, expected) in [
        ("", ["line 2", "the line is empty"]),
        ("{\"prompt\": \"a\", \"completion\"", ["line 2, column", "EOF"]),
        ("{\"prompt\": \"a\"}", ["line 2", "missing field `completion`"]),
        ("{\"prompt\": \"a\", \"completion\": \"b\", \"weight\": 2}", ["line 2", "unknown field `weight`"]),
        ("{\"prompt\": \"a\", \"completion\": \"\"}", ["line 2", "the completion is empty"]),
        (&long, ["line 2", "but the context only 512"]),
    ] {
        for file in ["train.jsonl", "val.jsonl"] {
            let desk = Desk::new();
            desk.write(file, &format!("{GOOD}{line}\n{GOOD}"));
            desk.refuses(&[], &[file, expected[0], expected[1]]);
        }
    }
}

#[test]
fn a_file_without_rows_is_named() {
    let desk = Desk::new();
    desk.write("train.jsonl", "");
    desk.refuses(&[], &["train.jsonl has no rows, expected at least one"]);
}

#[test]
fn a_token_that_the_model_lacks_is_named_with_its_line() {
    // A model of 256 tokens with a tokenizer of 1,024.
    let desk = Desk::new();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(testdata("oracle/llama_tied").join(file), desk.path("model").join(file)).unwrap();
    }
    desk.refuses(&[], &["train.jsonl, line 1: token id", "out of range, the model's vocabulary has 256"]);
}
