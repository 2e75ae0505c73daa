//! `linear_log_probs` against its reference.

use alto_kernels::linear_log_probs;
use alto_kernels::reference::{self, Matrix};

use crate::compare::{assert_close, assert_equal};
use crate::data::Draws;
use crate::device::{Layout, Leaf, backward, matrix, tensor, tensor2};
use crate::shapes::{Shape, shapes};
use crate::tolerance::LOG_PROBS;

struct Inputs {
    x: Matrix,
    head: Matrix,
    targets: Vec<Option<u32>>,
    dlogp: Matrix,
}

impl Inputs {
    fn random(shape: &Shape) -> Self {
        let (targets, mut draws) = (shape.targets(), Draws::new(31));
        Self {
            x: draws.matrix(shape.tokens(), shape.d_in),
            head: draws.matrix(shape.vocabulary, shape.d_in),
            dlogp: draws.matrix(1, targets.iter().flatten().count()),
            targets,
        }
    }

    fn fast(&self, layout: Layout) -> (Matrix, Matrix) {
        let leaf = |m: &Matrix| Leaf::new(m, [m.rows(), m.columns()], layout);
        let (x, head) = (leaf(&self.x), leaf(&self.head));
        let logp = linear_log_probs(x.view(), head.view().detach(), &self.targets);
        let gradients = backward(logp.clone(), &self.dlogp, layout);
        (matrix(logp), x.gradient(&gradients).expect("asked for"))
    }

    fn plain(&self) -> (Matrix, Matrix) {
        let logp = reference::linear_log_probs(&self.x, &self.head, &self.targets);
        let dx = reference::linear_log_probs_backward(&self.x, &self.head, &self.targets, self.dlogp.data());
        (Matrix::new(1, logp.len(), logp), dx)
    }
}

#[test]
fn agrees_with_the_reference_in_any_layout() {
    for shape in shapes() {
        let inputs = Inputs::random(&shape);
        let (logp, dx) = inputs.plain();
        let tolerance = LOG_PROBS.over(shape.d_in);
        for layout in Layout::ALL {
            let got = inputs.fast(layout);
            assert_close(&format!("{}, {layout:?}: logp", shape.name), &got.0, &logp, tolerance);
            assert_close(&format!("{}, {layout:?}: dx", shape.name), &got.1, &dx, tolerance);
        }
    }
}

/// Whole numbers give exact logits, here of several hundred: their exponentials overflow f32 unless shifted, and the
/// largest may come first or last.
#[test]
fn stays_exact_where_exponentials_overflow() {
    let shape = Shape { row_lengths: vec![40], d_in: 16, vocabulary: 1_500, ..Shape::default() };
    let mut inputs = Inputs::random(&shape);
    let mut draws = Draws::new(32);
    (inputs.x, inputs.head) = (draws.integers(40, 16, 10), draws.integers(1_500, 16, 10));
    let ((got, got_dx), (logp, dx)) = (inputs.fast(Layout::Dense), inputs.plain());
    assert_close("logp", &got, &logp, LOG_PROBS.over(1));
    assert_close("dx", &got_dx, &dx, LOG_PROBS.over(1));
}

#[test]
fn repeats_bit_for_bit() {
    for shape in shapes() {
        let inputs = Inputs::random(&shape);
        let once = inputs.fast(Layout::Dense);
        for _ in 0..3 {
            let again = inputs.fast(Layout::Dense);
            assert_equal(&format!("{}: logp", shape.name), &again.0, &once.0);
            assert_equal(&format!("{}: dx", shape.name), &again.1, &once.1);
        }
    }
}

#[test]
fn a_token_is_the_same_alone() {
    for shape in shapes() {
        let inputs = Inputs::random(&shape);
        let (together, dx) = inputs.fast(Layout::Dense);
        let labelled = inputs.targets.iter().enumerate().filter(|(_, target)| target.is_some());
        for (n, (t, target)) in labelled.enumerate().step_by(7) {
            let alone = Inputs {
                x: Matrix::new(1, shape.d_in, inputs.x.row(t).to_vec()),
                head: inputs.head.clone(),
                targets: vec![*target],
                dlogp: Matrix::new(1, 1, vec![inputs.dlogp[(0, n)]]),
            };
            let (logp, own_dx) = alone.fast(Layout::Dense);
            let (what, tolerance) = (format!("{}, token {t}", shape.name), LOG_PROBS.over(shape.d_in));
            assert_close(&what, &Matrix::new(1, 1, vec![together[(0, n)]]), &logp, tolerance);
            assert_close(&what, &Matrix::new(1, shape.d_in, dx.row(t).to_vec()), &own_dx, tolerance);
        }
    }
}

