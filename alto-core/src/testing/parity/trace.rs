//! A recorded run, as `trace.json` holds it.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::Error;
use serde_json::{Map, Value};

use super::error::{ParityError, RowProblem};
use crate::adapter::Adapter;
use crate::batch::Example;
use crate::job::{AccumulationMode, AdamW, Decay, Job, Schedule};

/// A trace, as far as its kind is known.
pub(super) enum Replay {
    Sft(Box<Trace>),
    Unsupported { kind: String },
}

/// A recorded supervised run; what isn't needed to replay it is ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Trace {
    case: Case,
    #[serde(default)]
    optimizer: Optimizer,
    /// Micro-batches of every optimizer step.
    pub(super) train: Vec<Vec<PaddedBatch>>,
    pub(super) eval: Vec<PaddedBatch>,
    pub(super) f32: Record,
    pub(super) f64: Record,
    /// The largest distance of the two precisions' final adapters' entries.
    #[serde(default)]
    pub(super) final_maxdiff_f32_f64: f64,
}

#[derive(Debug, Deserialize)]
struct Case {
    lr: f64,
    batch: usize,
    accum: usize,
    accum_mode: AccumulationMode,
    clip: Option<f64>,
    sched: Decay,
    warmup: u64,
    steps: u64,
    wd: f64,
}

#[derive(Debug, Deserialize)]
struct Optimizer {
    betas: (f64, f64),
    eps: f64,
}

impl Default for Optimizer {
    fn default() -> Self {
        Self { betas: (0.9, 0.999), eps: 1e-8 }
    }
}

/// What one precision gave.
#[derive(Debug, Deserialize)]
pub(super) struct Record {
    pub(super) loss: Vec<f64>,
    pub(super) grad_norm: Vec<f64>,
    pub(super) eval_loss: Vec<f64>,
    pub(super) eval_step: Vec<u64>,
}

/// Rows padded on the right.
#[derive(Debug, Deserialize)]
pub(super) struct PaddedBatch {
    pub(super) input_ids: Vec<Vec<u32>>,
    labels: Vec<Vec<i64>>,
    attention_mask: Vec<Vec<u8>>,
}

impl PaddedBatch {
    /// The rows without their padding.
    pub(super) fn examples(&self) -> Vec<Example> {
        let rows = self.input_ids.iter().zip(&self.labels);
        let rows = rows.enumerate().map(|(row, (ids, labels))| {
            let length = self.length(row);
            Example::from_labels(&ids[..length], &labels[..length])
        });
        rows.collect()
    }

    /// Tokens of a row before its padding.
    pub(super) fn length(&self, row: usize) -> usize {
        self.attention_mask[row].iter().filter(|&&seen| seen != 0).count()
    }

    /// The first row that can't be used, and why; there are as many rows of labels and masks as of token ids.
    fn problem(&self) -> Option<(usize, RowProblem)> {
        let rows = self.input_ids.iter().zip(&self.labels).zip(&self.attention_mask);
        rows.enumerate().find_map(|(row, ((ids, labels), mask))| Some((row, row_problem(ids.len(), labels, mask)?)))
    }
}

fn row_problem(tokens: usize, labels: &[i64], mask: &[u8]) -> Option<RowProblem> {
    for (what, found) in [("labels", labels.len()), ("attention_mask", mask.len())] {
        if found != tokens {
            return Some(RowProblem::Length { what, found, expected: tokens });
        }
    }
    let length = mask.iter().take_while(|&&seen| seen == 1).count();
    if let Some(behind) = mask[length..].iter().position(|&seen| seen != 0) {
        let position = length + behind;
        return Some(RowProblem::Mask { position, found: mask[position] });
    }
    // A label that is no token would pass for one that doesn't count.
    let position = labels.iter().position(|&label| label > i64::from(u32::MAX))?;
    Some(RowProblem::Label { position, found: labels[position] })
}

