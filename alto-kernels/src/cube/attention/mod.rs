//! Causal attention over ragged rows on CubeCL, without a matrix of all scores.
//!
//! `y[t] = sum_s p[t, s] v[s]` with `p[t, s] = exp(scale q[t] · k[s] - log_sum[t])` over the tokens `s <= t` of the row.
//! `q`, `y`: `[tokens, heads, dim]`; `k`, `v`: `[tokens, kv_heads, dim]`, of one dtype; `log_sums`: `[tokens, heads]`, f32.
//!
//! Forward is one launch (Dao, FlashAttention-2, 2023), backward three: `dy · y` for each token and head, then the gradient
//! of the queries, then those of keys and values, both of which compute `p` anew. A cube has a block of a row's tokens and
//! goes over blocks of the same row: blocks are in a table that all layers share, so that rows of any length are one launch.
//!
//! With matrix units and without, all but products and sums is the same code: heads are staged in shared memory, scores
//! come back to it in f32, their exponentials are there in the inputs' type.
//!
//! Tried, by the registers that it takes when compiled for compute capability 8.0 and 9.0, where none spills as it is:
//! - Exponentials unrolled: 20 to 50 registers more for each unit, so fewer cubes at a time.
//! - Two tensors staged in one loop: the gradient of queries spills on 8.0.
//! - Four loads on their way at a time and not two: the output spills on 9.0 for heads of 128.

mod accumulator;
mod blocks;
pub(super) mod forward;
pub(super) mod keys;
mod memory;
pub(super) mod queries;
pub(super) mod statistics;
pub(super) mod tile;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use self::blocks::{cubes, key_blocks, query_blocks};
use self::forward::attend;
use self::keys::key_gradients;
use self::queries::query_gradients;
use self::statistics::{SHARING, summarize};
use self::tile::Tile;
use super::hardware::units;
use super::tensor::{RowMajor, empty};
use crate::attention::{AttentionExtension, AttentionGradients, AttentionKernel};
use crate::rows::Rows;

/// Sizes that all launches share.
#[derive(Clone, Copy)]
struct Heads {
    heads: usize,
    kv_heads: usize,
    dim: usize,
}

impl Heads {
    fn new(q: &CubeTensor, k: &CubeTensor) -> Self {
        let [_, heads, dim] = q.shape().dims();
        let [_, kv_heads, _] = k.shape().dims();
        Self { heads, kv_heads, dim }
    }

    /// Query heads for each key-value head.
    fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
}

impl AttentionKernel for CubeBackend {
    fn attention_forward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        rows: &Rows,
        scale: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let heads = Heads::new(&q, &k);
        let (q, k, v) = (RowMajor::new(q), RowMajor::new(k), RowMajor::new(v));
        let like = q.tensor();
        let output = empty(like, like.shape(), like.dtype);
        let log_sums = empty(like, Shape::new([q.rows, heads.heads]), DType::F32);
        if q.rows == 0 || q.width == 0 {
            return (output, log_sums);
        }
        let tile = Tile::new(like, heads.dim, forward::FOOTPRINT);
        let blocks = query_blocks(like, rows, tile);
        // SAFETY: a cube for each head and block of rows that add up to the tokens of all inputs and outputs.
        unsafe {
            attend::launch_unchecked(
                &like.client,
                cubes(heads.heads, blocks.entries()),
                tile.cube_dim(),
                q.arg(),
                k.arg(),
                v.arg(),
                blocks.arg(),
                output.clone().into_buffer_arg(),
                log_sums.clone().into_buffer_arg(),
                blocks.entries() as u32,
                heads.heads as u32,
                heads.group() as u32,
                q.stride as u32,
                k.stride as u32,
                v.stride as u32,
                scale,
                tile,
                tile.vector(&[&q, &k, &v]),
                q.elem(),
            );
        }
        (output, log_sums)
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
        let heads = Heads::new(&q, &k);
        let (q, k, v) = (RowMajor::new(q), RowMajor::new(k), RowMajor::new(v));
        let (output, gradient) = (RowMajor::new(output), RowMajor::new(gradient));
        let like = q.tensor();
        let dq = empty(like, like.shape(), like.dtype);
        let dk = empty(like, k.tensor().shape(), like.dtype);
        let dv = empty(like, v.tensor().shape(), like.dtype);
        if q.rows == 0 || q.width == 0 {
            return AttentionGradients { dq, dk, dv };
        }
        let statistics = token_statistics(&output, log_sums, &gradient, heads);

        let tile = Tile::new(like, heads.dim, queries::FOOTPRINT);
        let blocks = query_blocks(like, rows, tile);
        // SAFETY: a cube for each head and block of rows that add up to the tokens of all inputs and outputs.
        unsafe {
            query_gradients::launch_unchecked(
                &like.client,
                cubes(heads.heads, blocks.entries()),
                tile.cube_dim(),
                q.arg(),
                k.arg(),
                v.arg(),
                gradient.arg(),
                statistics.clone().into_buffer_arg(),
                blocks.arg(),
                dq.clone().into_buffer_arg(),
                blocks.entries() as u32,
                heads.heads as u32,
                heads.group() as u32,
                q.stride as u32,
                k.stride as u32,
                v.stride as u32,
                gradient.stride as u32,
                scale,
                tile,
                tile.vector(&[&q, &k, &v, &gradient]),
                q.elem(),
            );
        }

        let tile = Tile::new(like, heads.dim, keys::FOOTPRINT);
        let blocks = key_blocks(like, rows, tile);
        // SAFETY: likewise, for each key-value head.
        unsafe {
            key_gradients::launch_unchecked(
                &like.client,
                cubes(heads.kv_heads, blocks.entries()),
                tile.cube_dim(),
                q.arg(),
                k.arg(),
                v.arg(),
                gradient.arg(),
                statistics.into_buffer_arg(),
                blocks.arg(),
                dk.clone().into_buffer_arg(),
                dv.clone().into_buffer_arg(),
                blocks.entries() as u32,
                heads.kv_heads as u32,
                heads.group() as u32,
                q.stride as u32,
                k.stride as u32,
                v.stride as u32,
                gradient.stride as u32,
                scale,
                tile,
                tile.vector(&[&q, &k, &v, &gradient]),
                q.elem(),
            );
        }
        AttentionGradients { dq, dk, dv }
    }
}

/// `[tokens, heads, 2]`: each `log_sum`, and `dy · y`.
fn token_statistics(output: &RowMajor, log_sums: CubeTensor, gradient: &RowMajor, heads: Heads) -> CubeTensor {
    let like = output.tensor();
    let made = empty(like, Shape::new([output.rows, heads.heads, 2]), DType::F32);
    let units = units(&like.client, heads.heads * SHARING);
    let across = output.rows.min(blocks::MOST);
    // SAFETY: a cube for each token of all inputs and of the output.
    unsafe {
        summarize::launch_unchecked(
            &like.client,
            CubeCount::Static(across as u32, output.rows.div_ceil(across) as u32, 1),
            CubeDim::new_1d(units as u32),
            output.arg(),
            gradient.arg(),
            into_contiguous(log_sums).into_buffer_arg(),
            made.clone().into_buffer_arg(),
            output.rows as u32,
            heads.heads as u32,
            output.stride as u32,
            gradient.stride as u32,
            heads.dim,
            units,
            tile::vector(heads.dim, &[output, gradient]),
            output.elem(),
        );
    }
    made
}

impl AttentionExtension for CubeBackend {
    fn causal_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        rows: Rows,
        scale: f32,
    ) -> FloatTensor<Self> {
        Self::attention_forward(q, k, v, &rows, scale).0
    }
}
