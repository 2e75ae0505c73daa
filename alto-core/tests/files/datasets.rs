use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use alto_core::batch::Example;
use alto_core::data::{Cut, DataError, Dataset, Tokenizer, sample};
use alto_core::job::{AccumulationMode, AdamW, AdapterConfig, Decay, Job, Schedule};
use proptest::prelude::*;

use crate::{assert_error, scratch, testdata};

fn tokenizer() -> Tokenizer {
    Tokenizer::read(&testdata("quickstart/gsm-nano")).unwrap()
}

fn quickstart(file: &str) -> Dataset {
    Dataset::read(&testdata("quickstart/data").join(file), &tokenizer(), 512).unwrap()
}

/// Reads these bytes as `rows.jsonl`, with a context of 16 tokens.
fn read(bytes: &[u8]) -> Result<Dataset, DataError> {
    let dir = scratch();
    let path = dir.path().join("rows.jsonl");
    fs::write(&path, bytes).unwrap();
    Dataset::read(&path, &tokenizer(), 16)
}

/// A data set whose row `i` is `lengths[i]` labelled tokens, all of them `i`.
fn rows(lengths: &[usize]) -> Dataset {
    let example = |(i, &n): (usize, &usize)| Example { tokens: vec![i as u32; n], targets: vec![Some(i as u32); n] };
    Dataset::from_examples(lengths.iter().enumerate().map(example).collect()).unwrap()
}

fn job(seed: u64, batch: usize, accumulation: usize) -> Job {
    Job {
        name: format!("s{seed}"),
        adapter: AdapterConfig {
            rank: 2,
            alpha: 4.0,
            rank_stabilized: false,
            targets: BTreeSet::from(["q_proj".into()]),
        },
        optimizer: AdamW::new(1e-3),
        schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
        batch,
        accumulation,
        accumulation_mode: AccumulationMode::TokenMean,
        steps: 10,
        seed,
    }
}

/// Which rows of [`rows`] these are.
fn indices(micro_batch: Vec<&Example>) -> Vec<u32> {
    micro_batch.into_iter().map(|row| row.tokens[0]).collect()
}

const GOOD: &str = "{\"prompt\": \"One\", \"completion\": \" two\"}";

#[test]
fn the_quickstarts_rows_are_read_as_python_tokenizes_them() {
    let data = quickstart("val.jsonl");
    assert_eq!((data.examples().len(), data.truncated()), (100, &[][..]));
    // Completions with `</s>`, prompts with `<s>`, by transformers 5.24.
    let labelled: usize = data.examples().iter().map(Example::labelled).sum();
    let tokens: usize = data.examples().iter().map(|row| row.tokens.len() + 1).sum();
    assert_eq!((labelled, tokens), (10_708, 10_708 + 9_475));
    data.check_vocabulary(1024).unwrap();
    assert_eq!(quickstart("train.jsonl").examples().len(), 1000);
}

#[test]
fn the_loss_is_on_the_completion_and_its_end() {
    let data = read(GOOD.as_bytes()).unwrap();
    let (prompt, completion) = tokenizer().encode_pair("One", " two").unwrap();
    let row = &data.examples()[0];
    let counted: Vec<u32> = row.targets.iter().flatten().copied().collect();
    assert_eq!(counted, completion);
    assert_eq!(row.targets.iter().position(Option::is_some), Some(prompt.len() - 1));
    assert_eq!([row.tokens.as_slice(), &[2]].concat(), [prompt, completion].concat());
}

#[test]
fn line_ends_and_a_byte_order_mark_do_not_matter() {
    let plain = read(format!("{GOOD}\n{GOOD}").as_bytes()).unwrap();
    for text in [format!("{GOOD}\n{GOOD}\n"), format!("{GOOD}\r\n{GOOD}\r\n"), format!("\u{feff}{GOOD}\n{GOOD}")] {
        assert_eq!(read(text.as_bytes()).unwrap().examples(), plain.examples());
    }
}

