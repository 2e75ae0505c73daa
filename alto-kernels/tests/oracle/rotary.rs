//! `rotary` against its reference.

use alto_kernels::reference::{self, Matrix};
use alto_kernels::rotary;
use burn::tensor::Tensor;

use crate::compare::{assert_close, assert_equal};
use crate::data::Draws;
use crate::device::{Layout, Leaf, backward, matrix, tensor, tensor_f32, tensor2};
use crate::shapes::{Shape, shapes};
use crate::tolerance::ROTARY;

struct Inputs {
    x: Matrix,
    cos: Matrix,
    sin: Matrix,
    dy: Matrix,
}

impl Inputs {
    /// With tables of three positions more than any row has.
    fn random(shape: &Shape) -> Self {
        let (mut draws, width) = (Draws::new(61), shape.heads * shape.head_dim);
        let positions = shape.row_lengths.iter().copied().max().unwrap_or(0) + 3;
        Self {
            x: draws.matrix(shape.tokens(), width),
            cos: draws.matrix(positions, shape.head_dim / 2),
            sin: draws.matrix(positions, shape.head_dim / 2),
            dy: draws.matrix(shape.tokens(), width),
        }
    }

    fn fast(&self, shape: &Shape, layout: Layout) -> (Matrix, Matrix) {
        let x = Leaf::new(&self.x, [shape.tokens(), shape.heads, shape.head_dim], layout);
        let [cos, sin] = [&self.cos, &self.sin].map(|m| Leaf::f32(m, [m.rows(), m.columns()], layout).view().detach());
        let y = rotary(x.view(), &shape.row_lengths.as_slice().into(), cos, sin);
        let gradients = backward(y.clone(), &self.dy, layout);
        (matrix(y), x.gradient(&gradients).expect("asked for"))
    }

    fn plain(&self, shape: &Shape) -> (Matrix, Matrix) {
        let Self { x, cos, sin, dy } = self;
        let dx = reference::rotary_backward(dy, &shape.row_lengths, cos, sin);
        (reference::rotary(x, &shape.row_lengths, cos, sin), dx)
    }
}

#[test]
fn agrees_with_the_reference_in_any_layout() {
    for shape in shapes() {
        let inputs = Inputs::random(&shape);
        let (y, dx) = inputs.plain(&shape);
        for layout in Layout::ALL {
            let (got, got_dx) = inputs.fast(&shape, layout);
            assert_close(&format!("{}, {layout:?}: y", shape.name), &got, &y, ROTARY.over(1));
            assert_close(&format!("{}, {layout:?}: dx", shape.name), &got_dx, &dx, ROTARY.over(1));
        }
    }
}

/// The kernel may turn in place where it alone holds the memory.
#[test]
fn an_input_that_is_used_again_is_left_as_it_was() {
    let shape = Shape { row_lengths: vec![3, 2], ..Shape::default() };
    let inputs = Inputs::random(&shape);
    let x: Tensor<3> = tensor(&inputs.x, [5, shape.heads, shape.head_dim]);
    let [cos, sin]: [Tensor<2>; 2] = [&inputs.cos, &inputs.sin].map(|m| tensor_f32(m, [m.rows(), m.columns()]));
    let differentiable = rotary(x.clone(), &shape.row_lengths.as_slice().into(), cos.clone(), sin.clone());
    let plain = rotary(x.clone().inner(), &shape.row_lengths.as_slice().into(), cos.inner(), sin.inner());
    for y in [differentiable, plain] {
        assert_close("y", &matrix(y), &inputs.plain(&shape).0, ROTARY.over(1));
    }
    assert_equal("x", &matrix(x), &inputs.x);
}

/// Their entries are exact in it.
#[test]
fn tables_in_the_type_of_the_input_turn_it_alike() {
    let shape = Shape { row_lengths: vec![3, 2], ..Shape::default() };
    let inputs = Inputs::random(&shape);
    let x: Tensor<3> = tensor(&inputs.x, [5, shape.heads, shape.head_dim]);
    let y = rotary(x, &shape.row_lengths.as_slice().into(), tensor2(&inputs.cos), tensor2(&inputs.sin));
    assert_equal("y", &matrix(y), &inputs.fast(&shape, Layout::Dense).0);
}

#[test]
fn nan_stays_in_its_token() {
    for shape in shapes().iter().filter(|shape| shape.tokens() > 1) {
        let mut inputs = Inputs::random(shape);
        let (y, _) = inputs.fast(shape, Layout::Dense);
        let sick = shape.tokens() / 2;
        let columns = inputs.x.columns();
        inputs.x.data_mut()[sick * columns..(sick + 1) * columns].fill(f64::NAN);
        let (got, _) = inputs.fast(shape, Layout::Dense);
        for t in (0..shape.tokens()).filter(|&t| t != sick) {
            assert_eq!(got.row(t), y.row(t), "{}: token {t}", shape.name);
        }
        assert!(got.row(sick).iter().all(|entry| entry.is_nan()));
    }
}

fn of_shapes(x: [usize; 3], row_lengths: &[usize], cos: [usize; 2], sin: [usize; 2]) {
    let [cos, sin] = [cos, sin].map(|shape| tensor_f32(&Matrix::zeros(shape[0], shape[1]), shape));
    rotary(tensor(&Matrix::zeros(x[0], x[1] * x[2]), x), &row_lengths.into(), cos, sin);
}

#[test]
#[should_panic(expected = "a row has 4 tokens, the tables 3 positions")]
fn a_row_longer_than_the_tables_panics() {
    of_shapes([5, 2, 4], &[1, 4], [3, 2], [3, 2]);
}

#[test]
#[should_panic(expected = "heads of 4 take tables of width 2, these have 4")]
fn tables_of_the_whole_width_panic() {
    of_shapes([5, 2, 4], &[5], [5, 4], [5, 4]);
}

#[test]
#[should_panic(expected = "cos and sin have the same shape")]
fn unequal_tables_panic() {
    of_shapes([5, 2, 4], &[5], [5, 2], [6, 2]);
}

#[test]
#[should_panic(expected = "the row lengths add up to the number of tokens")]
fn row_lengths_that_leave_tokens_over_panic() {
    of_shapes([5, 2, 4], &[4], [5, 2], [5, 2]);
}
