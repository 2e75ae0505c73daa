//! Verdicts given live, given again from what was recorded.

use std::sync::Mutex;

use alto_exit::replay::Replay;
use alto_exit::{
    AdaptiveRung, AnyOf, Asha, AtLeastPeers, Curve, Diverging, End, ExitPolicy, Extrapolation, Hyperband, LossAware,
    MedianStopping, NotBefore, Overfitting, Patience, Patient, SuccessiveHalving, Underperforming, Verdict,
    WorseThanUntrained,
};

use crate::runs::sweeps;

/// Asks another policy, and writes down what it answered and how far all jobs had come.
#[derive(Debug)]
struct Logged {
    policy: Box<dyn ExitPolicy>,
    log: Mutex<Vec<Asked>>,
}

#[derive(Debug)]
struct Asked {
    jobs: Vec<usize>,
    verdicts: Vec<Verdict>,
    /// By job, how many training losses and evaluations it had.
    known: Vec<(usize, usize)>,
}

impl ExitPolicy for Logged {
    fn rungs(&self, job: usize) -> Vec<f64> {
        self.policy.rungs(job)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.judge_all(&[job], cohort).remove(0)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        let verdicts = self.policy.judge_all(jobs, cohort);
        let known = cohort.iter().map(|curve| (curve.train.len(), curve.evaluations.len())).collect();
        self.log.lock().expect("no judge panicked").push(Asked {
            jobs: jobs.to_vec(),
            verdicts: verdicts.clone(),
            known,
        });
        verdicts
    }
}

/// Those whose verdict depends on the job's own curve and on records at marks alone.
fn by_records() -> Vec<Box<dyn ExitPolicy>> {
    let overfitting = Overfitting::default;
    vec![
        Box::new(Diverging::default()),
        Box::new(overfitting()),
        Box::new(Overfitting { require_rise: true, ..overfitting() }),
        Box::new(Underperforming::default()),
        Box::new(LossAware::default()),
        Box::new(WorseThanUntrained::default()),
        Box::new(Patience::default()),
        Box::new(Patience::GeneralizationLoss { alpha: 5.0 }),
        Box::new(Patience::Quotient { alpha: 3.0, strip: 5 }),
        Box::new(Patience::Rising { strips: 2, strip: 3 }),
        Box::new(SuccessiveHalving::default()),
        Box::new(Hyperband::default()),
        Box::new(AdaptiveRung::default()),
        Box::new(AdaptiveRung { risk: 0.3, ..AdaptiveRung::default() }),
        Box::new(AnyOf(vec![Box::new(overfitting()), Box::new(AdaptiveRung::default())])),
        Box::new(Patient { evaluations: 3, policy: overfitting() }),
    ]
}

fn by_all_that_is_known() -> Vec<Box<dyn ExitPolicy>> {
    vec![
        Box::new(MedianStopping::default()),
        Box::new(Extrapolation::default()),
        Box::new(Asha::default()),
        // Without its first rungs, at which nobody waits then.
        Box::new(NotBefore { progress: 0.3, policy: AdaptiveRung::default() }),
        Box::new(AtLeastPeers { peers: 12, policy: Overfitting::default() }),
    ]
}

fn prefix(curve: &Curve, (train, evaluations): (usize, usize)) -> Curve {
    Curve { train: curve.train[..train].to_vec(), evaluations: curve.evaluations[..evaluations].to_vec(), end: None }
}

#[test]
fn judging_growing_prefixes_gives_the_verdicts_given_live() {
    let corpora = sweeps();
    let mut exits = 0;
    for policy in by_records().into_iter().chain(by_all_that_is_known()) {
        let logged = Logged { policy, log: Mutex::default() };
        // Two tasks, one of which overfits; few slots, so that jobs come in turns.
        for corpus in corpora.iter().filter(|corpus| ["ask-s0", "solve-s1"].contains(&corpus.label().as_str())) {
            let curves = Replay { slots: Some(5), ..Replay::default() }.run(&corpus.runs, &logged).unwrap();
            for Asked { jobs, verdicts, known } in std::mem::take(&mut *logged.log.lock().unwrap()) {
                let cohort: Vec<Curve> = curves.iter().zip(known).map(|(curve, known)| prefix(curve, known)).collect();
                let again: Vec<Verdict> = jobs.iter().map(|&job| logged.policy.judge(job, &cohort)).collect();
                assert_eq!(again, verdicts, "{:?} on {}", logged.policy, corpus.label());
                exits += verdicts.iter().filter(|verdict| **verdict != Verdict::Keep).count();
            }
        }
    }
    assert!(exits > 300, "{exits}");
}

#[test]
fn a_job_that_exited_exits_again_for_its_reason_when_all_is_over() {
    for policy in by_records() {
        let mut exits = 0;
        for corpus in sweeps() {
            let curves = Replay::default().run(&corpus.runs, &policy).unwrap();
            for (job, curve) in curves.iter().enumerate() {
                if let Some(End::Exited(reason)) = &curve.end {
                    let again = policy.judge(job, &curves);
                    assert_eq!(again, Verdict::Exit(reason.clone()), "{policy:?}, {}", corpus.name(job));
                    exits += 1;
                }
            }
        }
        assert!(exits > 0, "{policy:?} ends nobody");
    }
}