#[test]
fn completions_cut_off_by_the_context_are_counted() {
    let long = format!("{{\"prompt\": \"1\", \"completion\": \"{}\"}}", "2".repeat(40));
    let data = read(format!("{GOOD}\n{long}\n{GOOD}\n{long}\n").as_bytes()).unwrap();
    // <s>, the prompt's digit, 40 digits and </s>.
    assert_eq!(data.truncated(), [Cut { line: 2, tokens: 43 }, Cut { line: 4, tokens: 43 }]);
    let row = &data.examples()[1];
    assert_eq!((row.tokens.len(), row.labelled()), (15, 14));
    let fits = format!("{{\"prompt\": \"1\", \"completion\": \"{}\"}}", "2".repeat(13));
    assert_eq!(read(fits.as_bytes()).unwrap().truncated(), []);
    let end_lost = format!("{{\"prompt\": \"1\", \"completion\": \"{}\"}}", "2".repeat(14));
    assert_eq!(read(end_lost.as_bytes()).unwrap().truncated(), [Cut { line: 1, tokens: 17 }]);
}

#[test]
fn a_prompt_that_fills_the_context_is_an_error() {
    let row = |digits| format!("{GOOD}\n{{\"prompt\": \"{}\", \"completion\": \"1\"}}\n", "2".repeat(digits));
    assert_eq!(read(row(14).as_bytes()).unwrap().examples()[1].labelled(), 1);
    assert_error(read(row(15).as_bytes()), &["rows.jsonl", "line 2", "16 tokens", "only 16"]);
}

#[test]
fn broken_lines_are_named() {
    let cases: [(&[u8], &str); 14] = [
        (b"{\"prompt\": \"a\"", "column 14: EOF"),
        (b"{\"prompt\": \"a\"}", "missing field `completion`"),
        (b"{\"completion\": \"a\"}", "missing field `prompt`"),
        (b"{\"prompt\": \"a\", \"completion\": \"b\", \"id\": 3}", "unknown field `id`"),
        (b"{\"prompt\": \"a\", \"completion\": \"b\", \"prompt\": \"c\"}", "duplicate field `prompt`"),
        (b"{\"prompt\": 3, \"completion\": \"b\"}", "invalid type: integer"),
        (b"{\"prompt\": \"a\", \"completion\": null}", "invalid type: null"),
        (b"{\"prompt\": \"a\", \"completion\": \"b\"} {}", "trailing characters"),
        (b"{\"messages\": []}", "unknown field `messages`"),
        (b"plain text", "not a JSON object"),
        (b"[\"a\", \"b\"]", "not a JSON object"),
        (b"", "the line is empty"),
        (b" \t\r", "the line is empty"),
        (b"{\"prompt\": \"\xff\", \"completion\": \"b\"}", "byte 12 of the line is not UTF-8"),
    ];
    for (line, problem) in cases {
        let text = [GOOD.as_bytes(), b"\n", line, b"\n", GOOD.as_bytes()].concat();
        assert_error(
            read(&text),
            &["rows.jsonl, line 2", problem, "expected {\"prompt\": \"...\", \"completion\": \"...\"}"],
        );
    }
    let empty = format!("{GOOD}\n{GOOD}\n{{\"prompt\": \"a\", \"completion\": \"\"}}");
    assert_error(read(empty.as_bytes()), &["rows.jsonl, line 3", "completion is empty"]);
    assert_error(read(format!("{GOOD}\n\n").as_bytes()), &["rows.jsonl, line 2", "empty"]);
}

#[test]
fn files_without_rows_are_named() {
    assert_error(read(b""), &["rows.jsonl", "no rows"]);
    assert_error(Dataset::read(Path::new("/no/such.jsonl"), &tokenizer(), 16), &["/no/such.jsonl", "No such file"]);
    assert_error(Dataset::from_examples(vec![]), &["the data set", "no rows"]);
    let unlabelled = Example { tokens: vec![1, 2], targets: vec![None, None] };
    let good = Example { tokens: vec![1], targets: vec![Some(1)] };
    assert_error(Dataset::from_examples(vec![good, unlabelled]), &["example 2", "0 labels"]);
    let uneven = Example { tokens: vec![1, 2], targets: vec![Some(1)] };
    assert_error(Dataset::from_examples(vec![uneven]), &["example 1", "2 tokens"]);
}

