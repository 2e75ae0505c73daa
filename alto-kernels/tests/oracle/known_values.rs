//! The references against values that PyTorch 2.15 computed in f64.

use std::ops::Range;

use alto_kernels::AdamWGroup;
use alto_kernels::reference::{Matrix, adamw, causal_attention, linear_log_probs, rms_norm, rotary, swiglu};

use crate::compare::assert_close;

const EXACT: f64 = 1e-12;

/// The entries `(i * factor mod 17 - 8) / 8`.
fn entries(rows: usize, columns: usize, factor: usize) -> Matrix {
    Matrix::new(rows, columns, (0..rows * columns).map(|i| ((i * factor % 17) as f64 - 8.0) / 8.0).collect())
}

#[test]
fn attention_is_scaled_dot_product_attention_row_by_row() {
    let y = causal_attention(&entries(3, 4, 5), &entries(3, 2, 7), &entries(3, 2, 11), 2, &[2, 1], 0.75);
    let expected = [
        [-1.0, 0.375, -1.0, 0.375],
        [-0.808939169473487, 0.566060830526513, -0.53505444787063, 0.83994555212937],
        [0.25, -0.5, 0.25, -0.5],
    ];
    assert_close("y", &y, &Matrix::new(3, 4, expected.concat()), EXACT);
}

#[test]
fn log_probs_are_log_softmax_at_the_targets() {
    let logp = linear_log_probs(&entries(3, 2, 5), &entries(4, 2, 7), &[Some(3), None, Some(1)]);
    let expected = Matrix::new(1, 2, vec![-1.9559915310804117, -1.9238927403419965]);
    assert_close("logp", &Matrix::new(1, 2, logp), &expected, EXACT);
}

#[test]
fn rms_norm_is_that_of_pytorch() {
    let y = rms_norm(&entries(2, 3, 5), entries(1, 3, 7).data(), 1e-2);
    let expected =
        [[1.559757476567125, 0.073113631714084, 0.292454526856336], [-1.391491531711216, 0.124240315331359, 0.0]];
    assert_close("y", &y, &Matrix::new(2, 3, expected.concat()), EXACT);
}

#[test]
fn swiglu_is_silu_of_the_gate_times_up() {
    let y = swiglu(&entries(1, 6, 5), &entries(1, 6, 7));
    let expected =
        vec![0.268941421369995, 0.019093753127153, 0.105408093916087, -0.308780949678692, -0.081713703593894, 0.0];
    assert_close("y", &y, &Matrix::new(1, 6, expected), EXACT);
}

#[test]
fn rotary_turns_half_split_pairs() {
    let angles = [[0.0, 0.0], [1.0, 0.1]].concat();
    let cos = Matrix::new(2, 2, angles.iter().map(|angle: &f64| angle.cos()).collect());
    let sin = Matrix::new(2, 2, angles.iter().map(|angle: &f64| angle.sin()).collect());
    let y = rotary(&entries(2, 8, 5), &[2], &cos, &sin);
    let expected = [
        [-1.0, -0.375, 0.25, 0.875, -0.625, 0.0, 0.625, -0.875],
        [
            -0.976546561274931,
            0.423043270302674,
            0.329934559666166,
            -0.460064551396452,
            0.69864102683944,
            0.758732301039373,
            -0.300042856300118,
            -0.049500458174632,
        ],
    ];
    assert_close("y", &y, &Matrix::new(2, 8, expected.concat()), EXACT);
    // The second row starts at position 0 again, where nothing turns.
    assert_eq!(rotary(&entries(2, 8, 5), &[1, 1], &cos, &sin), entries(2, 8, 5));
}

fn group(spans: Vec<Range<usize>>) -> AdamWGroup {
    AdamWGroup {
        spans,
        learning_rate: 0.02,
        weight_decay: 0.1,
        betas: (0.8, 0.95),
        epsilon: 1e-6,
        clip: Some(1.0),
        step: 1,
    }
}

#[test]
fn adamw_takes_three_steps_as_pytorch_does() {
    let mut p = vec![0.5, -1.25, 2.0, 0.0, 3.0, -0.75, 1.5, -0.5];
    let (mut m, mut v) = (vec![0.0; 8], vec![0.0; 8]);
    let steps = [
        ([0.3, -0.2, 1.5, 0.0, 0.001, -2.0, 0.7, -0.1], 2.6229756003440063),
        ([-0.1, 0.25, 0.5, 0.0, -0.002, 0.5, -0.2, 0.05], 0.7842219073706116),
        ([3.0, -2.0, 1.0, 0.0, 0.5, -0.25, 1.25, -4.0], 5.645794895318108),
    ];
    for (step, (gradient, norm)) in (1..).zip(steps) {
        let group = AdamWGroup { step, ..group(vec![0..6, 6..8]) };
        let outcome = adamw(&mut p, &mut m, &mut v, &gradient, &group);
        assert!((outcome.norm - norm).abs() < EXACT * norm, "step {step}: norm {}", outcome.norm);
        assert_eq!(outcome.not_finite, None);
    }
    let expected = [("parameters", p, PARAMETERS), ("first moments", m, FIRST), ("second moments", v, SECOND)];
    for (what, got, expected) in expected {
        assert_close(what, &Matrix::new(1, 8, got), &Matrix::new(1, 8, expected.to_vec()), EXACT);
    }
}

const PARAMETERS: [f64; 8] = [
    0.4647867296313784,
    -1.2273695951313517,
    1.9309182939769272,
    0.0,
    2.961433646397341,
    -0.7215926520505705,
    1.462196740893623,
    -0.468444044595181,
];
const FIRST: [f64; 8] = [
    0.10491362354787954,
    -0.040609082365253034,
    0.18862386968006628,
    0.0,
    0.01744109409390287,
    -0.026455187997402048,
    0.04644040068258877,
    -0.13857830862391185,
];
const SECOND: [f64; 8] = [
    0.015182939486925059,
    0.009505611994188918,
    0.028201062625789267,
    0.0,
    0.00039235328268547785,
    0.03820848047960278,
    0.007564821082991401,
    0.02528236892805642,
];

#[test]
fn adamw_leaves_the_entries_of_others_and_a_group_that_is_not_finite() {
    let before = ([0.5, -1.0, 2.0, 0.25], [0.1; 4], [0.2; 4]);
    let step = |gradient: [f64; 4]| {
        let mut state = before;
        let outcome = adamw(&mut state.0, &mut state.1, &mut state.2, &gradient, &group(vec![0..1, 2..3]));
        (state, outcome)
    };
    let ((p, m, v), outcome) = step([3.0, f64::NAN, 4.0, f64::INFINITY]);
    assert_eq!((outcome.norm, outcome.not_finite), (5.0, None));
    for other in [1, 3] {
        assert_eq!((p[other], m[other], v[other]), (before.0[other], before.1[other], before.2[other]));
    }
    for own in [0, 2] {
        assert_ne!((p[own], m[own], v[own]), (before.0[own], before.1[own], before.2[own]));
    }

    let (state, outcome) = step([3.0, 0.0, f64::INFINITY, 0.0]);
    assert_eq!((state, outcome.not_finite), (before, Some(1)));
}
