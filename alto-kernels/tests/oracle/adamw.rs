//! `grouped_adamw` against its reference.

use std::ops::Range;

use alto_kernels::reference::{self, AdamWOutcome, Matrix};
use alto_kernels::{AdamWGroup, AdamWState, grouped_adamw};
use burn::tensor::Tensor;

use crate::compare::{assert_close, assert_equal};
use crate::data::Draws;
use crate::device::{matrix, tensor_f32};
use crate::shapes::{Shape, shapes};
use crate::tolerance::ADAMW;

/// Parameters, first and second moments: a row each.
#[derive(Debug, Clone, PartialEq)]
struct State([Matrix; 3]);

const NAMES: [&str; 3] = ["parameters", "first moments", "second moments"];

impl State {
    /// As if some steps had been taken; second moments are not negative.
    fn random(entries: usize) -> Self {
        let mut draws = Draws::new(71);
        let mut state = [draws.matrix(1, entries), draws.matrix(1, entries), draws.matrix(1, entries)];
        state[2].data_mut().iter_mut().for_each(|v| *v = v.abs());
        Self(state)
    }

    fn fast(&self, gradient: &Matrix, groups: &[AdamWGroup]) -> (Self, Matrix) {
        let [parameters, first, second] = self.0.each_ref().map(tensor);
        let (state, report) = grouped_adamw(AdamWState { parameters, first, second }, tensor(gradient), groups);
        (Self([state.parameters, state.first, state.second].map(matrix)), matrix(report))
    }

    fn plain(&self, gradient: &Matrix, groups: &[AdamWGroup]) -> (Self, Vec<AdamWOutcome>) {
        let [mut p, mut m, mut v] = self.0.clone();
        let step = |group| reference::adamw(p.data_mut(), m.data_mut(), v.data_mut(), gradient.data(), group);
        let outcomes = groups.iter().map(step).collect();
        (Self([p, m, v]), outcomes)
    }
}

/// The optimizer takes no part in differentiation, and computes in f32 whatever is under test.
fn tensor(row: &Matrix) -> Tensor<1> {
    tensor_f32(row, [row.columns()]).inner()
}

/// A group per lane: its part of `a`, then of `b`, which lies behind all of `a`. Every one has settings of its own.
fn groups(shape: &Shape) -> Vec<AdamWGroup> {
    let behind = shape.ranks * shape.d_in;
    let span =
        |ranks: &Range<usize>, start: usize, width: usize| start + ranks.start * width..start + ranks.end * width;
    let group = |(i, ranks): (usize, &Range<usize>)| AdamWGroup {
        spans: vec![span(ranks, 0, shape.d_in), span(ranks, behind, shape.d_out)],
        learning_rate: [1e-3, 0.3, 2e-2][i % 3],
        weight_decay: [0.01, 0.0, 0.1, 0.5][i % 4],
        betas: [(0.9, 0.999), (0.8, 0.95)][i % 2],
        epsilon: [1e-8, 1e-3][i % 2],
        clip: [Some(1.0), None, Some(0.01), Some(1e6)][i % 4],
        step: [1, 2, 40, 100_000, 7][i % 5],
    };
    shape.lanes.iter().map(|lane| &lane.ranks).enumerate().map(group).collect()
}

fn entries(shape: &Shape) -> usize {
    shape.ranks * (shape.d_in + shape.d_out)
}

fn part(row: &Matrix, span: &Range<usize>) -> Matrix {
    Matrix::new(1, span.len(), row.data()[span.clone()].to_vec())
}

#[test]
fn agrees_with_the_reference_over_three_steps() {
    for shape in shapes() {
        let entries = entries(&shape);
        let mut groups = groups(&shape);
        let mut got = State::random(entries);
        let mut expected = got.clone();
        for step in 0..3 {
            let gradient = Draws::new(72 + step).matrix(1, entries);
            let (report, outcomes);
            (got, report) = got.fast(&gradient, &groups);
            (expected, outcomes) = expected.plain(&gradient, &groups);
            let what = |name: &str| format!("{}, step {step}: {name}", shape.name);
            for ((name, got), expected) in NAMES.iter().zip(&got.0).zip(&expected.0) {
                assert_close(&what(name), got, expected, ADAMW.over(1));
            }
            let outcomes = outcomes.iter().flat_map(|outcome| [outcome.norm, -1.0]).collect();
            let outcomes = Matrix::new(groups.len(), 2, outcomes);
            assert_close(&what("report"), &report, &outcomes, ADAMW.over(1));
            groups.iter_mut().for_each(|group| group.step += 1);
        }
    }
}

