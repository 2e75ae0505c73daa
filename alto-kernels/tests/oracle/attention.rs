//! `causal_attention` against its reference.

use std::ops::Range;

use alto_kernels::causal_attention;
use alto_kernels::reference::{self, Matrix};
use burn::tensor::Tensor;

use crate::compare::{assert_close, assert_close_over, assert_equal};
use crate::data::Draws;
use crate::device::{Layout, Leaf, backward, matrix, tensor};
use crate::shapes::{Shape, shapes};
use crate::tolerance::ATTENTION;

struct Inputs {
    q: Matrix,
    k: Matrix,
    v: Matrix,
    dy: Matrix,
    scale: f32,
}

impl Inputs {
    fn random(shape: &Shape) -> Self {
        let (tokens, width) = (shape.tokens(), shape.heads * shape.head_dim);
        let (kv_width, mut draws) = (shape.kv_heads * shape.head_dim, Draws::new(21));
        Self {
            q: draws.matrix(tokens, width),
            k: draws.matrix(tokens, kv_width),
            v: draws.matrix(tokens, kv_width),
            dy: draws.matrix(tokens, width),
            scale: (shape.head_dim as f32).powf(-0.5),
        }
    }
}

struct Outputs {
    y: Matrix,
    dq: Matrix,
    dk: Matrix,
    dv: Matrix,
}

