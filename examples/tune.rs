//! Tunes LoRA adapters over a grid of hyperparameters, ends the hopeless ones early, and saves the best for PEFT.
//!
//! Without arguments it is the quick start: a small pretrained Llama and slices of GSM8K, which lie in this repository
//! (`testdata/quickstart`, found from any directory), the grid of `examples/quickstart.toml`, about half a minute on
//! two cores; the adapter goes to `out/quickstart`, or `out/quickstart-2` and so on if that exists. On a model of yours:
//!
//! ```text
//! tune --model DIR --train FILE --val FILE --out DIR [--grid FILE] [--policy FILE]
//!      [--device cuda --dtype bf16]
//! ```
//!
//! `--out` becomes a directory that PEFT loads, with `report.json` beside the adapter: every job's settings, curve and
//! reason to end. Everything that can be checked is checked before training. Exit code 0 if an adapter was saved that is
//! better than none, 1 if training didn't get to its end or no job learned anything (what there is is saved
//! nevertheless), 2 if nothing was trained because something is wrong with the input.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alto_core::burn::BurnBackend;
use alto_core::data::{DataError, Dataset, Tokenizer};
use alto_core::exit::{LossAware, Policy};
use alto_core::model::{ModelConfig, ModelWeights};
use alto_core::search_space::{SearchSettings, SearchSpace};
use alto_core::trainer::{Candidate, Outcome, Proposals, TrainError, Trainer};
use alto_examples::{
    Arguments, Progress, chain, check_outputs, fresh, quickstart, read_policy, read_rows, save_adapter, tell, write_new,
};

fn main() -> ExitCode {
    match tune(&Arguments::of_this_process()) {
        Ok(code) => code,
        Err(error) => {
            tell(format_args!("error: {}", chain(&*error)));
            ExitCode::from(2)
        }
    }
}

/// An error is one that came before any training.
fn tune(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let quickstart = quickstart();
    let model = arguments.model.clone().unwrap_or(quickstart.join("gsm-nano"));
    let out = arguments.out.clone().unwrap_or_else(|| fresh("out/quickstart"));
    let report_file = arguments.report.clone().unwrap_or_else(|| out.join("report.json"));
    check_outputs(&out, &report_file)?;
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    let device = arguments.device.open()?;
    let space = match &arguments.grid {
        Some(path) => SearchSpace::read(path)?,
        None => SearchSpace::from_toml(include_str!("quickstart.toml"))?,
    };
    let policy = match &arguments.policy {
        Some(path) => read_policy(path)?,
        None => Policy::LossAware(LossAware::default()),
    };
    let (config, tokenizer) = (ModelConfig::read(&model)?, Tokenizer::read(&model)?);
    let rows = |given: &Option<PathBuf>, own: &str| -> Result<Dataset, DataError> {
        let path = given.clone().unwrap_or(quickstart.join(own));
        let rows = read_rows(&path, &tokenizer, &config)?;
        let (count, cut) = (rows.examples().len(), rows.truncated().len());
        tell(format_args!("{}: {count} rows, {cut} of them cut off by the context", path.display()));
        Ok(rows)
    };
    let train = rows(&arguments.train, "data/train.jsonl")?;
    let val = rows(&arguments.val, "data/val.jsonl")?;
    let rows = train.examples().len();
    let search = space.to_search()?;
    let jobs = if search.is_some() { vec![] } else { space.jobs(rows)? };
    let weights = ModelWeights::read(&model, &config)?;
    let mut backend = BurnBackend::with_dtype(config, weights, &device, arguments.dtype)?;
    if let Some(bytes) = arguments.memory_bytes {
        backend = backend.with_memory_budget(bytes);
    }

    let Arguments { slots, interval, audit, .. } = *arguments;
    let trainer = Trainer { slots, interval, audit, ..Trainer::default() };
    let mut progress = Progress::new(&jobs, space.search.as_ref().map_or(0, |settings| settings.jobs));
    let mut observe = |event: &_| progress.observe(event);
    let run = match (&search, &space.search) {
        (Some(search), &Some(SearchSettings { jobs, first, .. })) => {
            let candidate = |index, point: &_| Ok(Candidate::from(space.job(index, point, rows)?));
            let proposals = Proposals { search, candidate: &candidate, jobs, first };
            trainer.search(&mut backend, &train, &val, &proposals, &policy, &mut observe)
        }
        _ => {
            let candidates = jobs.into_iter().map(Candidate::from).collect();
            trainer.run(&mut backend, &train, &val, candidates, &policy, &mut observe)
        }
    };
    let (outcome, whole) = match run {
        Ok(outcome) => (outcome, true),
        Err(error) => {
            let why = chain(&error);
            // What was trained until then is not lost.
            let TrainError::Interrupted { outcome, .. } = error else { return Err(error.into()) };
            tell(format_args!("error: {why}"));
            (*outcome, false)
        }
    };
    drop(progress);
    let saved = save(&outcome, &model, &out, &report_file);
    Ok(if whole && saved { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the winner's adapter and the report, each if it can, and only then shows them: whoever reads may have left.
///
/// Returns whether both are there and the winner is better than no adapter.
fn save(outcome: &Outcome, model: &Path, out: &Path, report_file: &Path) -> bool {
    let report = &outcome.report;
    let written = || -> Result<String, Box<dyn Error>> {
        write_new(report_file, &serde_json::to_vec_pretty(report)?)?;
        Ok(format!("Report: {}.", report_file.display()))
    };
    let results = [save_adapter(outcome, model, out), written()];
    let text: Vec<&str> = results.iter().flatten().map(String::as_str).collect();
    // A closed pipe is no failure.
    let _ = writeln!(io::stdout(), "{}\n{}", report.table(), text.join("\n"));
    results.iter().filter_map(|r| r.as_ref().err()).for_each(|e| tell(format_args!("error: {}", chain(&**e))));
    results.iter().all(Result::is_ok)
}