#[test]
fn nan_stays_in_its_token() {
    for shape in shapes() {
        let mut inputs = Inputs::random(&shape);
        let (logp, dx) = inputs.fast(Layout::Dense);
        let labelled: Vec<usize> = (0..shape.tokens()).filter(|&t| inputs.targets[t].is_some()).collect();
        let Some(&sick) = labelled.get(labelled.len() / 2) else { continue };
        inputs.x[(sick, 0)] = f64::NAN;
        let (got, got_dx) = inputs.fast(Layout::Dense);
        for (n, &t) in labelled.iter().enumerate() {
            assert!(got[(0, n)].is_nan() == (t == sick), "{}: token {t}", shape.name);
            assert!(t == sick || got[(0, n)] == logp[(0, n)], "{}: token {t} changed", shape.name);
        }
        for t in 0..shape.tokens() {
            assert!(t == sick || got_dx.row(t) == dx.row(t), "{}: the gradient of token {t} changed", shape.name);
        }
        assert!(got_dx.row(sick)[0].is_nan());
    }
}

#[test]
fn tokens_without_a_target_get_no_gradient_and_cannot_spoil_one() {
    for shape in shapes().iter().filter(|shape| shape.label_every > 1) {
        let mut inputs = Inputs::random(shape);
        let (logp, mut dx) = inputs.fast(Layout::Dense);
        for t in (0..shape.tokens()).filter(|&t| inputs.targets[t].is_none()) {
            for i in 0..shape.d_in {
                inputs.x[(t, i)] = f64::NAN;
                assert_eq!(dx[(t, i)], 0.0);
                dx[(t, i)] = 0.0;
            }
        }
        let (got, got_dx) = inputs.fast(Layout::Dense);
        assert_equal(shape.name, &got, &logp);
        assert_equal(shape.name, &got_dx, &dx);
    }
}

#[test]
fn the_frozen_head_gets_no_gradient_even_if_it_asks() {
    let inputs = Inputs::random(&Shape { row_lengths: vec![4], ..Shape::default() });
    for head in [tensor2(&inputs.head), tensor2(&inputs.head).require_grad()] {
        let x = tensor2(&inputs.x).require_grad();
        let logp = linear_log_probs(x.clone(), head.clone(), &inputs.targets);
        let gradients = backward(logp, &inputs.dlogp, Layout::Dense);
        assert!(head.grad(&gradients).is_none());
        assert!(x.grad(&gradients).is_some());
    }
}

#[test]
fn without_gradients_the_output_is_the_same() {
    for shape in shapes() {
        let inputs = Inputs::random(&shape);
        let logp = linear_log_probs(tensor2(&inputs.x).inner(), tensor2(&inputs.head).inner(), &inputs.targets);
        assert_equal(shape.name, &matrix(logp), &inputs.fast(Layout::Dense).0);
    }
}

fn of_shapes(x: [usize; 2], head: [usize; 2], targets: &[Option<u32>]) {
    let [x, head] = [x, head].map(|shape| tensor(&Matrix::zeros(shape[0], shape[1]), shape));
    linear_log_probs(x, head, targets);
}

#[test]
#[should_panic(expected = "x has width 3, the head takes 4")]
fn a_head_of_another_width_panics() {
    of_shapes([2, 3], [5, 4], &[None, Some(1)]);
}

#[test]
#[should_panic(expected = "3 targets for 2 tokens")]
fn a_target_too_many_panics() {
    of_shapes([2, 3], [5, 3], &[None, Some(1), None]);
}

#[test]
#[should_panic(expected = "token 1 has the target 5, the vocabulary has 5")]
fn a_target_outside_the_vocabulary_panics() {
    of_shapes([2, 3], [5, 3], &[None, Some(5)]);
}
