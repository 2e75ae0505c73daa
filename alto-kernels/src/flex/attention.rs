//! Causal attention over ragged rows on Flex.
//!
//! The unit of work is a row and a key-value head with its group of query heads: nothing that it writes is shared. It goes
//! through its queries in blocks of [`BLOCK`], each against the keys up to the block's end, so that a matrix of
//! `BLOCK x row length` scores is all that exists per thread.

use std::ops::Range;

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use rayon::prelude::*;

use super::matrix::{Parallelism, View, ViewMut};
use super::tensor::{Dense, tensor};
use super::vector::{dot, exp, exp_sum, max, vectorized};
use crate::attention::{AttentionGradients, AttentionKernel};
use crate::rows::Rows;

/// Queries that attend together.
const BLOCK: usize = 64;

/// Sizes that all units of work share.
#[derive(Clone, Copy)]
struct Heads {
    /// Query heads per key-value head.
    group: usize,
    kv_heads: usize,
    dim: usize,
}

impl Heads {
    fn new(q: &Dense, k: &Dense) -> Self {
        let [_, heads, dim] = q.dims();
        let [_, kv_heads, _] = k.dims();
        Self { group: heads / kv_heads, kv_heads, dim }
    }

    fn count(&self) -> usize {
        self.group * self.kv_heads
    }

    /// One head's part of `[tokens, heads, dim]`, for the tokens of `rows`.
    fn view<'a>(&self, data: &'a [f32], heads: usize, head: usize, rows: Range<usize>) -> View<'a> {
        let width = heads * self.dim;
        if rows.is_empty() {
            return View::dense(&[], 0, self.dim);
        }
        View::new(&data[rows.start * width + head * self.dim..], rows.len(), self.dim, width)
    }
}

/// `[tokens, heads * width]` cut into each row's bands of `width * group` columns.
fn bands<'a>(mut data: &'a mut [f32], rows: &Rows, columns: usize, band: usize) -> Vec<ViewMut<'a>> {
    let mut bands = Vec::new();
    for &length in rows.iter() {
        let (row, tail) = data.split_at_mut(length * columns);
        data = tail;
        bands.extend(ViewMut::dense(row, length, columns).column_bands(band));
    }
    bands
}

/// Every row that isn't empty with every key-value head, in the order of [`bands`].
fn units(rows: &Rows, heads: Heads) -> Vec<(Range<usize>, usize)> {
    let rows = rows.ranges().filter(|row| !row.is_empty());
    rows.flat_map(|row| (0..heads.kv_heads).map(move |head| (row.clone(), head))).collect()
}

/// Blocks of queries of a row.
fn blocks(row: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = row.end;
    row.clone().step_by(BLOCK).map(move |start| start..(start + BLOCK).min(end))
}