impl Trace {
    /// Reads the trace of a case's folder.
    pub(super) fn read(case: &Path) -> Result<Replay, ParityError> {
        let path = case.join("trace.json");
        let text = fs::read_to_string(&path).map_err(|source| ParityError::Io { path: path.clone(), source })?;
        let wrong = |source| ParityError::Trace { path: path.clone(), source };
        let fields: Map<String, Value> = serde_json::from_str(&text).map_err(wrong)?;
        let kind = fields.get("kind").ok_or_else(|| wrong(Error::missing_field("kind")))?;
        let kind = String::deserialize(kind).map_err(wrong)?;
        if kind != "sft" {
            return Ok(Replay::Unsupported { kind });
        }
        let trace: Self = serde_json::from_value(Value::Object(fields)).map_err(wrong)?;
        trace.check(&path)?;
        Ok(Replay::Sft(Box::new(trace)))
    }

    fn check(&self, path: &Path) -> Result<(), ParityError> {
        let steps = self.case.steps as usize;
        let same = |what, found, expected| {
            let path = path.to_owned();
            if found == expected { Ok(()) } else { Err(ParityError::Length { path, what, found, expected }) }
        };
        same("train", self.train.len(), steps)?;
        for (name, record) in [("f32", &self.f32), ("f64", &self.f64)] {
            same("loss", record.loss.len(), steps)?;
            same("grad_norm", record.grad_norm.len(), steps)?;
            same("eval_loss", record.eval_loss.len(), record.eval_step.len())?;
            self.check_evaluation_steps(path, name, &record.eval_step)?;
        }
        same("eval_step", self.f64.eval_step.len(), self.f32.eval_step.len())?;
        for batch in self.train.iter().flatten().chain(&self.eval) {
            same("labels", batch.labels.len(), batch.input_ids.len())?;
            same("attention_mask", batch.attention_mask.len(), batch.input_ids.len())?;
        }
        for micro_batches in &self.train {
            same("an optimizer step", micro_batches.len(), self.case.accum)?;
        }
        self.check_rows(path)
    }

    /// An evaluation that is not behind a step of the run, or behind one that has another, would never be compared.
    fn check_evaluation_steps(&self, path: &Path, record: &'static str, at: &[u64]) -> Result<(), ParityError> {
        let steps = self.case.steps;
        let wrong = (0..at.len()).find(|&index| at[index] > steps || index > 0 && at[index] <= at[index - 1]);
        wrong.map_or(Ok(()), |index| {
            Err(ParityError::EvaluationStep { path: path.to_owned(), record, index, found: at[index], steps })
        })
    }

    fn check_rows(&self, path: &Path) -> Result<(), ParityError> {
        let wrong = |batch, (row, problem)| Err(ParityError::Row { path: path.to_owned(), batch, row, problem });
        for (step, micro_batches) in self.train.iter().enumerate() {
            for (index, batch) in micro_batches.iter().enumerate() {
                if let Some(problem) = batch.problem() {
                    return wrong(format!("train[{step}][{index}]"), problem);
                }
            }
        }
        for (index, batch) in self.eval.iter().enumerate() {
            if let Some(problem) = batch.problem() {
                return wrong(format!("eval[{index}]"), problem);
            }
        }
        let first = self.eval.first().filter(|batch| !batch.input_ids.is_empty());
        if first.is_none_or(|batch| batch.length(0) == 0) {
            return wrong("eval[0]".to_owned(), (0, RowProblem::Empty));
        }
        Ok(())
    }

    /// The job that the trace records, for its starting adapter.
    pub(super) fn job(&self, name: &str, start: &Adapter) -> Job {
        let Case { lr, batch, accum, accum_mode, clip, sched, warmup, steps, wd, .. } = self.case;
        Job {
            name: name.to_owned(),
            adapter: start.config.clone(),
            optimizer: AdamW {
                weight_decay: wd,
                betas: self.optimizer.betas,
                epsilon: self.optimizer.eps,
                clip,
                ..AdamW::new(lr)
            },
            schedule: Schedule { decay: sched, warmup_steps: warmup },
            batch,
            accumulation: accum,
            accumulation_mode: accum_mode,
            steps,
            seed: 0,
        }
    }
}