#[test]
fn tokens_that_the_model_lacks_are_named() {
    let data = read(format!("{GOOD}\n{GOOD}").as_bytes()).unwrap();
    assert_error(data.check_vocabulary(3), &["rows.jsonl, line 1", "out of range", "has 3"]);
    let only_target = Example { tokens: vec![1], targets: vec![Some(9)] };
    let data = Dataset::from_examples(vec![only_target]).unwrap();
    assert_error(data.check_vocabulary(9), &["example 1", "token id 9", "has 9"]);
    data.check_vocabulary(10).unwrap();
}

#[test]
fn the_order_stays_what_it_is() {
    // Written down once: a change would change everybody's runs.
    let order = |seed, epoch: u64| (0..8).map(|k| sample(seed, 8, epoch * 8 + k)).collect::<Vec<_>>();
    let expected = [[0, 2, 3, 4, 6, 1, 5, 7], [4, 6, 3, 1, 7, 5, 2, 0], [6, 7, 2, 5, 0, 3, 1, 4]];
    assert_eq!([order(0, 0), order(0, 1), order(1, 0)], expected);
}

#[test]
fn every_pass_sees_every_row_once_in_an_order_of_its_own() {
    let pass = |seed, epoch: u64| (0..50).map(|k| sample(seed, 50, epoch * 50 + k)).collect::<Vec<_>>();
    let mut seen = BTreeSet::new();
    for (seed, epoch) in [(0, 0), (0, 1), (1, 0), (1, 1), (u64::MAX, 0), (256, 0)] {
        let mut order = pass(seed, epoch);
        assert!(seen.insert(order.clone()), "seed {seed} and pass {epoch} repeat another's order");
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
    assert_eq!(sample(7, 1, 1_000_000), 0);
}

#[test]
fn each_row_is_as_likely_everywhere() {
    let mut first = [0; 5];
    for seed in 0..5000 {
        first[sample(seed, 5, 0)] += 1;
    }
    // A thousand each, give or take five standard deviations of 28.
    assert!(first.iter().all(|count| (860..1140).contains(count)), "{first:?}");
}

#[test]
fn micro_batches_follow_the_order_across_passes() {
    let data = rows(&[1; 7]);
    let job = job(3, 2, 2);
    let mut k = 0;
    for step in 0..10 {
        for micro in 0..2 {
            let expected: Vec<u32> = (k..k + 2).map(|k| sample(3, 7, k) as u32).collect();
            assert_eq!(indices(data.micro_batch(&job, step, micro)), expected);
            k += 2;
        }
    }
    let wide = self::job(3, 20, 1);
    let expected: Vec<u32> = (0..20).map(|k| sample(3, 7, k) as u32).collect();
    assert_eq!(indices(data.micro_batch(&wide, 0, 0)), expected);
}

#[test]
fn a_jobs_samples_depend_on_its_seed_alone() {
    let alone = rows(&[1; 40]);
    let expected: Vec<_> = (0..30).map(|step| indices(alone.micro_batch(&job(5, 4, 1), step, 0))).collect();
    let shared = rows(&[1; 40]);
    for step in (0..30).rev() {
        for seed in [9, 5, 6] {
            let seen = indices(shared.micro_batch(&job(seed, 4, 1), step, 0));
            assert_eq!(seen == expected[step as usize], seed == 5);
        }
    }
}

#[test]
fn divisors_weigh_tokens_or_micro_batches() {
    let data = rows(&[1, 2, 3, 4, 5, 6]);
    let mut job = job(1, 2, 3);
    let labelled = |micro| data.micro_batch(&job, 0, micro).iter().map(|row| row.labelled()).sum::<usize>() as f64;
    let each = [labelled(0), labelled(1), labelled(2)];
    assert_eq!(each.iter().sum::<f64>(), 21.0);
    for micro in 0..3 {
        assert_eq!(data.divisor(&job, 0, micro), 21.0);
    }
    job.accumulation_mode = AccumulationMode::MeanOfMeans;
    for (micro, labelled) in each.into_iter().enumerate() {
        assert_eq!(data.divisor(&job, 0, micro), 3.0 * labelled);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn any_two_texts_make_a_row(prompt in "[a-z ]{0,8}", completion in "\\PC{1,20}") {
        let row = serde_json::json!({"prompt": prompt, "completion": completion}).to_string();
        let data = read(row.as_bytes()).unwrap();
        prop_assert!(data.examples()[0].tokens.len() < 16 && data.examples()[0].labelled() > 0);
    }
}
