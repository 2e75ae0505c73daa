//! Replays a recorded run and keeps the largest error of each kind.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::Inspect;
use super::error::ParityError;
use super::trace::{PaddedBatch, Trace};
use crate::adapter::{Adapter, LoraPair};
use crate::backend::{JobState, Slot};
use crate::batch::{Batch, Example, Lane, Objective};
use crate::dtype::Dtype;
use crate::job::{AccumulationMode, Job};
use crate::matrix::Matrix;
use crate::peft;
use crate::tensor_file::TensorFile;

/// The largest errors that are accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Of every step's loss and every evaluation's, relative.
    pub loss: f64,
    /// Of every step's gradient norm, relative.
    pub grad_norm: f64,
    /// Of the first step's gradients, relative to the tensor's largest entry.
    pub gradient: f64,
    /// Of logits, absolute.
    pub logits: f64,
    /// Of the final adapter's entries, absolute.
    pub adapter: f64,
}

/// What f32 arithmetic in another order comes to, with room: the references' own f32 and f64 part by 2e-7 in losses, 4e-7
/// in gradient norms and 2e-5 in final adapters.
pub const TOLERANCE: Tolerance = Tolerance { loss: 2e-5, grad_norm: 1e-4, gradient: 1e-5, logits: 1e-4, adapter: 1e-4 };

/// The largest error of each kind over a case; what was not compared is `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Of every compared step's loss, relative.
    pub loss: f64,
    /// Of every compared evaluation's loss, relative.
    pub evaluation: f64,
    /// Of every compared step's gradient norm, relative.
    pub grad_norm: f64,
    /// Of the first step's gradients, relative to the tensor's largest entry; infinite where the reference is all zero and
    /// this is not.
    pub gradient: f64,
    /// Of the logits through base, starting and, unless the run is chaotic, final adapter, absolute.
    pub logits: f64,
    /// Of the final adapter's entries, absolute; `None` if the run is chaotic.
    pub adapter: Option<f64>,
    /// Steps compared.
    pub steps: usize,
    /// Steps of the case; more than were compared if the run is chaotic.
    pub steps_recorded: usize,
    /// The largest that the case accepts: [`TOLERANCE`], or of a model of 16 bits three times the reference's own
    /// distance from f32.
    pub tolerance: Tolerance,
}

impl Errors {
    /// Whether every error is within the tolerance.
    pub fn within(&self, tolerance: &Tolerance) -> bool {
        // Written so that NaN is not within.
        self.loss <= tolerance.loss
            && self.evaluation <= tolerance.loss
            && self.grad_norm <= tolerance.grad_norm
            && self.gradient <= tolerance.gradient
            && self.logits <= tolerance.logits
            && self.adapter.is_none_or(|adapter| adapter <= tolerance.adapter)
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { loss, evaluation, grad_norm, gradient, logits, adapter, steps, steps_recorded, .. } = self;
        write!(
            f,
            "loss {loss:.1e}  eval {evaluation:.1e}  norm {grad_norm:.1e}  grad {gradient:.1e}  logits {logits:.1e}"
        )?;
        match adapter {
            Some(adapter) => write!(f, "  adapter {adapter:.1e}"),
            None => write!(f, "  chaotic, {steps} of {steps_recorded} steps compared"),
        }
    }
}

/// Keeps the larger error, and NaN once it is one.
fn raise(largest: &mut f64, error: f64) {
    if error > *largest || error.is_nan() {
        *largest = error;
    }
}

fn relative(got: f64, expected: f64) -> f64 {
    (got - expected).abs() / expected.abs()
}

/// The step, if any, at which the references' own f32 and f64 part: from then on rounding decides where the run goes.
fn parting_step(trace: &Trace) -> Option<usize> {
    (0..trace.train.len()).find(|&step| gaps(trace, step) != [0.0; 2])
}

/// The most, in tolerances, that the references' own f32 and f64 are apart at the step where they part.
const WIDEST_GAP: f64 = 100.0;

