//! A trainer of one's own, driven by ours.
//!
//! Anything that can make an optimizer step can be a [`Backend`](alto_core::backend::Backend). This one, in `bigram.rs`,
//! is plain Rust over a language model of one matrix, with gradients by hand. The conformance suite says whether it
//! keeps to the contract; then it has grids, early exit, admission and reports for nothing.

mod bigram;

use std::error::Error;

use alto_core::batch::Example;
use alto_core::data::Dataset;
use alto_core::exit::LossAware;
use alto_core::search_space::SearchSpace;
use alto_core::testing::backend_conformance;
use alto_core::trainer::{Candidate, EventKind, Trainer};
use bigram::Bigram;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

const VOCABULARY: usize = 24;
/// Token `t` is of kind `t % KINDS`.
const KINDS: usize = 4;

const GRID: &str = r#"
    version = 1
    learning_rate = [1e-4, 3e-3, 3e-2, 1.0]
    rank = [1, 4]
    batch = [2, 4]
    samples = 800
    target_modules = ["head"]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    // The base has learned that a token of one kind is mostly followed by one of the same kind.
    let favoured = |token: usize, next: usize| if next % KINDS == token % KINDS { 1.0 } else { 0.0 };
    let base = || Bigram::new(VOCABULARY, favoured);
    // The texts to tune on are of another language, where the next kind follows.
    let (train, validation) = (texts(200, 1), texts(40, 2));

    let space = SearchSpace::from_toml(GRID)?;
    // Two jobs that differ in most things, for checks that include micro-batches.
    let mut jobs = space.jobs(train.len())?;
    (jobs[1].accumulation, jobs[1].seed) = (3, 7);
    // 0: a lane is computed alone, so that nothing depends on its neighbours, not even rounding.
    backend_conformance(&mut || Box::new(base()), &[jobs[1].clone(), jobs[10].clone()], &train[..5], 0.0)?;
    println!("The backend passes the conformance suite.\n");

    let (train, validation) = (Dataset::from_examples(train)?, Dataset::from_examples(validation)?);
    let candidates = space.jobs(train.examples().len())?.into_iter().map(Candidate::from).collect();
    let trainer = Trainer { slots: Some(6), ..Trainer::default() };
    let outcome = trainer.run(&mut base(), &train, &validation, candidates, &LossAware::default(), &mut |event| {
        if matches!(event.kind, EventKind::RungClosed { .. } | EventKind::Ended { .. }) {
            println!("{}", event.kind);
        }
    })?;
    println!("\n{}", outcome.report.table());
    let floor = 0.8 * (0.8 / 6.0_f64).recip().ln() + 0.2 * (0.2 / 18.0_f64).recip().ln();
    println!("The language itself has {floor:.4} nats per token, give or take what chance makes of 40 texts.");
    Ok(())
}

/// Texts of 12 tokens, each mostly followed by one of the next kind.
fn texts(count: usize, seed: u64) -> Vec<Example> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut below = |bound: usize| random.next_u32() as usize % bound;
    let mut text = || {
        let mut tokens = vec![below(VOCABULARY)];
        for at in 0..12 {
            let step = if below(10) < 8 { 1 } else { [0, 2, 3][below(3)] };
            let kind = (tokens[at] + step) % KINDS;
            tokens.push(kind + KINDS * below(VOCABULARY / KINDS));
        }
        let ids: Vec<u32> = tokens.iter().map(|&token| token as u32).collect();
        Example { tokens: ids[..12].to_vec(), targets: ids[1..].iter().copied().map(Some).collect() }
    };
    (0..count).map(|_| text()).collect()
}