impl AttentionKernel for Flex {
    fn attention_forward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        rows: &Rows,
        scale: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (q, k, v) = (Dense::new(q), Dense::new(k), Dense::new(v));
        let [tokens, count, dim] = q.dims();
        let heads = Heads::new(&q, &k);
        let mut output = vec![0.0; tokens * count * dim];
        let mut log_sums = vec![0.0; tokens * count];
        let outputs = bands(&mut output, rows, count * dim, heads.group * dim);
        let sums = bands(&mut log_sums, rows, count, heads.group);
        let work: Vec<_> = units(rows, heads).into_iter().zip(outputs).zip(sums).collect();
        work.into_par_iter().for_each_init(Vec::new, |scores, (((row, kv_head), output), mut sums)| {
            for (member, mut output) in output.column_bands(dim).into_iter().enumerate() {
                let head = kv_head * heads.group + member;
                for block in blocks(&row) {
                    let keys = row.start..block.end;
                    let q = heads.view(q.slice(), heads.count(), head, block.clone());
                    let k = heads.view(k.slice(), heads.kv_heads, kv_head, keys.clone());
                    let v = heads.view(v.slice(), heads.kv_heads, kv_head, keys.clone());
                    scores.resize(block.len() * keys.len(), 0.0);
                    let mut p = ViewMut::dense(scores, block.len(), keys.len());
                    p.product(scale, q, k.transposed(), false, Parallelism::None);
                    vectorized!({
                        for (i, row_scores) in scores.chunks_exact_mut(keys.len()).enumerate() {
                            let (seen, unseen) = row_scores.split_at_mut(block.start + i + 1 - row.start);
                            let top = max(seen);
                            let sum = exp_sum(seen, top);
                            let inverse = 1.0 / sum;
                            seen.iter_mut().for_each(|p| *p *= inverse);
                            unseen.fill(0.0);
                            sums.row_mut(block.start + i - row.start)[member] = top + sum.ln();
                        }
                    });
                    let p = View::dense(scores, block.len(), keys.len());
                    let mut o = output.rows_mut(block.start - row.start, block.len());
                    o.product(1.0, p, v, false, Parallelism::None);
                }
            }
        });
        (tensor(output, [tokens, count, dim]), tensor(log_sums, [tokens, count]))
    }

    fn attention_backward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        output: FloatTensor<Self>,
        log_sums: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        rows: &Rows,
        scale: f32,
    ) -> AttentionGradients<Self> {
        let (q, k, v) = (Dense::new(q), Dense::new(k), Dense::new(v));
        let (output, log_sums, gradient) = (Dense::new(output), Dense::new(log_sums), Dense::new(gradient));
        let [tokens, count, dim] = q.dims();
        let heads = Heads::new(&q, &k);
        let mut dq = vec![0.0; tokens * count * dim];
        let mut dk = vec![0.0; tokens * heads.kv_heads * dim];
        let mut dv = vec![0.0; tokens * heads.kv_heads * dim];
        let dqs = bands(&mut dq, rows, count * dim, heads.group * dim);
        let dks = bands(&mut dk, rows, heads.kv_heads * dim, dim);
        let dvs = bands(&mut dv, rows, heads.kv_heads * dim, dim);
        let work: Vec<_> = units(rows, heads).into_iter().zip(dqs).zip(dks.into_iter().zip(dvs)).collect();
        let scratch = || (Vec::new(), Vec::new());
        work.into_par_iter().for_each_init(scratch, |(weights, slopes), (((row, kv_head), dq), (mut dk, mut dv))| {
            for (member, mut dq) in dq.column_bands(dim).into_iter().enumerate() {
                let head = kv_head * heads.group + member;
                for block in blocks(&row) {
                    let keys = row.start..block.end;
                    let (n, seen) = (block.len(), keys.len());
                    let q = heads.view(q.slice(), count, head, block.clone());
                    let k = heads.view(k.slice(), heads.kv_heads, kv_head, keys.clone());
                    let v = heads.view(v.slice(), heads.kv_heads, kv_head, keys.clone());
                    let d_output = heads.view(gradient.slice(), count, head, block.clone());
                    weights.resize(n * seen, 0.0);
                    slopes.resize(n * seen, 0.0);
                    ViewMut::dense(weights, n, seen).product(scale, q, k.transposed(), false, Parallelism::None);
                    ViewMut::dense(slopes, n, seen).product(1.0, d_output, v.transposed(), false, Parallelism::None);
                    vectorized!({
                        let rows = weights.chunks_exact_mut(seen).zip(slopes.chunks_exact_mut(seen));
                        for (token, (weights, slopes)) in block.clone().zip(rows) {
                            let at = (token * count + head) * dim;
                            let delta = dot(&gradient.slice()[at..at + dim], &output.slice()[at..at + dim]);
                            let log_sum = log_sums.slice()[token * count + head];
                            let visible = token + 1 - row.start;
                            for (p, ds) in weights[..visible].iter_mut().zip(&mut slopes[..visible]) {
                                *p = exp(*p - log_sum);
                                *ds = *p * (*ds - delta) * scale;
                            }
                            weights[visible..].fill(0.0);
                            slopes[visible..].fill(0.0);
                            // A lone key has weight 1 whatever its score: what rounding leaves is no slope, though
                            // AdamW would make full steps of it. NaN stays.
                            if visible == 1 {
                                slopes[0] *= 0.0;
                            }
                        }
                    });
                    let (p, ds) = (View::dense(weights, n, seen), View::dense(slopes, n, seen));
                    dv.rows_mut(0, seen).product(1.0, p.transposed(), d_output, true, Parallelism::None);
                    dk.rows_mut(0, seen).product(1.0, ds.transposed(), q, true, Parallelism::None);
                    let mut dq = dq.rows_mut(block.start - row.start, n);
                    dq.product(1.0, ds, k, false, Parallelism::None);
                }
            }
        });
        let kv_shape = [tokens, heads.kv_heads, dim];
        AttentionGradients { dq: tensor(dq, [tokens, count, dim]), dk: tensor(dk, kv_shape), dv: tensor(dv, kv_shape) }
    }
}
