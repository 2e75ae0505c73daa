//! Early exit of hopeless training jobs, from their loss curves alone.
//!
//! A sweep trains many configurations, and most of them show early that they lead nowhere: they diverge, they overfit,
//! or others are simply better. A policy reads the curves of all jobs and says which one stops, with a reason that holds
//! the numbers it was decided by. Nothing here trains anything or knows what is trained: hand in the losses of whatever
//! you have.
//!
//! # Judging
//! After each evaluation of a job, ask about it:
//!
//! ```
//! use alto_exit::{Curve, EvaluationPoint, ExitPolicy, LossAware, Reason, TrainPoint, Verdict};
//!
//! let policy = LossAware::default();
//! policy.check()?;
//!
//! // One job, 100 steps in its budget, evaluated every 10; its losses run away.
//! let mut curve = Curve::default();
//! for step in 1..=30 {
//!     let progress = step as f64 / 100.0;
//!     let loss = 2.0 + 0.05 * step as f64;
//!     curve.train.push(TrainPoint { step, progress, loss, grad_norm: None });
//!     if step % 10 == 0 {
//!         curve.evaluations.push(EvaluationPoint { step, progress, loss });
//!     }
//! }
//!
//! let verdict = policy.judge(0, &[curve]);
//! assert!(matches!(verdict, Verdict::Exit(Reason::Diverging { step: 30, .. })));
//! if let Verdict::Exit(reason) = verdict {
//!     println!("job 0 ends: {reason}");
//! }
//! # Ok::<(), alto_exit::SettingError>(())
//! ```
//!
//! [`LossAware`] is the early exit of the paper: [`Diverging`], [`Overfitting`] and [`Underperforming`] together. The last
//! one compares jobs at a *rung*, a progress mark at which every job waits until the others have come as far:
//!
//! ```
//! use alto_exit::{Curve, EvaluationPoint, ExitPolicy, Underperforming, Verdict};
//!
//! let policy = Underperforming { mark: 0.05, keep: 0.5 };
//! assert_eq!(policy.rungs(0), [0.05]);
//!
//! let at_rung = |loss| Curve {
//!     evaluations: vec![EvaluationPoint { step: 5, progress: 0.05, loss }],
//!     ..Curve::default()
//! };
//! let cohort = [at_rung(1.9), at_rung(1.4), at_rung(2.2), at_rung(1.6)];
//! let stays: Vec<bool> = (0..4).map(|job| policy.judge(job, &cohort) == Verdict::Keep).collect();
//! assert_eq!(stays, [false, true, false, true]);
//! ```
//!
//! # Which policy
//! | Policy | It ends a job that | Use it |
//! |---|---|---|
//! | [`LossAware`] | diverges, overfits or lags at a rung | first; the paper's three together |
//! | [`Diverging`] | has both losses rising, or one not finite | always; it costs nothing |
//! | [`WorseThanUntrained`] | stays above the base model's loss | always; it sees what exploded and stays high |
//! | [`Overfitting`] | has validation far above training | where data is small and epochs are many |
//! | [`Patience`] | has stopped improving, by its own validation loss | for one job, or where jobs are not to be compared |
//! | [`Underperforming`] | is not among the best at one rung | for most of the savings, where jobs can be parked |
//! | [`AdaptiveRung`] | can hardly come in first any more | for savings that hardly ever cost the best; the risk is a setting |
//! | [`SuccessiveHalving`] | is not among the best at one of several rungs | for one survivor of many jobs |
//! | [`Hyperband`] | the same, from rungs that differ by bracket | where the first losses may mislead |
//! | [`Asha`] | the same, among those that came before it | where jobs arrive one by one, or can't wait |
//! | [`MedianStopping`] | is worse than the median of the others | for a mild cut without waiting or tuning |
//! | [`Extrapolation`] | is not expected to reach the best | late in long runs with many evaluations |
//! | [`Never`] | (none) | to compare with |
//!
//! What they saved of all training, and what the best adapter left behind lacks to the best there was, on average in nats
//! per token, with default settings on nine recorded sweeps (204 jobs of five tasks):
//!
//! | Policy | Saved | Best kept | Lost |
//! |---|---:|---:|---:|
//! | [`SuccessiveHalving`] | 87.5% | 3 of 9 | 0.0265 |
//! | [`LossAware`] | 87.4% | 1 of 9 | 0.0331 |
//! | [`Asha`] | 81.2% | 4 of 9 | 0.0164 |
//! | [`AdaptiveRung`] at a risk of 0.3, and [`Overfitting`] with `require_rise` | 77.0% | 8 of 9 | 0.0001 |
//! | [`Underperforming`] | 71.2% | 4 of 9 | 0.0259 |
//! | [`Hyperband`] | 68.4% | 5 of 9 | 0.0022 |
//! | [`AdaptiveRung`] at a risk of 0.3 | 68.2% | 9 of 9 | 0 |
//! | [`Extrapolation`] | 57.0% | 9 of 9 | 0 |
//! | [`AdaptiveRung`] | 52.6% | 9 of 9 | 0 |
//! | [`MedianStopping`] | 43.8% | 9 of 9 | 0 |
//! | [`Overfitting`] | 37.7% | 4 of 9 | 0.0083 |
//! | [`Patience`] | 30.9% | 8 of 9 | 0.0011 |
//! | [`Diverging`] | 24.7% | 6 of 9 | 0.0005 |
//! | [`WorseThanUntrained`] | 14.2% | 9 of 9 | 0 |
//!
//! `cargo run --release -p alto-exit --example replay -- testdata/curves/gsm-nano/*.json testdata/curves/*.json` prints these
//! and more. So: where a few hundredths of a nat don't matter, [`LossAware`]; where the best adapter does, [`AdaptiveRung`],
//! with [`Overfitting`] where jobs train for many epochs. Both need jobs to wait for one another; where they can't,
//! [`Extrapolation`], or [`MedianStopping`].
//!
//! [`AnyOf`] puts several together. [`Patient`], [`NotBefore`] and [`AtLeastPeers`] hold a policy back: until it insists,
//! until a progress, until enough others are there. All of them come from files, as a [`PolicyFile`].
//!
//! Losses scaled by a positive constant change no verdict of any but [`Diverging`], whose threshold is in nats per
//! token, and [`LossAware`], which has it within. Jobs in another order get the same verdicts, but for ties and for
//! [`Hyperband`], which goes by index.
//!
//! # What to try instead
//! A job that ends leaves a place free. [`search`] says what to try there, from all curves so far: a grid, points at
//! random, or a tree-structured Parzen estimator.
//!
//! # A policy of your own
//! Settings in the struct, everything else off the curves: "for a while" is counted there, never in a field.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use alto_exit::{AnyOf, Curve, EvaluationPoint, ExitPolicy, LossAware, Reason, Verdict};
//!
//! /// Ends a job that hasn't improved for a share of its budget.
//! #[derive(Debug)]
//! struct Plateau {
//!     share: f64,
//! }
//!
//! impl ExitPolicy for Plateau {
//!     fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
//!         let curve = &cohort[job];
//!         let (Some(best), Some(latest)) = (curve.best(), curve.evaluations.last()) else { return Verdict::Keep };
//!         let since = latest.progress - best.progress;
//!         if since < self.share {
//!             return Verdict::Keep;
//!         }
//!         let numbers = BTreeMap::from([("best".into(), best.loss), ("since".into(), since)]);
//!         Verdict::Exit(Reason::Custom { policy: "plateau".into(), numbers })
//!     }
//! }
//!
//! let policy = AnyOf(vec![Box::new(LossAware::default()), Box::new(Plateau { share: 0.25 })]);
//! let losses = [(20, 1.5), (40, 1.25), (60, 1.25), (80, 1.25)];
//! let evaluations = losses.map(|(step, loss)| EvaluationPoint { step, progress: step as f64 / 128.0, loss });
//! let curve = Curve { evaluations: evaluations.to_vec(), ..Curve::default() };
//!
//! let Verdict::Exit(reason) = policy.judge(0, &[curve]) else { panic!("flat since step 40") };
//! assert_eq!(reason.to_string(), "plateau: best = 1.2500, since = 0.3125");
//! ```

#![forbid(unsafe_code)]

mod any_float;
mod curve;
mod halving;
mod policies;
mod policy;
mod policy_file;
mod power_law;
mod race;
mod rank_correlation;
mod ranking;
mod reason;
pub mod replay;
mod rungs;
pub mod search;
mod setting;
mod smoothed;
mod version;

pub use curve::{Curve, End, EvaluationPoint, TrainPoint};
pub use policies::{
    AdaptiveRung, AnyOf, Asha, AtLeastPeers, Diverging, Extrapolation, Hyperband, LossAware, MedianStopping, Never,
    NotBefore, Overfitting, Patience, Patient, SuccessiveHalving, Underperforming, WorseThanUntrained,
};
pub use policy::{ExitPolicy, Verdict};
pub use policy_file::{POLICY_VERSION, Policy, PolicyFile};
pub use reason::{Reason, Series, Standing};
pub use rungs::{BadRung, Closing, Rungs};
pub use setting::SettingError;
pub use smoothed::Smoothed;
