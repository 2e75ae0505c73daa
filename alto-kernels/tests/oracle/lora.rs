//! `multi_lora_linear` against its reference.

use std::ops::Range;

use alto_kernels::reference::{self, Matrix};
use alto_kernels::{LoraLane, LoraLanes, multi_lora_linear};
use burn::tensor::{DType, Tensor};
use proptest::prelude::*;

use crate::compare::{assert_close, assert_equal};
use crate::data::Draws;
use crate::device::{Layout, Leaf, backward, dtype, matrix, tensor, tensor_f32, tensor2};
use crate::shapes::{Shape, shapes};
use crate::tolerance::LORA;

struct Inputs {
    x: Matrix,
    w: Matrix,
    a: Matrix,
    b: Matrix,
    dy: Matrix,
}

impl Inputs {
    fn of(shape: &Shape, mut draw: impl FnMut(usize, usize) -> Matrix) -> Self {
        Self {
            x: draw(shape.tokens(), shape.d_in),
            w: draw(shape.d_out, shape.d_in),
            a: draw(shape.ranks, shape.d_in),
            b: draw(shape.ranks, shape.d_out),
            dy: draw(shape.tokens(), shape.d_out),
        }
    }

    fn random(shape: &Shape) -> Self {
        let mut draws = Draws::new(11);
        Self::of(shape, |rows, columns| draws.matrix(rows, columns))
    }

    /// So small that no sum leaves what f32 represents exactly.
    fn integers(shape: &Shape, seed: u64) -> Self {
        let mut draws = Draws::new(seed);
        Self::of(shape, |rows, columns| draws.integers(rows, columns, 2))
    }
}

struct Outputs {
    y: Matrix,
    dx: Matrix,
    da: Matrix,
    db: Matrix,
}