impl Outputs {
    fn named(&self) -> [(&'static str, &Matrix); 4] {
        [("y", &self.y), ("dq", &self.dq), ("dk", &self.dk), ("dv", &self.dv)]
    }
}

fn fast(shape: &Shape, inputs: &Inputs, layout: Layout) -> Outputs {
    let leaf = |m: &Matrix, heads| Leaf::new(m, [m.rows(), heads, shape.head_dim], layout);
    let q = leaf(&inputs.q, shape.heads);
    let (k, v) = (leaf(&inputs.k, shape.kv_heads), leaf(&inputs.v, shape.kv_heads));
    let y = causal_attention(q.view(), k.view(), v.view(), &shape.row_lengths.as_slice().into(), inputs.scale);
    let gradients = backward(y.clone(), &inputs.dy, layout);
    let gradient = |leaf: &Leaf<3>| leaf.gradient(&gradients).expect("asked for");
    Outputs { y: matrix(y), dq: gradient(&q), dk: gradient(&k), dv: gradient(&v) }
}

fn plain(shape: &Shape, inputs: &Inputs) -> Outputs {
    let Inputs { q, k, v, dy, scale } = inputs;
    let (dim, lengths, scale) = (shape.head_dim, &shape.row_lengths, f64::from(*scale));
    let (dq, dk, dv) = reference::causal_attention_backward(q, k, v, dim, lengths, scale, dy);
    Outputs { y: reference::causal_attention(q, k, v, dim, lengths, scale), dq, dk, dv }
}

/// A gradient sums differences of products of three entries up to 1, over the root of a head's width.
const TERMS: f64 = 0.25;

/// A head's width, then a row's length.
fn tolerance(shape: &Shape) -> f64 {
    let longest = shape.row_lengths.iter().copied().max().unwrap_or(0);
    ATTENTION.over(shape.head_dim.max(longest))
}

/// Rows one token shorter and longer than the blocks that kernels work in, and of several blocks; a row of one token more
/// than a block has queries that see nothing of the last block but themselves.
fn at_the_edges_of_blocks(heads: usize, kv_heads: usize, head_dim: usize) -> Shape {
    let row_lengths = vec![15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200];
    Shape { name: "edges of blocks", row_lengths, heads, kv_heads, head_dim, ..Shape::default() }
}

#[test]
fn agrees_at_the_edges_of_blocks() {
    for (heads, kv_heads, head_dim) in [(2, 1, 16), (4, 2, 40), (2, 2, 128)] {
        let shape = at_the_edges_of_blocks(heads, kv_heads, head_dim);
        let inputs = Inputs::random(&shape);
        let (got, expected) = (fast(&shape, &inputs, Layout::Dense), plain(&shape, &inputs));
        for ((name, got), (_, expected)) in got.named().into_iter().zip(expected.named()) {
            let what = format!("heads of {head_dim}: {name}");
            assert_close_over(&what, got, expected, tolerance(&shape), TERMS);
        }
    }
}

/// Each query sees scores up to some 25, which grow by a few from one block of keys to the next: less and more than what a
/// reference of online softmax may lag behind.
#[test]
fn agrees_where_scores_grow_along_the_row() {
    for growth in [0.05, 0.1, 0.25] {
        let shape = Shape { row_lengths: vec![300], heads: 2, kv_heads: 1, head_dim: 8, ..Shape::default() };
        let mut inputs = Inputs::random(&shape);
        inputs.scale = 1.0;
        inputs.q.data_mut().chunks_exact_mut(8).for_each(|head| head[0] = 8.0);
        for (token, head) in inputs.k.data_mut().chunks_exact_mut(8).enumerate() {
            // Of a query's 8 the rest of a score; at most 8 bits, so exact in any dtype.
            head[0] = (token as f64 * growth * 8.0).round().rem_euclid(200.0) / 64.0;
        }
        let (got, expected) = (fast(&shape, &inputs, Layout::Dense), plain(&shape, &inputs));
        for ((name, got), (_, expected)) in got.named().into_iter().zip(expected.named()) {
            // The scores' rounding, of up to 25, is that of their exponentials.
            assert_close_over(&format!("growth {growth}: {name}"), got, expected, 4.0 * tolerance(&shape), TERMS);
        }
    }
}

#[test]
fn agrees_with_the_reference_in_any_layout() {
    for shape in shapes() {
        let inputs = Inputs::random(&shape);
        let expected = plain(&shape, &inputs);
        for layout in Layout::ALL {
            let got = fast(&shape, &inputs, layout);
            for ((name, got), (_, expected)) in got.named().into_iter().zip(expected.named()) {
                let what = format!("{}, {layout:?}: {name}", shape.name);
                assert_close_over(&what, got, expected, tolerance(&shape), TERMS);
            }
        }
    }
}

/// Whole numbers give exact scores, here of several hundred: their exponentials overflow f32 unless shifted.
#[test]
fn stays_exact_where_exponentials_overflow() {
    let shape = Shape { row_lengths: vec![70, 5], heads: 2, kv_heads: 1, head_dim: 16, ..Shape::default() };
    let mut inputs = Inputs::random(&shape);
    let mut draws = Draws::new(22);
    (inputs.q, inputs.k) = (draws.integers(75, 32, 10), draws.integers(75, 16, 10));
    inputs.scale = 1.0;
    let (got, expected) = (fast(&shape, &inputs, Layout::Dense), plain(&shape, &inputs));
    for ((name, got), (_, expected)) in got.named().into_iter().zip(expected.named()) {
        // The logarithm of a sum of a few hundred is off by the rounding of a few hundred.
        assert_close(name, got, expected, 500.0 * ATTENTION.over(1));
    }
}

#[test]
fn repeats_bit_for_bit() {
    for shape in shapes().into_iter().chain([at_the_edges_of_blocks(2, 1, 16)]) {
        let inputs = Inputs::random(&shape);
        let once = fast(&shape, &inputs, Layout::Dense);
        for _ in 0..3 {
            let again = fast(&shape, &inputs, Layout::Dense);
            for ((name, again), (_, once)) in again.named().into_iter().zip(once.named()) {
                assert_equal(&format!("{}: {name}", shape.name), again, once);
            }
        }
    }
}

fn rows(matrix: &Matrix, rows: Range<usize>) -> Matrix {
    let columns = matrix.columns();
    Matrix::new(rows.len(), columns, matrix.data()[rows.start * columns..rows.end * columns].to_vec())
}

/// Bit for bit: no row's work depends on another row.
#[test]
fn a_row_is_the_same_alone() {
    for shape in shapes() {
        let inputs = Inputs::random(&shape);
        let together = fast(&shape, &inputs, Layout::Dense);
        for row in shape.rows() {
            let [q, k, v, dy] = [&inputs.q, &inputs.k, &inputs.v, &inputs.dy].map(|m| rows(m, row.clone()));
            let own = Shape { row_lengths: vec![row.len()], ..shape.clone() };
            let alone = fast(&own, &Inputs { q, k, v, dy, scale: inputs.scale }, Layout::Dense);
            for ((name, alone), (_, together)) in alone.named().into_iter().zip(together.named()) {
                assert_equal(&format!("{}, row {row:?}: {name}", shape.name), &rows(together, row.clone()), alone);
            }
        }
    }
}

#[test]
fn nan_stays_in_its_row() {
    for shape in shapes() {
        let clean = Inputs::random(&shape);
        let untouched = fast(&shape, &clean, Layout::Dense);
        let Some(sick) = shape.rows().into_iter().find(|row| !row.is_empty()) else { continue };
        let mut inputs = Inputs::random(&shape);
        for matrix in [&mut inputs.q, &mut inputs.k, &mut inputs.v, &mut inputs.dy] {
            let columns = matrix.columns();
            matrix.data_mut()[sick.start * columns..sick.end * columns].fill(f64::NAN);
        }
        let poisoned = fast(&shape, &inputs, Layout::Dense);
        for ((name, got), (_, expected)) in poisoned.named().into_iter().zip(untouched.named()) {
            assert!(got.row(sick.start)[0].is_nan(), "{}: {name} hides a NaN", shape.name);
            for others in [0..sick.start, sick.end..got.rows()] {
                let what = format!("{}: {name}, rows {others:?}", shape.name);
                assert_equal(&what, &rows(got, others.clone()), &rows(expected, others));
            }
        }
    }
}

#[test]
fn only_what_asks_gets_a_gradient() {
    let shape = Shape { row_lengths: vec![5, 3], ..Shape::default() };
    let inputs = Inputs::random(&shape);
    let all = fast(&shape, &inputs, Layout::Dense);
    for asking in 0..3 {
        let heads = [shape.heads, shape.kv_heads, shape.kv_heads];
        let entries = [&inputs.q, &inputs.k, &inputs.v];
        let leaves: [Tensor<3>; 3] = std::array::from_fn(|i| {
            let leaf = tensor(entries[i], [shape.tokens(), heads[i], shape.head_dim]);
            if i == asking { leaf.require_grad() } else { leaf }
        });
        let [q, k, v] = leaves.clone();
        let gradients = backward(
            causal_attention(q, k, v, &shape.row_lengths.as_slice().into(), inputs.scale),
            &inputs.dy,
            Layout::Dense,
        );
        for (i, (leaf, expected)) in leaves.iter().zip([&all.dq, &all.dk, &all.dv]).enumerate() {
            match leaf.grad(&gradients) {
                Some(gradient) => assert_equal("the one that asked", &matrix(gradient), expected),
                None => assert_ne!(i, asking),
            }
        }
    }
}

fn of_shapes(q: [usize; 3], k: [usize; 3], v: [usize; 3], row_lengths: &[usize]) -> Tensor<3> {
    let [q, k, v] = [q, k, v].map(|shape| tensor(&Matrix::zeros(shape[0], shape[1] * shape[2]), shape));
    causal_attention(q, k, v, &row_lengths.into(), 1.0)
}

#[test]
#[should_panic(expected = "3 heads aren't a multiple of 2 key and value heads")]
fn heads_that_do_not_group_panic() {
    of_shapes([4, 3, 2], [4, 2, 2], [4, 2, 2], &[4]);
}

#[test]
#[should_panic(expected = "k and v have the same shape")]
fn unequal_keys_and_values_panic() {
    of_shapes([4, 2, 2], [4, 2, 2], [4, 1, 2], &[4]);
}

#[test]
#[should_panic(expected = "q has 4 tokens and heads of 2")]
fn keys_of_another_width_panic() {
    of_shapes([4, 2, 2], [4, 2, 3], [4, 2, 3], &[4]);
}

#[test]
#[should_panic(expected = "the row lengths add up to the number of tokens")]
fn row_lengths_that_leave_tokens_over_panic() {
    of_shapes([4, 2, 2], [4, 2, 2], [4, 2, 2], &[1, 2]);
}
