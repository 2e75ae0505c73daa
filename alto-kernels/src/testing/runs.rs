//! Each kernel once, and its reference on the same numbers.

use std::ops::Range;

use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};

use super::comparison::Comparison;
use super::draws::Draws;
use super::kernel::Kernel;
use super::shapes::Shape;
use crate::reference::{self, Matrix};
use crate::{AdamWGroup, AdamWState};

/// What is run, and on what.
pub(super) struct Run<'r> {
    pub(super) kernel: Kernel,
    pub(super) shape: &'r Shape,
    /// With differentiation.
    pub(super) device: &'r Device,
    pub(super) dtype: DType,
}

impl Run<'_> {
    fn tensor<const D: usize>(&self, matrix: &Matrix, shape: [usize; D]) -> Tensor<D> {
        self.tensor_of(matrix, shape, self.dtype)
    }

    fn tensor2(&self, matrix: &Matrix) -> Tensor<2> {
        self.tensor(matrix, [matrix.rows(), matrix.columns()])
    }

    fn tensor_of<const D: usize>(&self, matrix: &Matrix, shape: [usize; D], dtype: DType) -> Tensor<D> {
        let data: Vec<f32> = matrix.data().iter().map(|&entry| entry as f32).collect();
        Tensor::from_data(TensorData::new(data, shape), (self.device, dtype))
    }

    /// An adapter's factor, which is f32 and asked for its gradient.
    fn factor(&self, matrix: &Matrix) -> Tensor<2> {
        self.tensor_of(matrix, [matrix.rows(), matrix.columns()], DType::F32).require_grad()
    }

    /// The gradients of `sum(y * dy)`.
    fn backward<const D: usize>(&self, y: Tensor<D>, dy: &Matrix) -> Gradients {
        let dy = self.tensor_of(dy, y.dims(), y.dtype());
        (y * dy).backward()
    }

    fn draws(&self) -> Draws {
        Draws::new(11, self.dtype)
    }

    /// The tensors beside their references: sums of `terms`, relative to their largest entries or to `least`.
    fn beside<const N: usize>(
        &self,
        terms: usize,
        least: f64,
        tensors: [(&'static str, Matrix, Matrix); N],
    ) -> Vec<Comparison> {
        let tolerance = self.kernel.tolerance().over(terms, self.dtype);
        tensors.iter().map(|(name, got, expected)| Comparison::new(name, got, expected, tolerance, least)).collect()
    }
}

/// All dimensions after the first are columns; a tensor of one dimension is one row.
fn matrix<const D: usize>(tensor: Tensor<D>) -> Matrix {
    let dims = tensor.dims();
    let (rows, columns) = if D == 1 { (1, dims[0]) } else { (dims[0], dims[1..].iter().product()) };
    let data: Vec<f32> = tensor.into_data().convert::<f32>().try_to_vec().expect("f32");
    Matrix::from_f32(rows, columns, &data)
}

fn gradient<const D: usize>(leaf: &Tensor<D>, gradients: &Gradients) -> Matrix {
    matrix(leaf.grad(gradients).expect("a leaf that asks for its gradient"))
}

pub(super) fn multi_lora_linear(run: &Run) -> Vec<Comparison> {
    let (shape, mut draws) = (run.shape, run.draws());
    let [x, dy] = [shape.d_in, shape.d_out].map(|width| draws.matrix(shape.tokens(), width));
    let w = draws.matrix(shape.d_out, shape.d_in);
    let [a, b] = [shape.d_in, shape.d_out].map(|width| draws.matrix(shape.ranks, width));

    let leaves = (run.tensor2(&x).require_grad(), run.factor(&a), run.factor(&b));
    let (x_leaf, a_leaf, b_leaf) = leaves.clone();
    let y = crate::multi_lora_linear(x_leaf, run.tensor2(&w), a_leaf, b_leaf, &shape.lora_lanes());
    let gradients = run.backward(y.clone(), &dy);

    let (dx, da, db) = reference::multi_lora_linear_backward(&x, &w, &a, &b, &shape.lanes, &dy);
    let longest = shape.lanes.iter().flat_map(|lane| [lane.rows.len(), lane.ranks.len()]).max().unwrap_or(0);
    run.beside(
        shape.d_in.max(shape.d_out).max(longest),
        0.0,
        [
            ("y", matrix(y), reference::multi_lora_linear(&x, &w, &a, &b, &shape.lanes)),
            ("dx", gradient(&leaves.0, &gradients), dx),
            ("da", gradient(&leaves.1, &gradients), da),
            ("db", gradient(&leaves.2, &gradients), db),
        ],
    )
}

/// A gradient of attention sums differences of products of three entries up to 1, over the root of a head's width.
const ATTENTION_TERMS: f64 = 0.25;

pub(super) fn causal_attention(run: &Run) -> Vec<Comparison> {
    let (shape, mut draws) = (run.shape, run.draws());
    let (tokens, dim, lengths) = (shape.tokens(), shape.head_dim, shape.row_lengths.as_slice());
    let [q, k, v, dy] =
        [shape.heads, shape.kv_heads, shape.kv_heads, shape.heads].map(|heads| draws.matrix(tokens, heads * dim));
    let scale = (dim as f32).powf(-0.5);

    let leaf = |m: &Matrix, heads| run.tensor(m, [tokens, heads, dim]).require_grad();
    let leaves = [leaf(&q, shape.heads), leaf(&k, shape.kv_heads), leaf(&v, shape.kv_heads)];
    let [q_leaf, k_leaf, v_leaf] = leaves.clone();
    let y = crate::causal_attention(q_leaf, k_leaf, v_leaf, &lengths.into(), scale);
    let gradients = run.backward(y.clone(), &dy);

    let scale = f64::from(scale);
    let (dq, dk, dv) = reference::causal_attention_backward(&q, &k, &v, dim, lengths, scale, &dy);
    let [got_dq, got_dk, got_dv] = leaves.each_ref().map(|leaf| gradient(leaf, &gradients));
    run.beside(
        dim.max(lengths.iter().copied().max().unwrap_or(0)),
        ATTENTION_TERMS,
        [
            ("y", matrix(y), reference::causal_attention(&q, &k, &v, dim, lengths, scale)),
            ("dq", got_dq, dq),
            ("dk", got_dk, dk),
            ("dv", got_dv, dv),
        ],
    )
}

pub(super) fn linear_log_probs(run: &Run) -> Vec<Comparison> {
    let (shape, targets, mut draws) = (run.shape, run.shape.targets(), run.draws());
    let [x, head] = [shape.tokens(), shape.vocabulary].map(|rows| draws.matrix(rows, shape.d_in));
    let slope = draws.matrix(1, targets.iter().flatten().count());

    let x_leaf = run.tensor2(&x).require_grad();
    let log_probs = crate::linear_log_probs(x_leaf.clone(), run.tensor2(&head), &targets);
    let gradients = run.backward(log_probs.clone(), &slope);

    let expected = reference::linear_log_probs(&x, &head, &targets);
    let dx = reference::linear_log_probs_backward(&x, &head, &targets, slope.data());
    run.beside(
        shape.d_in,
        0.0,
        [
            ("log_probs", matrix(log_probs), Matrix::new(1, expected.len(), expected)),
            ("dx", gradient(&x_leaf, &gradients), dx),
        ],
    )
}

pub(super) fn rms_norm(run: &Run) -> Vec<Comparison> {
    const EPSILON: f32 = 1e-5;
    let (shape, mut draws) = (run.shape, run.draws());
    let [x, dy] = [(); 2].map(|()| draws.matrix(shape.tokens(), shape.d_in));
    let weight = draws.matrix(1, shape.d_in);

    let x_leaf = run.tensor2(&x).require_grad();
    let y = crate::rms_norm(x_leaf.clone(), run.tensor(&weight, [shape.d_in]), EPSILON);
    let gradients = run.backward(y.clone(), &dy);

    let (weight, epsilon) = (weight.data(), f64::from(EPSILON));
    let dx = reference::rms_norm_backward(&x, weight, epsilon, &dy);
    let mut compared = run.beside(shape.d_in, 0.0, [("y", matrix(y), reference::rms_norm(&x, weight, epsilon))]);
    // The gradient's two terms are about 1, and cancel where the width is 1.
    compared.extend(run.beside(shape.d_in, 1.0, [("dx", gradient(&x_leaf, &gradients), dx)]));
    compared
}

pub(super) fn swiglu(run: &Run) -> Vec<Comparison> {
    let (shape, mut draws) = (run.shape, run.draws());
    let [mut gate, up, dy] = [(); 3].map(|()| draws.matrix(shape.tokens(), shape.d_out));
    // Gates between -8 and 8, so that some are nearly shut and some nearly open.
    gate.data_mut().iter_mut().for_each(|gate| *gate *= 8.0);

    let leaves = [&gate, &up].map(|m| run.tensor2(m).require_grad());
    let [gate_leaf, up_leaf] = leaves.clone();
    let y = crate::swiglu(gate_leaf, up_leaf);
    let gradients = run.backward(y.clone(), &dy);

    let (dgate, dup) = reference::swiglu_backward(&gate, &up, &dy);
    let [got_dgate, got_dup] = leaves.each_ref().map(|leaf| gradient(leaf, &gradients));
    run.beside(
        1,
        0.0,
        [("y", matrix(y), reference::swiglu(&gate, &up)), ("dgate", got_dgate, dgate), ("dup", got_dup, dup)],
    )
}

pub(super) fn rotary(run: &Run) -> Vec<Comparison> {
    let (shape, mut draws) = (run.shape, run.draws());
    let (tokens, lengths) = (shape.tokens(), shape.row_lengths.as_slice());
    let [x, dy] = [(); 2].map(|()| draws.matrix(tokens, shape.heads * shape.head_dim));
    // Three positions more than any row has.
    let positions = lengths.iter().copied().max().unwrap_or(0) + 3;
    let [cos, sin] = [(); 2].map(|()| draws.matrix(positions, shape.head_dim / 2));

    let x_leaf = run.tensor(&x, [tokens, shape.heads, shape.head_dim]).require_grad();
    // Angles are f32 whatever is turned.
    let [cos_table, sin_table] =
        [&cos, &sin].map(|table| run.tensor_of(table, [table.rows(), table.columns()], DType::F32));
    let y = crate::rotary(x_leaf.clone(), &lengths.into(), cos_table, sin_table);
    let gradients = run.backward(y.clone(), &dy);

    let dx = reference::rotary_backward(&dy, lengths, &cos, &sin);
    run.beside(
        1,
        0.0,
        [("y", matrix(y), reference::rotary(&x, lengths, &cos, &sin)), ("dx", gradient(&x_leaf, &gradients), dx)],
    )
}

/// One step of every lane's adapter, each with settings of its own.
pub(super) fn grouped_adamw(run: &Run) -> Vec<Comparison> {
    let shape = run.shape;
    let (entries, groups) = (shape.ranks * (shape.d_in + shape.d_out), groups(shape));
    // The optimizer's numbers are f32 whatever the layers compute in, and take no part in differentiation.
    let mut draws = Draws::new(11, DType::F32);
    let [mut parameters, mut first, mut second, gradient] = [(); 4].map(|()| draws.matrix(1, entries));
    second.data_mut().iter_mut().for_each(|v| *v = v.abs());

    let flat = |row: &Matrix| run.tensor_of(row, [entries], DType::F32).inner();
    let state = AdamWState { parameters: flat(&parameters), first: flat(&first), second: flat(&second) };
    let (state, report) = crate::grouped_adamw(state, flat(&gradient), &groups);

    let step = |group: &AdamWGroup| {
        reference::adamw(parameters.data_mut(), first.data_mut(), second.data_mut(), gradient.data(), group)
    };
    let outcomes = groups.iter().map(step).flat_map(|outcome| [outcome.norm, -1.0]).collect();
    let f32_run = Run { dtype: DType::F32, ..*run };
    f32_run.beside(
        1,
        0.0,
        [
            ("parameters", matrix(state.parameters), parameters),
            ("first moments", matrix(state.first), first),
            ("second moments", matrix(state.second), second),
            ("report", matrix(report), Matrix::new(groups.len(), 2, outcomes)),
        ],
    )
}

/// A group per lane: its part of `a`, then of `b`, which lies behind all of `a`.
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
