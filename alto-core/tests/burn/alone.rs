//! As if alone: whoever joins, leaves or takes over a place, a job gets the losses and the adapter that it gets alone.

use std::path::PathBuf;

use alto_core::backend::JobState;
use alto_core::burn::BurnBackend;
use alto_core::data::{Dataset, Tokenizer};
use alto_core::job::{AccumulationMode, AdamW, Decay, Job, Schedule};

use super::setup::{ALL, Tenant, adapter_error, advance, alone, job, join, leave, losses, read, relative_error, rows};
use super::setup::{read_model, recorded, testdata};

/// A job, and the micro-batches of the common run between which it takes part.
struct Guest<'a> {
    job: Job,
    rows: &'a Dataset,
    from: usize,
    until: usize,
}

impl Guest<'_> {
    fn micro_batches(&self) -> usize {
        self.until - self.from
    }
}

/// Jobs of different rank, batch size, learning rate, row length, targets, accumulation, schedule and clip. Some are there
/// for all of their 50 steps, some leave half-way, and some join then, one of them in a place that just got free.
fn guests<'a>(short: &'a Dataset, middle: &'a Dataset, long: &'a Dataset, wider_than_wide: usize) -> Vec<Guest<'a>> {
    let narrow = job("narrow", 1, &["q_proj", "v_proj"]);
    let mut usual = job("usual", 8, &ALL);
    usual.batch = 2;
    usual.schedule = Schedule { decay: Decay::Linear, warmup_steps: 5 };
    usual.optimizer = AdamW { weight_decay: 0.01, clip: Some(1.0), ..AdamW::new(1e-3) };
    let mut wide = job("wide", wider_than_wide, &["k_proj", "o_proj", "down_proj"]);
    wide.accumulation = 2;
    wide.accumulation_mode = AccumulationMode::MeanOfMeans;
    // At its first step AdamW makes full-size steps of gradients that are nothing but rounding.
    wide.schedule = Schedule { decay: Decay::Cosine, warmup_steps: 5 };
    wide.optimizer = AdamW::new(5e-4);
    let mut stabilized = job("stabilized", 4, &["gate_proj", "up_proj"]);
    stabilized.adapter.rank_stabilized = true;
    (stabilized.batch, stabilized.accumulation) = (3, 2);
    stabilized.optimizer = AdamW { clip: Some(0.05), betas: (0.8, 0.99), ..AdamW::new(2e-3) };
    let mut leaver = job("leaver", 6, &ALL);
    leaver.optimizer = AdamW::new(3e-3);
    let heir = job("heir", 12, &["q_proj", "k_proj", "v_proj", "o_proj"]);
    let mut late = job("late", 2, &ALL);
    late.batch = 2;
    late.schedule.warmup_steps = 2;
    late.optimizer = AdamW { weight_decay: 0.1, ..AdamW::new(1e-3) };
    let guest = |job, rows, from, until| Guest { job, rows, from, until };
    vec![
        guest(narrow, long, 0, 50),
        guest(leaver, middle, 0, 25),
        guest(usual, middle, 0, 50),
        guest(wide, short, 0, 100),
        guest(stabilized, short, 0, 100),
        guest(heir, middle, 25, 75),
        guest(late, short, 31, 81),
    ]
}

/// The losses and last states of all guests in one run.
fn together(backend: &mut BurnBackend, guests: &[Guest<'_>]) -> Vec<(Vec<f64>, JobState)> {
    let mut tenants: Vec<Option<Tenant<'_>>> = guests.iter().map(|_| None).collect();
    let mut ends = vec![];
    for at in 0..=guests.iter().map(|guest| guest.until).max().expect("guests") {
        for (index, guest) in guests.iter().enumerate() {
            if guest.until == at {
                let tenant = tenants[index].take().expect("it had joined");
                ends.push((index, tenant.slot, leave(backend, tenant)));
            }
            if guest.from == at {
                tenants[index] = Some(join(backend, &guest.job, guest.rows));
            }
        }
        // Another order of lanes each time: it mustn't matter.
        let mut present: Vec<_> = tenants.iter_mut().flatten().collect();
        if !present.is_empty() {
            let shift = at % present.len();
            present.rotate_left(shift);
            advance(backend, &mut present);
        }
    }
    ends.sort_by_key(|(index, ..)| *index);
    let reports = read(backend);
    ends.into_iter().map(|(_, slot, state)| (losses(&reports, slot), state)).collect()
}

fn assert_as_if_alone(make: impl Fn() -> BurnBackend, guests: &[Guest<'_>]) {
    let found = together(&mut make(), guests);
    let mut largest = (0.0f64, 0.0f64);
    for (guest, (found, state)) in guests.iter().zip(found) {
        let (expected, alone) = alone(&mut make(), &guest.job, guest.rows, guest.micro_batches());
        assert_eq!(found.len(), guest.micro_batches() / guest.job.accumulation);
        assert_eq!(state.step, alone.step);
        assert!(expected[expected.len() - 1] != expected[0], "{} trains", guest.job.name);
        let (loss, adapter) = (relative_error(&found, &expected), adapter_error(&state.adapter, &alone.adapter));
        println!("{:>10}: losses within {loss:.1e}, adapter within {adapter:.1e}", guest.job.name);
        assert!(loss <= 1e-5, "{}: a loss is off by {loss:e}", guest.job.name);
        assert!(adapter <= 1e-4, "{}: the adapter is off by {adapter:e}", guest.job.name);
        largest = (largest.0.max(loss), largest.1.max(adapter));
    }
    println!("   largest: losses within {:.1e}, adapters within {:.1e}", largest.0, largest.1);
}

#[test]
fn on_random_tokens_and_a_random_model() {
    let (short, middle, long) = (rows(1, 20, 1..=8), rows(2, 16, 10..=50), rows(3, 10, 60..=150));
    for model in ["llama_untied", "llama3_rope"] {
        assert_as_if_alone(|| recorded(model), &guests(&short, &middle, &long, 100));
    }
}

#[test]
fn on_words_and_a_pretrained_model() {
    let model: PathBuf = testdata("quickstart/gsm-nano");
    let tokenizer = Tokenizer::read(&model).expect("a tokenizer");
    let all = Dataset::read(&testdata("quickstart/data/val.jsonl"), &tokenizer, 512).expect("rows");
    let mut examples = all.examples().to_vec();
    examples.sort_by_key(|example| example.tokens.len());
    let pick = |from: usize| Dataset::from_examples(examples[from..from + 10].to_vec()).expect("rows");
    let (short, middle, long) = (pick(0), pick(10), pick(20));
    assert_as_if_alone(|| read_model(&model), &guests(&short, &middle, &long, 150));
}