impl Outputs {
    fn named(&self) -> [(&'static str, &Matrix); 4] {
        [("y", &self.y), ("dx", &self.dx), ("da", &self.da), ("db", &self.db)]
    }
}

fn fast(inputs: &Inputs, lanes: &[LoraLane], layout: Layout) -> Outputs {
    let leaf = |m: &Matrix| Leaf::new(m, [m.rows(), m.columns()], layout);
    let factor = |m: &Matrix| Leaf::f32(m, [m.rows(), m.columns()], layout);
    let (x, w, a, b) = (leaf(&inputs.x), leaf(&inputs.w), factor(&inputs.a), factor(&inputs.b));
    let y = multi_lora_linear(x.view(), w.view().detach(), a.view(), b.view(), &LoraLanes::new(lanes.to_vec()));
    let gradients = backward(y.clone(), &inputs.dy, layout);
    let gradient = |leaf: &Leaf<2>| leaf.gradient(&gradients).expect("asked for");
    Outputs { y: matrix(y), dx: gradient(&x), da: gradient(&a), db: gradient(&b) }
}

fn plain(inputs: &Inputs, lanes: &[LoraLane]) -> Outputs {
    let Inputs { x, w, a, b, dy } = inputs;
    let (dx, da, db) = reference::multi_lora_linear_backward(x, w, a, b, lanes, dy);
    Outputs { y: reference::multi_lora_linear(x, w, a, b, lanes), dx, da, db }
}

/// An adapter's factor: f32 whatever dtype is under test.
fn factor(matrix: &Matrix) -> Tensor<2> {
    tensor_f32(matrix, [matrix.rows(), matrix.columns()])
}

/// The common table, and batches with so few tiles that sums are split: few tokens in a wide layer, many in a narrow one.
fn all_shapes() -> Vec<Shape> {
    let lane = |rows: Range<usize>, ranks: Range<usize>, scale| LoraLane { rows, ranks, scale };
    let split = [
        Shape {
            name: "few tokens in a wide layer",
            row_lengths: vec![3],
            lanes: vec![lane(0..3, 0..5, 0.5)],
            ranks: 5,
            d_in: 1_208,
            d_out: 905,
            ..Shape::default()
        },
        Shape {
            name: "many tokens in a narrow layer",
            row_lengths: vec![701, 2],
            lanes: vec![lane(701..703, 0..3, -1.0), lane(0..701, 4..24, 2.0)],
            ranks: 25,
            d_in: 24,
            d_out: 15,
            ..Shape::default()
        },
    ];
    shapes().into_iter().chain(split).collect()
}

/// `y` and `dx` sum over a width and a rank, the factors' gradients over a lane's tokens and the other width.
fn tolerance(shape: &Shape) -> f64 {
    let longest = shape.lanes.iter().flat_map(|lane| [lane.rows.len(), lane.ranks.len()]).max().unwrap_or(0);
    LORA.over(shape.d_in.max(shape.d_out).max(longest))
}

#[test]
fn agrees_with_the_reference_in_any_layout() {
    for shape in all_shapes() {
        let inputs = Inputs::random(&shape);
        let expected = plain(&inputs, &shape.lanes);
        for layout in Layout::ALL {
            let got = fast(&inputs, &shape.lanes, layout);
            for ((name, got), (_, expected)) in got.named().into_iter().zip(expected.named()) {
                let what = format!("{}, {layout:?}: {name}", shape.name);
                assert_close(&what, got, expected, tolerance(&shape));
            }
        }
    }
}

/// Exact in f32. What is stored in 16 bits is rounded, so that whole numbers too are only near.
fn assert_exact(what: &str, got: &Outputs, expected: &Outputs, shape: &Shape) {
    for ((name, got), (_, expected)) in got.named().into_iter().zip(expected.named()) {
        let what = format!("{what}: {name}");
        if dtype() == DType::F32 {
            assert_equal(&what, got, expected);
        } else {
            assert_close(&what, got, expected, tolerance(shape));
        }
    }
}

/// With whole numbers nothing is rounded, so that the smallest mistake in an index or a scale shows.
#[test]
fn is_exact_on_whole_numbers() {
    for mut shape in all_shapes() {
        for (lane, scale) in shape.lanes.iter_mut().zip([2.0, -1.0, 0.5].into_iter().cycle()) {
            lane.scale = scale;
        }
        let inputs = Inputs::integers(&shape, 12);
        let (got, expected) = (fast(&inputs, &shape.lanes, Layout::Dense), plain(&inputs, &shape.lanes));
        assert_exact(shape.name, &got, &expected, &shape);
    }
}

/// Lanes of any size in any order, each after a gap of tokens and of ranks.
fn any_lanes() -> impl Strategy<Value = (usize, usize, Vec<LoraLane>)> {
    let lane = (0..3usize, 0..40usize, 0..3usize, 0..20usize);
    let sizes = proptest::collection::vec(lane, 0..9);
    (sizes, any::<bool>()).prop_map(|(sizes, reversed)| {
        let (mut tokens, mut ranks, mut lanes) = (0, 0, Vec::new());
        for (i, (token_gap, length, rank_gap, rank)) in sizes.into_iter().enumerate() {
            let (row, first) = (tokens + token_gap, ranks + rank_gap);
            (tokens, ranks) = (row + length, first + rank);
            let scale = [1.0, -2.0, 0.5][i % 3];
            lanes.push(LoraLane { rows: row..tokens, ranks: first..ranks, scale });
        }
        if reversed {
            lanes.reverse();
        }
        (tokens, ranks, lanes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn is_exact_for_any_lanes((tokens, ranks, lanes) in any_lanes(), d_in in 1..50usize, d_out in 1..50usize, seed: u64) {
        let shape = Shape { row_lengths: vec![tokens], lanes, ranks, d_in, d_out, ..Shape::default() };
        let inputs = Inputs::integers(&shape, seed);
        let (got, expected) = (fast(&inputs, &shape.lanes, Layout::Dense), plain(&inputs, &shape.lanes));
        assert_exact("any lanes", &got, &expected, &shape);
    }
}

#[test]
fn repeats_bit_for_bit() {
    for shape in all_shapes() {
        let inputs = Inputs::random(&shape);
        let once = fast(&inputs, &shape.lanes, Layout::Dense);
        for _ in 0..3 {
            let again = fast(&inputs, &shape.lanes, Layout::Dense);
            for ((name, again), (_, once)) in again.named().into_iter().zip(once.named()) {
                assert_equal(&format!("{}: {name}", shape.name), again, once);
            }
        }
    }
}

fn rows(matrix: &Matrix, rows: Range<usize>) -> Matrix {
    let columns = matrix.columns();
    let data = matrix.data()[rows.start * columns..rows.end * columns].to_vec();
    Matrix::new(rows.len(), columns, data)
}

#[test]
fn a_lane_is_the_same_alone() {
    for shape in shapes() {
        let inputs = Inputs::random(&shape);
        let together = fast(&inputs, &shape.lanes, Layout::Dense);
        for LoraLane { rows: tokens, ranks, scale } in &shape.lanes {
            let own = Inputs {
                x: rows(&inputs.x, tokens.clone()),
                w: inputs.w.clone(),
                a: rows(&inputs.a, ranks.clone()),
                b: rows(&inputs.b, ranks.clone()),
                dy: rows(&inputs.dy, tokens.clone()),
            };
            let lane = LoraLane { rows: 0..tokens.len(), ranks: 0..ranks.len(), scale: *scale };
            let alone = fast(&own, &[lane], Layout::Dense);
            let what = |name: &str| format!("{}, tokens {tokens:?}: {name}", shape.name);
            let tolerance = tolerance(&shape);
            assert_close(&what("y"), &rows(&together.y, tokens.clone()), &alone.y, tolerance);
            assert_close(&what("dx"), &rows(&together.dx, tokens.clone()), &alone.dx, tolerance);
            assert_close(&what("da"), &rows(&together.da, ranks.clone()), &alone.da, tolerance);
            assert_close(&what("db"), &rows(&together.db, ranks.clone()), &alone.db, tolerance);
        }
    }
}

#[test]
fn nan_stays_in_its_lane() {
    for shape in shapes().iter().filter(|shape| shape.lanes.len() > 1) {
        let clean = Inputs::random(shape);
        let untouched = fast(&clean, &shape.lanes, Layout::Dense);
        let sick = shape.lanes.len() / 2;
        let LoraLane { rows: tokens, ranks, .. } = &shape.lanes[sick];
        let mut inputs = Inputs::random(shape);
        for (matrix, rows) in
            [(&mut inputs.x, tokens), (&mut inputs.dy, tokens), (&mut inputs.a, ranks), (&mut inputs.b, ranks)]
        {
            let columns = matrix.columns();
            matrix.data_mut()[rows.start * columns..rows.end * columns].fill(f64::NAN);
        }
        let poisoned = fast(&inputs, &shape.lanes, Layout::Dense);
        if !tokens.is_empty() {
            assert!(poisoned.y.row(tokens.start)[0].is_nan() && poisoned.dx.row(tokens.start)[0].is_nan());
        }
        for ((name, got), (_, expected)) in poisoned.named().into_iter().zip(untouched.named()) {
            let own = if name == "y" || name == "dx" { tokens } else { ranks };
            for others in [0..own.start, own.end..got.rows()] {
                let what = format!("{}: {name}, rows {others:?}", shape.name);
                assert_equal(&what, &rows(got, others.clone()), &rows(expected, others));
            }
        }
    }
}

fn unequal_ranks() -> (Shape, Inputs) {
    let shape = shapes().into_iter().find(|shape| shape.name == "unequal ranks").expect("in the table");
    let inputs = Inputs::random(&shape);
    (shape, inputs)
}

#[test]
fn the_frozen_weight_gets_no_gradient_even_if_it_asks() {
    let (shape, inputs) = unequal_ranks();
    let (x, a, b) = (tensor2(&inputs.x), factor(&inputs.a).require_grad(), factor(&inputs.b));
    for weight in [tensor2(&inputs.w), tensor2(&inputs.w).require_grad()] {
        let y = multi_lora_linear(x.clone(), weight.clone(), a.clone(), b.clone(), &shape.lora_lanes());
        let gradients = backward(y, &inputs.dy, Layout::Dense);
        assert!(weight.grad(&gradients).is_none());
        assert!(a.grad(&gradients).is_some());
    }
}

#[test]
fn only_what_asks_gets_a_gradient() {
    let (shape, inputs) = unequal_ranks();
    let all = fast(&inputs, &shape.lanes, Layout::Dense);
    for asking in [[true, false, false], [false, true, false], [false, false, true], [false, true, true]] {
        let leaf = |tensor: Tensor<2>, asks: bool| if asks { tensor.require_grad() } else { tensor };
        let [x, a, b] = [tensor2(&inputs.x), factor(&inputs.a), factor(&inputs.b)];
        let leaves = [leaf(x, asking[0]), leaf(a, asking[1]), leaf(b, asking[2])];
        let [x, a, b] = leaves.clone();
        let gradients =
            backward(multi_lora_linear(x, tensor2(&inputs.w), a, b, &shape.lora_lanes()), &inputs.dy, Layout::Dense);
        for ((leaf, asks), expected) in leaves.iter().zip(asking).zip([&all.dx, &all.da, &all.db]) {
            let got = leaf.grad(&gradients).map(matrix);
            assert_eq!(got.is_some(), asks, "{asking:?}");
            if let Some(got) = got {
                assert_equal(&format!("{asking:?}"), &got, expected);
            }
        }
    }
}

#[test]
fn without_gradients_the_output_is_the_same() {
    let (shape, inputs) = unequal_ranks();
    let ([x, w], [a, b]) = ([&inputs.x, &inputs.w].map(tensor2), [&inputs.a, &inputs.b].map(factor));
    let y = multi_lora_linear(x.inner(), w.inner(), a.inner(), b.inner(), &shape.lora_lanes());
    assert_equal("y", &matrix(y), &fast(&inputs, &shape.lanes, Layout::Dense).y);
}

#[test]
fn a_gradient_without_memory_of_its_own_is_read_right() {
    let (shape, mut inputs) = unequal_ranks();
    inputs.dy.data_mut().fill(1.0);
    let x = tensor2(&inputs.x).require_grad();
    let (a, b) = (factor(&inputs.a).require_grad(), factor(&inputs.b).require_grad());
    // The gradient of a sum is a single one, seen as often as there are entries.
    let y = multi_lora_linear(x.clone(), tensor2(&inputs.w), a, b, &shape.lora_lanes());
    let dx = x.grad(&y.sum().backward()).map(matrix).expect("asked for");
    assert_close("dx", &dx, &plain(&inputs, &shape.lanes).dx, tolerance(&shape));
}

/// Four tokens of width 3 to width 2, and five ranks.
fn small(lanes: &[(Range<usize>, Range<usize>)]) -> Tensor<2> {
    let zeros = |rows, columns| tensor(&Matrix::zeros(rows, columns), [rows, columns]);
    let lane = |(rows, ranks): &(Range<usize>, Range<usize>)| LoraLane {
        rows: rows.clone(),
        ranks: ranks.clone(),
        scale: 1.0,
    };
    let lanes: Vec<_> = lanes.iter().map(lane).collect();
    multi_lora_linear(zeros(4, 3), zeros(2, 3), zeros(5, 3), zeros(5, 2), &lanes.into())
}

#[test]
#[should_panic(expected = "two lanes share tokens: 0..3 and 2..4")]
fn overlapping_tokens_panic() {
    small(&[(2..4, 2..5), (0..3, 0..2)]);
}

#[test]
#[should_panic(expected = "two lanes share ranks: 0..3 and 2..5")]
fn overlapping_ranks_panic() {
    small(&[(0..2, 0..3), (2..4, 2..5)]);
}

#[test]
#[should_panic(expected = "a lane has the tokens 3..5 of only 4")]
fn tokens_that_are_not_there_panic() {
    small(&[(3..5, 0..2)]);
}

#[test]
#[should_panic(expected = "a lane has the ranks 4..6 of only 5")]
fn ranks_that_are_not_there_panic() {
    small(&[(0..2, 4..6)]);
}

fn of_shapes(x: [usize; 2], w: [usize; 2], a: [usize; 2], b: [usize; 2]) -> Tensor<2> {
    let [x, w, a, b] = [x, w, a, b].map(|shape| tensor(&Matrix::zeros(shape[0], shape[1]), shape));
    multi_lora_linear(x, w, a, b, &vec![].into())
}

#[test]
#[should_panic(expected = "x has width 4, the weight takes 3")]
fn an_input_of_another_width_panics() {
    of_shapes([1, 4], [2, 3], [5, 3], [5, 2]);
}

#[test]
#[should_panic(expected = "a has width 2, the weight takes 3")]
fn a_down_factor_of_another_width_panics() {
    of_shapes([1, 3], [2, 3], [5, 2], [5, 2]);
}

#[test]
#[should_panic(expected = "b has width 3, the weight gives 2")]
fn an_up_factor_that_is_not_transposed_panics() {
    of_shapes([1, 3], [2, 3], [5, 3], [5, 3]);
}

#[test]
#[should_panic(expected = "a has 5 ranks, b has 4")]
fn factors_of_different_ranks_panic() {
    of_shapes([1, 3], [2, 3], [5, 3], [4, 2]);
}