/// How far the references' own f32 and f64 are apart in a step's loss and gradient norm, where that is over the tolerance.
///
/// Where one number of theirs is off, the trace is wrong, not the run chaotic. So there are no gaps in runs that end
/// together, none before the first update, and none at a step where either would be over [`WIDEST_GAP`].
fn gaps(trace: &Trace, step: usize) -> [f64; 2] {
    let (single, Some(double)) = (&trace.f32, &trace.f64) else { return [0.0; 2] };
    if step == 0 || trace.dtype != Dtype::F32 || trace.final_maxdiff_f32_f64 <= TOLERANCE.adapter {
        return [0.0; 2];
    }
    let loss = relative(single.loss[step], double.loss[step]);
    let norm = relative(single.grad_norm[step], double.grad_norm[step]);
    // Written so that NaN is too wide.
    if !(loss <= WIDEST_GAP * TOLERANCE.loss && norm <= WIDEST_GAP * TOLERANCE.grad_norm) {
        return [0.0; 2];
    }
    let over = |gap: f64, tolerance: f64| if gap <= tolerance { 0.0 } else { gap };
    [over(loss, TOLERANCE.loss), over(norm, TOLERANCE.grad_norm)]
}

/// Trains the case as recorded; the largest errors on the way.
pub(super) fn replay(backend: &mut dyn Inspect, case: &Path, trace: &Trace) -> Result<Errors, ParityError> {
    let start = peft::import(&case.join("init"))?;
    let name = case.file_name().map_or_else(|| "case".into(), |name| name.to_string_lossy());
    let job = trace.job(&name, &start);
    let slot = backend.attach(&job, Some(JobState::starting_from(start)))?;
    let parting = parting_step(trace);
    let steps = parting.map_or(trace.train.len(), |step| step + 1);
    let mut errors = Errors {
        loss: 0.0,
        evaluation: 0.0,
        grad_norm: 0.0,
        gradient: first_gradient(backend, case, trace, &job, slot)?,
        logits: 0.0,
        adapter: None,
        steps,
        steps_recorded: trace.train.len(),
        tolerance: trace.tolerance(),
    };
    // What the gradient left in the accumulator goes with the slot.
    let state = backend.detach(slot)?;
    let slot = backend.attach(&job, Some(state))?;
    raise(&mut errors.logits, logits(backend, case, trace, None, "base")?);
    raise(&mut errors.logits, logits(backend, case, trace, Some(slot), "init")?);
    for step in 0..=steps {
        let recorded = trace.f32.eval_step.iter().position(|&at| at == step as u64);
        if let Some(evaluation) = recorded.filter(|_| parting.is_none_or(|parting| step <= parting)) {
            let got = evaluate(backend, trace, slot)?;
            raise(&mut errors.evaluation, relative(got, trace.f32.eval_loss[evaluation]));
        }
        if step < steps {
            run_step(backend, &job, &trace.train[step], slot, true)?;
        }
    }
    for (report, step) in backend.read()?.into_iter().zip(0..) {
        let [loss_gap, norm_gap] = gaps(trace, step);
        let beyond = |error: f64, gap: f64| if error <= gap { 0.0 } else { error - gap };
        raise(&mut errors.loss, beyond(relative(report.loss, trace.f32.loss[step]), loss_gap));
        raise(&mut errors.grad_norm, beyond(relative(report.grad_norm, trace.f32.grad_norm[step]), norm_gap));
    }
    if parting.is_none() {
        raise(&mut errors.logits, logits(backend, case, trace, Some(slot), "final")?);
        let expected = peft::import(&case.join("final"))?;
        errors.adapter = Some(adapter_error(&backend.snapshot(slot)?.adapter, &expected, case)?);
    }
    backend.detach(slot)?;
    Ok(errors)
}

/// One optimizer step from padded micro-batches; without `update`, only its gradient.
fn run_step(
    backend: &mut dyn Inspect,
    job: &Job,
    micro_batches: &[PaddedBatch],
    slot: Slot,
    update: bool,
) -> Result<(), ParityError> {
    let rows: Vec<Vec<Example>> = micro_batches.iter().map(PaddedBatch::examples).collect();
    let labelled = |rows: &[Example]| rows.iter().map(Example::labelled).sum::<usize>() as f64;
    let all: f64 = rows.iter().map(|rows| labelled(rows)).sum();
    for (index, rows) in rows.iter().enumerate() {
        let divisor = match job.accumulation_mode {
            AccumulationMode::TokenMean => all,
            AccumulationMode::MeanOfMeans => labelled(rows) * micro_batches.len() as f64,
        };
        let last = update && index + 1 == micro_batches.len();
        let lane = Lane { slot: Some(slot), rows: rows.len(), objective: Objective::default(), divisor, last };
        let mut batch = Batch::default();
        batch.push(lane, rows);
        backend.step(&batch)?;
    }
    Ok(())
}

