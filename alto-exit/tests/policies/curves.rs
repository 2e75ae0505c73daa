//! Curves made by hand.

use alto_exit::{Curve, EvaluationPoint, ExitPolicy, TrainPoint, Verdict};

/// Optimizer steps in the budget of every job here.
pub(crate) const BUDGET: f64 = 100.0;

pub(crate) fn train_point(step: u64, loss: f64) -> TrainPoint {
    TrainPoint { step, progress: step as f64 / BUDGET, loss, grad_norm: None }
}

pub(crate) fn evaluation(step: u64, loss: f64) -> EvaluationPoint {
    EvaluationPoint { step, progress: step as f64 / BUDGET, loss }
}

/// One training loss and one evaluation per step, the first at step 1.
pub(crate) fn stepwise(train: &[f64], validation: &[f64]) -> Curve {
    Curve {
        train: (1..).zip(train).map(|(step, &loss)| train_point(step, loss)).collect(),
        evaluations: (1..).zip(validation).map(|(step, &loss)| evaluation(step, loss)).collect(),
        end: None,
    }
}

/// The curve as it was when only its first `evaluations` evaluations were done.
pub(crate) fn prefix(curve: &Curve, evaluations: usize) -> Curve {
    let known = curve.evaluations[..evaluations].to_vec();
    let until = known.last().map_or(0, |latest| latest.step);
    Curve {
        train: curve.train.iter().filter(|point| point.step <= until).copied().collect(),
        evaluations: known,
        end: None,
    }
}

pub(crate) fn alone(policy: &dyn ExitPolicy, curve: &Curve) -> Verdict {
    policy.judge(0, std::slice::from_ref(curve))
}

/// For each evaluation in turn, whether the policy ends the job there.
pub(crate) fn exits(policy: &dyn ExitPolicy, curve: &Curve) -> Vec<bool> {
    (1..=curve.evaluations.len()).map(|n| alone(policy, &prefix(curve, n)) != Verdict::Keep).collect()
}