/// At the first step from zero, the update is the learning rate towards the gradient's sign, however small a rounding
/// of `1 - beta` is against `beta`.
#[test]
fn the_first_step_has_the_length_of_the_learning_rate() {
    let zeros = Matrix::zeros(1, 4);
    let state = State([zeros.clone(), zeros.clone(), zeros]);
    let gradient = Matrix::new(1, 4, vec![3.0, -3.0, 1e-3, -2e5]);
    let group = AdamWGroup { spans: vec![0..1, 1..4], ..plain_group() };
    let (State([parameters, ..]), _) = state.fast(&gradient, &[group]);
    let expected = Matrix::new(1, 4, vec![-0.125, 0.125, -0.125, 0.125]);
    assert_close("parameters", &parameters, &expected, ADAMW.over(1));
}

fn plain_group() -> AdamWGroup {
    AdamWGroup {
        spans: vec![],
        learning_rate: 0.125,
        weight_decay: 0.0,
        betas: (0.9, 0.999),
        epsilon: 1e-12,
        clip: None,
        step: 1,
    }
}

#[test]
fn entries_of_no_group_stay_whatever_their_gradient() {
    let before = State::random(10);
    let mut gradient = Draws::new(73).matrix(1, 10);
    for stray in [0, 4, 9] {
        gradient.data_mut()[stray] = f64::NAN;
    }
    let groups = [vec![5..6, 6..9], vec![1..2, 3..4], vec![]].map(|spans| AdamWGroup { spans, ..plain_group() });
    let (after, report) = before.fast(&gradient, &groups);
    for (before, after) in before.0.iter().zip(&after.0) {
        for i in 0..10 {
            let stays = [0, 2, 4, 9].contains(&i);
            assert_eq!(after[(0, i)] == before[(0, i)], stays, "entry {i}");
        }
    }
    let norm = |span: Range<usize>| span.map(|i| gradient[(0, i)].powi(2)).sum::<f64>();
    let expected = [norm(5..9).sqrt(), -1.0, (norm(1..2) + norm(3..4)).sqrt(), -1.0, 0.0, -1.0];
    assert_close("report", &report, &Matrix::new(3, 2, expected.to_vec()), ADAMW.over(1));
}

#[test]
fn a_group_that_is_not_finite_is_left_alone_and_names_its_first_bad_span() {
    for shape in shapes().iter().filter(|shape| shape.lanes.len() > 1) {
        let groups = groups(shape);
        let clean = Draws::new(74).matrix(1, entries(shape));
        let before = State::random(entries(shape));
        let (healthy, healthy_report) = before.fast(&clean, &groups);
        for (sick, group) in groups.iter().enumerate().step_by(5) {
            for (bad_span, bad) in [(0, f64::NAN), (1, f64::INFINITY), (1, f64::NEG_INFINITY)] {
                let Some(last) = group.spans[bad_span].clone().next_back() else { continue };
                let mut gradient = clean.clone();
                gradient.data_mut()[last] = bad;
                let (after, report) = before.fast(&gradient, &groups);
                let what = |name: &str| format!("{}, group {sick}, {bad}: {name}", shape.name);
                for (other, own) in groups.iter().enumerate() {
                    let expected = if other == sick { &before } else { &healthy };
                    for span in &own.spans {
                        for ((name, got), expected) in NAMES.iter().zip(&after.0).zip(&expected.0) {
                            assert_equal(&what(name), &part(got, span), &part(expected, span));
                        }
                    }
                    if other != sick {
                        assert_eq!(report.row(other), healthy_report.row(other), "{}", what("report"));
                    }
                }
                assert!(!report[(sick, 0)].is_finite(), "{}", what("norm"));
                assert_eq!(report[(sick, 1)], bad_span as f64, "{}", what("report"));
            }
        }
    }
}

/// Squares of 1e25 overflow f32, the gradient is finite all the same.
#[test]
fn a_clip_tames_gradients_whose_squares_overflow() {
    let before = State::random(3_000);
    let mut gradient = Draws::new(75).matrix(1, 3_000);
    gradient.data_mut().iter_mut().for_each(|g| *g = f64::from((*g * 1e25) as f32));
    let groups = [AdamWGroup { spans: vec![0..1_900, 1_900..3_000], clip: Some(1.0), ..plain_group() }];
    let ((got, report), (expected, outcomes)) = (before.fast(&gradient, &groups), before.plain(&gradient, &groups));
    for ((name, got), expected) in NAMES.iter().zip(&got.0).zip(&expected.0) {
        assert_close(name, got, expected, ADAMW.over(1));
    }
    assert_close("norm", &part(&report, &(0..1)), &Matrix::new(1, 1, vec![outcomes[0].norm]), ADAMW.over(1));
    assert_eq!(report[(0, 1)], -1.0);
}