fn evaluate(backend: &mut dyn Inspect, trace: &Trace, slot: Slot) -> Result<f64, ParityError> {
    let (mut sum, mut count) = (0.0, 0);
    for padded in &trace.eval {
        let rows = padded.examples();
        let lane =
            Lane { slot: Some(slot), rows: rows.len(), objective: Objective::default(), divisor: 1.0, last: false };
        let mut batch = Batch::default();
        batch.push(lane, &rows);
        for evaluation in backend.evaluate(&batch)?.into_iter().filter(|evaluation| evaluation.metric == "loss") {
            sum += evaluation.sum;
            count += evaluation.count;
        }
    }
    Ok(sum / count as f64)
}

/// The largest error of the first step's gradients, each relative to its tensor's largest entry.
fn first_gradient(
    backend: &mut dyn Inspect,
    case: &Path,
    trace: &Trace,
    job: &Job,
    slot: Slot,
) -> Result<f64, ParityError> {
    let Some(first) = trace.train.first() else { return Ok(0.0) };
    run_step(backend, job, first, slot, false)?;
    let recorded = TensorFile::open(&case.join("grad0.safetensors"))?;
    let mut largest = 0.0;
    let mut compared = 0;
    for (path, LoraPair { a, b }) in backend.gradient(slot)? {
        for (factor, got) in [("lora_A", a), ("lora_B", b)] {
            let name = format!("base_model.model.{path}.{factor}.weight");
            let expected = recorded.tensor(&name, &[got.rows(), got.columns()])?;
            let top = expected.iter().fold(0.0f64, |top, &x| top.max(f64::from(x).abs()));
            let error = largest_difference(got.data(), &expected);
            raise(&mut largest, if error == 0.0 { 0.0 } else { error / top });
            compared += 1;
        }
    }
    all_compared(&recorded, compared, case)?;
    Ok(largest)
}

/// An error if the file has tensors beyond those compared.
fn all_compared(recorded: &TensorFile, compared: usize, case: &Path) -> Result<(), ParityError> {
    let found = recorded.names().count();
    let path = case.join("grad0.safetensors");
    if found == compared {
        Ok(())
    } else {
        Err(ParityError::Length { path, what: "the file", found, expected: compared })
    }
}

/// The largest error of the first evaluation row's logits, absolute.
fn logits(
    backend: &mut dyn Inspect,
    case: &Path,
    trace: &Trace,
    slot: Option<Slot>,
    name: &str,
) -> Result<f64, ParityError> {
    // A trace that was read has this row.
    let batch = &trace.eval[0];
    let length = batch.length(0);
    let got: Matrix = backend.logits(&batch.input_ids[0][..length], slot)?;
    let recorded = TensorFile::open(&case.join("logits.safetensors"))?;
    let shape = recorded.shape(name).unwrap_or_default().to_vec();
    let expected = recorded.tensor(name, &shape)?;
    let columns = got.columns();
    if shape.len() != 2 || shape[0] < length || shape[1] != columns {
        recorded.tensor(name, &[length, columns])?;
    }
    // Positions behind the row are padding, which nothing depends on.
    Ok(largest_difference(got.data(), &expected[..length * columns]))
}

fn adapter_error(got: &Adapter, expected: &Adapter, case: &Path) -> Result<f64, ParityError> {
    let mut largest = 0.0;
    let missing = |tensor: &str| ParityError::MissingTensor { path: case.join("final"), tensor: tensor.to_owned() };
    let paths: BTreeMap<&String, ()> =
        got.modules.keys().chain(expected.modules.keys()).map(|path| (path, ())).collect();
    for path in paths.into_keys() {
        let (Some(got), Some(expected)) = (got.modules.get(path), expected.modules.get(path)) else {
            return Err(missing(path));
        };
        for (got, expected) in [(&got.a, &expected.a), (&got.b, &expected.b)] {
            if (got.rows(), got.columns()) != (expected.rows(), expected.columns()) {
                return Err(missing(path));
            }
            raise(&mut largest, largest_difference(got.data(), expected.data()));
        }
    }
    Ok(largest)
}

fn largest_difference(got: &[f32], expected: &[f32]) -> f64 {
    let mut largest = 0.0;
    for (&got, &expected) in got.iter().zip(expected) {
        raise(&mut largest, (f64::from(got) - f64::from(expected)).abs());
    }
    largest
}
