//! What every [`Backend`] has to keep to, as checks that an implementer runs on theirs.

mod accumulation;
mod error;
mod isolation;
mod observation;
mod refusals;
mod reports;
mod resumption;
mod trial;

use std::cell::RefCell;

pub use error::ConformanceError;

use crate::backend::Backend;
use crate::batch::Example;
use crate::job::Job;
use trial::{STEPS, Trial};

/// Runs every check on backends that `make` makes, each check on fresh ones.
///
/// `make` returns the same backend each time: the same base model, nothing attached. `jobs` are at least two, with
/// different names and budgets of at least 6 steps; better more, that differ in rank, targets, batch size,
/// accumulation and learning rate, none so high that training diverges and amplifies rounding. `examples` each have a
/// labelled token; rows are drawn from them in turn. `tolerance` is the largest relative difference of losses, and of
/// tensor entries relative to their tensor's largest, that counts as the same: 0 for a backend whose results don't
/// depend on who shares the batch, 1e-5 for f32 on a CPU.
///
/// What is checked:
/// - an unknown slot, a job that can't be, another job's state, and a batch that contradicts itself are refused with
///   the error that the trait names, and nothing has happened then;
/// - no slot is handed out twice;
/// - reports are keyed by slot and step, survive [`Backend::detach`], are read once, and tell the job's learning rate;
/// - the optimizer leaves a lane alone until its last micro-batch, and the micro-batches add up to the whole;
/// - a lane without rows changes nothing, for nobody;
/// - evaluation and snapshots count what they should and leave training as it was;
/// - a job that is detached and attached again, there or elsewhere, goes on as if it had never left;
/// - a job among others, whoever joins and leaves, and whoever had been there before, gets the losses it gets alone.
///
/// # Errors
/// The first check that fails, with its name and numbers; or what `jobs` or `examples` lack.
pub fn backend_conformance(
    make: &mut dyn FnMut() -> Box<dyn Backend>,
    jobs: &[Job],
    examples: &[Example],
    tolerance: f64,
) -> Result<(), ConformanceError> {
    let suite = Suite { make: RefCell::new(make), jobs, examples, tolerance };
    suite.check_material()?;
    for (name, check) in CHECKS {
        check(&suite, name)?;
    }
    Ok(())
}

type Check = fn(&Suite<'_>, &'static str) -> Result<(), ConformanceError>;

const CHECKS: [(&str, Check); 19] = [
    ("an unknown slot is refused", refusals::unknown_slot),
    ("a job that can't be is refused", refusals::impossible_job),
    ("another job's state is refused", refusals::foreign_state),
    ("a batch that contradicts itself is refused", refusals::contradictory_batch),
    ("no slot is handed out twice", reports::slots_are_unique),
    ("a job without a state starts as its seed says", reports::starts_follow_from_seeds),
    ("every step is reported once", reports::every_step_once),
    ("unread reports survive detaching", reports::survive_detaching),
    ("a lane is left alone until its last micro-batch", accumulation::waits_for_last),
    ("micro-batches add up to the whole", accumulation::adds_up),
    ("a lane without rows changes nothing", accumulation::empty_lane),
    ("an empty last micro-batch ends the step", accumulation::empty_last),
    ("evaluation counts labelled tokens", observation::evaluation_counts),
    ("evaluation doesn't train", observation::evaluation_does_not_train),
    ("a snapshot doesn't disturb", observation::snapshot_does_not_disturb),
    ("memory is accounted for", observation::memory_adds_up),
    ("a job goes on where it was", resumption::goes_on),
    ("a job among others is as if alone", isolation::as_if_alone),
    ("a job inherits nothing from former tenants", isolation::inherits_nothing),
];

/// What the checks work with.
struct Suite<'a> {
    make: RefCell<&'a mut dyn FnMut() -> Box<dyn Backend>>,
    jobs: &'a [Job],
    examples: &'a [Example],
    tolerance: f64,
}

impl Suite<'_> {
    /// A fresh backend under the check of this name.
    fn trial(&self, check: &'static str) -> Trial<'_> {
        let backend = (self.make.borrow_mut())();
        Trial { check, backend, examples: self.examples, tolerance: self.tolerance }
    }

    fn check_material(&self) -> Result<(), ConformanceError> {
        let at_least = |what, found: u64, expected| match found >= expected {
            true => Ok(()),
            false => Err(ConformanceError::Material { what, found, expected }),
        };
        at_least("jobs", self.jobs.len() as u64, 2)?;
        at_least("examples", self.examples.len() as u64, 1)?;
        for job in self.jobs {
            at_least("steps in the budget of a job", job.steps, STEPS)?;
        }
        for example in self.examples {
            at_least("labelled tokens in an example", example.labelled() as u64, 1)?;
        }
        Ok(())
    }
}
