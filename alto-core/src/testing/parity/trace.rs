//! A recorded run, as `trace.json` holds it.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::Error;
use serde_json::{Map, Value};

use super::compare::{TOLERANCE, Tolerance};
use super::error::{ParityError, RowProblem};
use crate::adapter::Adapter;
use crate::batch::Example;
use crate::dtype::Dtype;
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
    /// Of the frozen model's weights and activations.
    #[serde(default)]
    pub(super) dtype: Dtype,
    /// What is compared with; of a model of 16 bits, its rounded weights computed with in f32.
    pub(super) f32: Record,
    /// Of a model in f32.
    pub(super) f64: Option<Record>,
    f16: Option<Rounded>,
    bf16: Option<Rounded>,
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

/// What the dtype of a frozen model of 16 bits gave, and how far that is from f32 at most.
#[derive(Debug, Deserialize)]
struct Rounded {
    #[serde(flatten)]
    record: Record,
    maxdiff: Distances,
}

/// The largest distances between a run in 16 bits and one in f32, over several pairs of runs.
#[derive(Debug, Deserialize)]
struct Distances {
    /// Of every step's loss, relative.
    loss: f64,
    /// Of every evaluation's loss, relative.
    eval_loss: f64,
    /// Of every step's gradient norm, relative.
    grad_norm: f64,
    /// Of the first step's gradients, relative to the tensor's largest entry.
    gradient: f64,
    /// Of logits, absolute.
    logits: f64,
    /// Of the final adapter's entries, absolute.
    adapter: f64,
}

/// How many times the reference's own distance between 16 bits and f32 is accepted of a backend.
///
/// Both round as often, but not in the same places: over many steps their errors are alike in size, at any one step either may
/// be the unlucky one. Over 256 steps of the recorded models, from eight starts each, ours came to 0.8 to 1.3 times the
/// reference's root mean square, and 1.8 times its largest at most.
const FACTOR: f64 = 3.0;

/// The most that the reference's own 16 bits may be from its f32: a few times what bf16 comes to on the recorded models.
const WIDEST: Tolerance = Tolerance { loss: 0.01, grad_norm: 0.05, gradient: 0.2, logits: 0.5, adapter: 0.05 };

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
        match trace.dtype {
            Dtype::F32 if trace.f64.is_none() => return Err(wrong(Error::missing_field("f64"))),
            Dtype::F16 if trace.f16.is_none() => return Err(wrong(Error::missing_field("f16"))),
            Dtype::Bf16 if trace.bf16.is_none() => return Err(wrong(Error::missing_field("bf16"))),
            _ => trace.check(&path)?,
        }
        Ok(Replay::Sft(Box::new(trace)))
    }

    fn check(&self, path: &Path) -> Result<(), ParityError> {
        let steps = self.case.steps as usize;
        let same = |what, found, expected| {
            let path = path.to_owned();
            if found == expected { Ok(()) } else { Err(ParityError::Length { path, what, found, expected }) }
        };
        same("train", self.train.len(), steps)?;
        let (name, other) = self.other();
        for (name, record) in [("f32", &self.f32), (name, other)] {
            same("loss", record.loss.len(), steps)?;
            same("grad_norm", record.grad_norm.len(), steps)?;
            same("eval_loss", record.eval_loss.len(), record.eval_step.len())?;
            self.check_evaluation_steps(path, name, &record.eval_step)?;
        }
        same("eval_step", other.eval_step.len(), self.f32.eval_step.len())?;
        for batch in self.train.iter().flatten().chain(&self.eval) {
            same("labels", batch.labels.len(), batch.input_ids.len())?;
            same("attention_mask", batch.attention_mask.len(), batch.input_ids.len())?;
        }
        for micro_batches in &self.train {
            same("an optimizer step", micro_batches.len(), self.case.accum)?;
        }
        self.check_rows(path)?;
        self.check_distances(path)
    }

    /// A reference that is far from itself, or says that it is, would let anything pass.
    fn check_distances(&self, path: &Path) -> Result<(), ParityError> {
        let Some(Rounded { record, maxdiff }) = self.rounded() else { return Ok(()) };
        let farthest = |rounded: &[f64], exact: &[f64]| {
            let distances = rounded.iter().zip(exact).map(|(rounded, exact)| (rounded - exact).abs() / exact.abs());
            distances
                .fold(0.0, |most: f64, distance| if distance > most || distance.is_nan() { distance } else { most })
        };
        // The recorded pair is one of those that the distances are the largest of.
        let of_record = [
            ("loss", farthest(&record.loss, &self.f32.loss), maxdiff.loss),
            ("eval_loss", farthest(&record.eval_loss, &self.f32.eval_loss), maxdiff.eval_loss),
            ("grad_norm", farthest(&record.grad_norm, &self.f32.grad_norm), maxdiff.grad_norm),
        ];
        let stated = [
            ("maxdiff.loss", maxdiff.loss, WIDEST.loss),
            ("maxdiff.eval_loss", maxdiff.eval_loss, WIDEST.loss),
            ("maxdiff.grad_norm", maxdiff.grad_norm, WIDEST.grad_norm),
            ("maxdiff.gradient", maxdiff.gradient, WIDEST.gradient),
            ("maxdiff.logits", maxdiff.logits, WIDEST.logits),
            ("maxdiff.adapter", maxdiff.adapter, WIDEST.adapter),
        ];
        for (what, found, most) in
            of_record.map(|(what, found, most)| (what, found, most * (1.0 + 1e-9))).into_iter().chain(stated)
        {
            if found.is_nan() || most.is_nan() || found > most {
                let path = path.to_owned();
                return Err(ParityError::Reference { path, what, dtype: self.dtype, found, most });
            }
        }
        Ok(())
    }

    /// The record beside that in f32, and its name.
    fn other(&self) -> (&'static str, &Record) {
        let other = self.rounded().map(|rounded| &rounded.record).or(self.f64.as_ref());
        (if self.dtype == Dtype::F32 { "f64" } else { self.dtype.name() }, other.expect("checked when it was read"))
    }

    fn rounded(&self) -> Option<&Rounded> {
        match self.dtype {
            Dtype::F32 => None,
            Dtype::F16 => self.f16.as_ref(),
            Dtype::Bf16 => self.bf16.as_ref(),
        }
    }

    /// What is accepted of a backend: what f32 comes to, or for 16 bits [`FACTOR`] times the reference's own distance.
    pub(super) fn tolerance(&self) -> Tolerance {
        let Some(Rounded { maxdiff, .. }) = self.rounded() else { return TOLERANCE };
        Tolerance {
            loss: TOLERANCE.loss.max(FACTOR * maxdiff.loss.max(maxdiff.eval_loss)),
            grad_norm: TOLERANCE.grad_norm.max(FACTOR * maxdiff.grad_norm),
            gradient: TOLERANCE.gradient.max(FACTOR * maxdiff.gradient),
            logits: TOLERANCE.logits.max(FACTOR * maxdiff.logits),
            adapter: TOLERANCE.adapter.max(FACTOR * maxdiff.adapter),
        }
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
