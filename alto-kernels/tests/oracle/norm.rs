//! `rms_norm` against its reference.

use alto_kernels::reference::{self, Matrix};
use alto_kernels::rms_norm;

use crate::compare::{assert_close, assert_close_over, assert_equal};
use crate::data::Draws;
use crate::device::{Layout, Leaf, backward, matrix, tensor};
use crate::shapes::{Shape, shapes};
use crate::tolerance::RMS_NORM;

const EPSILON: f32 = 1e-5;

struct Inputs {
    x: Matrix,
    weight: Matrix,
    dy: Matrix,
}

impl Inputs {
    fn random(shape: &Shape) -> Self {
        let mut draws = Draws::new(41);
        Self {
            x: draws.matrix(shape.tokens(), shape.d_in),
            weight: draws.matrix(1, shape.d_in),
            dy: draws.matrix(shape.tokens(), shape.d_in),
        }
    }

    fn fast(&self, layout: Layout) -> (Matrix, Matrix) {
        let x = Leaf::new(&self.x, [self.x.rows(), self.x.columns()], layout);
        let y = rms_norm(x.view(), tensor(&self.weight, [self.weight.columns()]), EPSILON);
        let gradients = backward(y.clone(), &self.dy, layout);
        (matrix(y), x.gradient(&gradients).expect("asked for"))
    }

    fn plain(&self) -> (Matrix, Matrix) {
        let (weight, epsilon) = (self.weight.data(), f64::from(EPSILON));
        let dx = reference::rms_norm_backward(&self.x, weight, epsilon, &self.dy);
        (reference::rms_norm(&self.x, weight, epsilon), dx)
    }
}

#[test]
fn agrees_with_the_reference_in_any_layout() {
    for shape in shapes() {
        let inputs = Inputs::random(&shape);
        let (y, dx) = inputs.plain();
        for layout in Layout::ALL {
            let (got, got_dx) = inputs.fast(layout);
            assert_close(&format!("{}, {layout:?}: y", shape.name), &got, &y, RMS_NORM.over(shape.d_in));
            // Its two terms are about 1, and cancel where the width is 1.
            let what = format!("{}, {layout:?}: dx", shape.name);
            assert_close_over(&what, &got_dx, &dx, RMS_NORM.over(shape.d_in), 1.0);
        }
    }
}

#[test]
fn a_token_of_zeros_stays_zero_and_finite() {
    let inputs =
        Inputs { x: Matrix::zeros(2, 3), weight: Draws::new(42).matrix(1, 3), dy: Draws::new(43).matrix(2, 3) };
    let ((y, dx), (_, expected)) = (inputs.fast(Layout::Dense), inputs.plain());
    assert_equal("y", &y, &Matrix::zeros(2, 3));
    assert_close("dx", &dx, &expected, RMS_NORM.over(3));
}

/// Bit for bit, since no token's work depends on another one.
#[test]
fn nan_stays_in_its_token() {
    for shape in shapes().iter().filter(|shape| shape.tokens() > 1) {
        let mut inputs = Inputs::random(shape);
        let (y, dx) = inputs.fast(Layout::Dense);
        let sick = shape.tokens() / 2;
        inputs.x[(sick, 0)] = f64::NAN;
        let (got, got_dx) = inputs.fast(Layout::Dense);
        for t in (0..shape.tokens()).filter(|&t| t != sick) {
            assert_eq!((got.row(t), got_dx.row(t)), (y.row(t), dx.row(t)), "{}: token {t}", shape.name);
        }
        assert!(got.row(sick).iter().chain(got_dx.row(sick)).all(|entry| entry.is_nan()));
    }
}

#[test]
fn the_frozen_weight_gets_no_gradient_even_if_it_asks() {
    let inputs = Inputs::random(&Shape { row_lengths: vec![4], ..Shape::default() });
    let weight = tensor(&inputs.weight, [inputs.weight.columns()]).require_grad();
    let x = tensor(&inputs.x, [4, 3]).require_grad();
    let gradients = backward(rms_norm(x.clone(), weight.clone(), EPSILON), &inputs.dy, Layout::Dense);
    assert!(weight.grad(&gradients).is_none());
    assert!(x.grad(&gradients).is_some());
}

#[test]
#[should_panic(expected = "x has width 3, the weight 4")]
fn a_weight_of_another_width_panics() {
    rms_norm(tensor(&Matrix::zeros(2, 3), [2, 3]), tensor(&Matrix::zeros(1, 4), [4]), EPSILON);
}