/// Where the norm is as small as the 1e-6 that is added to it, the clip halves what it would otherwise leave alone.
#[test]
fn a_tiny_clip_divides_by_the_norm_and_a_millionth() {
    let zeros = Matrix::zeros(1, 2);
    let before = State([zeros.clone(), zeros.clone(), zeros]);
    let gradient = Matrix::new(1, 2, [0.6e-6f32, -0.8e-6].map(f64::from).to_vec());
    let groups = [AdamWGroup { spans: vec![0..1, 1..2], clip: Some(1e-6), ..plain_group() }];
    let (State([_, first, _]), _) = before.fast(&gradient, &groups);
    assert_close("first moments", &first, &Matrix::new(1, 2, vec![0.03e-6, -0.04e-6]), ADAMW.over(1));
}

/// Bit for bit, so that neither a neighbour nor its place changes what a job learns.
#[test]
fn a_group_is_the_same_alone_and_every_time() {
    for shape in shapes() {
        let groups = groups(&shape);
        let (before, gradient) = (State::random(entries(&shape)), Draws::new(76).matrix(1, entries(&shape)));
        let (together, report) = before.fast(&gradient, &groups);
        assert_eq!(before.fast(&gradient, &groups).0, together);
        for (i, group) in groups.iter().enumerate() {
            let own = |row: &Matrix| {
                let data: Vec<f64> = group.spans.iter().flat_map(|span| &row.data()[span.clone()]).copied().collect();
                Matrix::new(1, data.len(), data)
            };
            let middle = group.spans[0].len();
            let spans = vec![0..middle, middle..middle + group.spans[1].len()];
            let alone = State(before.0.each_ref().map(own));
            let (alone, own_report) = alone.fast(&own(&gradient), &[AdamWGroup { spans, ..group.clone() }]);
            for ((name, together), alone) in NAMES.iter().zip(&together.0).zip(&alone.0) {
                assert_equal(&format!("{}, group {i}: {name}", shape.name), &own(together), alone);
            }
            assert_eq!(report.row(i), own_report.row(0));
        }
    }
}

#[test]
fn a_state_that_is_used_again_is_left_as_it_was() {
    let before = State::random(6);
    let [parameters, first, second] = before.0.each_ref().map(tensor);
    let kept = [parameters.clone(), first.clone(), second.clone()];
    let groups = [AdamWGroup { spans: vec![0..2, 2..6], ..plain_group() }];
    let gradient = tensor(&Draws::new(77).matrix(1, 6));
    let (after, _) = grouped_adamw(AdamWState { parameters, first, second }, gradient, &groups);
    assert_ne!(matrix(after.parameters), before.0[0]);
    assert_eq!(State(kept.map(matrix)), before);
}

fn with_spans(spans: &[Range<usize>]) {
    let zeros = || tensor(&Matrix::zeros(1, 6));
    let groups: Vec<_> = spans.iter().map(|span| AdamWGroup { spans: vec![span.clone()], ..plain_group() }).collect();
    grouped_adamw(AdamWState { parameters: zeros(), first: zeros(), second: zeros() }, zeros(), &groups);
}

#[test]
#[should_panic(expected = "two spans share entries: 0..4 and 3..6")]
fn overlapping_spans_panic() {
    with_spans(&[3..6, 0..4]);
}

#[test]
#[should_panic(expected = "a group has the entries 4..7 of only 6")]
fn a_span_outside_panics() {
    with_spans(&[0..1, 4..7]);
}

#[test]
#[should_panic(expected = "steps count from 1")]
fn a_step_of_zero_panics() {
    let zeros = || tensor(&Matrix::zeros(1, 6));
    let state = AdamWState { parameters: zeros(), first: zeros(), second: zeros() };
    grouped_adamw(state, zeros(), &[AdamWGroup { step: 0, ..plain_group() }]);
}

#[test]
#[should_panic(expected = "the gradient has 5 entries, the parameters have 6")]
fn a_gradient_of_another_length_panics() {
    let zeros = |entries| tensor(&Matrix::zeros(1, entries));
    let state = AdamWState { parameters: zeros(6), first: zeros(6), second: zeros(6) };
    grouped_adamw(state, zeros(5), &[]);
}
