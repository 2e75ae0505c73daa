//! The multi-LoRA linear layer on CubeCL.
//!
//! `Y = X Wᵀ` over the whole batch, then for every lane `S = X Aᵀ` and `Y += scale S B`. In backward `dX = dY W`,
//! `dS = scale dY Bᵀ`, `dX += dS A`, `dA = dSᵀ X` and `dB = scale Sᵀ dY`. `S` and `dS` are f32, packed `[rows, ranks]` of each
//! lane, one lane after another.
//!
//! Forward launches the base product, [`down`] and [`up`], backward the base product, [`down`], [`up`], [`gradient`] and
//! [`fold`], however many lanes there are. Where tiles alone would leave much of the device idle, `down` is split along
//! the width and `gradient` along the tokens; parts are added up in order, so that the same input gives the same bits.
//!
//! What is multiplied by matrix units is rounded to the dtype of the weights first, adapters and down projections too;
//! without matrix units these stay f32. Sums are f32 always.

pub(super) mod down;
pub(super) mod fold;
pub(super) mod gradient;
mod schedule;
pub(super) mod up;
mod work;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;

use super::hardware::{cube_for_each, units};
use super::product::product;
use super::tensor::{RowMajor, elem, empty};
use super::tiles::Tiles;
use crate::lanes::LoraLanes;
use crate::lora::{LoraExtension, LoraKernel};
use schedule::Spread;

/// How all launches of a layer multiply.
struct Plan {
    elem: ElemType,
    /// Of what is staged in shared memory.
    staged: ElemType,
    tiles: Tiles,
}

impl Plan {
    /// For operands of these layouts; the first has the dtype of the activations.
    fn new(operands: &[&RowMajor]) -> Self {
        let tensor = operands[0].tensor();
        let elem = elem(tensor);
        let vector = |entries: usize| operands.iter().all(|operand| operand.is_made_of(entries));
        let tiles = Tiles::new(&tensor.client, elem, vector);
        let staged = if tiles.down.matrix { elem } else { ElemType::Float(FloatKind::F32) };
        Self { elem, staged, tiles }
    }
}

/// Panics unless the adapters' factors are f32, and the activations of the weight's dtype.
fn check(x: &CubeTensor, weight: &CubeTensor, a: &CubeTensor, b: &CubeTensor) {
    let (x, weight) = (x.dtype, weight.dtype);
    assert_eq!(x, weight, "x is {x:?}, the weight {weight:?}");
    for (what, dtype) in [("a", a.dtype), ("b", b.dtype)] {
        assert_eq!(dtype, DType::F32, "{what} is {dtype:?}, adapters are f32 on this device");
    }
}

/// The packed `x factorᵀ` of all lanes, times their scales if `scaled`, in parts to add up: `[parts, entries]`.
fn project_down(x: &RowMajor, factor: &RowMajor, lanes: &LoraLanes, scaled: bool, plan: &Plan) -> CubeTensor {
    let (like, tile) = (x.tensor(), plan.tiles.down);
    let client = &like.client;
    let table = schedule::token_rank_blocks(lanes, like, tile);
    let (entries, packed) = (table.entries(), schedule::packed(lanes));
    let parts = schedule::down_parts(client, entries, x.width, tile);
    let sums = empty(like, Shape::new([parts.count, packed]), DType::F32);
    if entries == 0 {
        return sums;
    }
    // SAFETY: the table stays within the tokens and ranks that were checked against x and the factor, whose widths are
    // equal; it has each of the packed entries once, and sums has them once for each part.
    unsafe {
        down::down::launch_unchecked(
            client,
            cube_for_each(client, entries * parts.count),
            CubeDim::new_1d(tile.units as u32),
            tile.vector,
            x.arg(),
            factor.arg(),
            table.arg(),
            sums.clone().into_buffer_arg(),
            x.width as u32,
            x.stride as u32,
            factor.stride as u32,
            entries as u32,
            parts.count as u32,
            parts.length as u32,
            packed as u32,
            u32::from(scaled),
            tile,
            plan.elem,
            plan.staged,
        );
    }
    sums
}

/// Adds `down factor` to `y` in place, times the lanes' scales if `scaled`, and gives the down projections in one part.
fn project_up(
    down: CubeTensor,
    factor: &RowMajor,
    y: &RowMajor,
    lanes: &LoraLanes,
    scaled: bool,
    plan: &Plan,
) -> CubeTensor {
    let (like, tile) = (y.tensor(), plan.tiles.up);
    let client = &like.client;
    let [part_count, packed] = down.shape().dims();
    let sums = empty(like, Shape::new([1, packed]), DType::F32);
    let table = schedule::token_blocks(lanes, like, tile);
    let entries = table.entries();
    if entries == 0 {
        return sums;
    }
    let bands = schedule::up_parts(client, entries, y.width, tile);
    // SAFETY: as for the down projection, with y of the factor's width and x's tokens; tokens and bands of columns belong
    // to one cube each, and so do the packed entries, which the cubes of the first band write.
    unsafe {
        up::up::launch_unchecked(
            client,
            cube_for_each(client, entries * bands.count),
            CubeDim::new_1d(tile.units as u32),
            tile.vector,
            down.into_buffer_arg(),
            factor.arg(),
            table.arg(),
            y.arg(),
            sums.clone().into_buffer_arg(),
            y.width as u32,
            y.stride as u32,
            factor.stride as u32,
            entries as u32,
            bands.count as u32,
            bands.length as u32,
            part_count as u32,
            packed as u32,
            u32::from(scaled),
            tile,
            plan.elem,
            plan.staged,
        );
    }
    sums
}

/// `d_downᵀ x` and `scale downᵀ dy` of all lanes, zeros for ranks without tokens.
fn factor_gradients(
    x: &RowMajor,
    dy: &RowMajor,
    down: CubeTensor,
    d_down: CubeTensor,
    ranks: usize,
    lanes: &LoraLanes,
    plan: &Plan,
) -> (CubeTensor, CubeTensor) {
    let (like, tile) = (x.tensor(), plan.tiles.gradient);
    let client = &like.client;
    let (d_in, d_out) = (x.width, dy.width);
    let da = empty(like, Shape::new([ranks, d_in]), DType::F32);
    let db = empty(like, Shape::new([ranks, d_out]), DType::F32);
    if ranks == 0 {
        return (da, db);
    }
    let [part_count, packed] = d_down.shape().dims();
    let blocks = d_in.div_ceil(tile.m()) + d_out.div_ceil(tile.m());
    let spread = Spread::new(client, lanes, blocks, tile);
    let partials = empty(like, Shape::new([spread.slots, d_in + d_out]), DType::F32);
    let work = spread.work(lanes, like, tile);
    if work.entries() > 0 {
        // SAFETY: the table stays within the tokens of x and dy and the ranks of da and db; it has each of these ranks
        // once, or as many times as it has slots of its own in partials.
        unsafe {
            gradient::gradient::launch_unchecked(
                client,
                cube_for_each(client, work.entries() * blocks),
                CubeDim::new_1d(tile.units as u32),
                tile.vector,
                x.arg(),
                dy.arg(),
                down.into_buffer_arg(),
                d_down.into_buffer_arg(),
                work.arg(),
                da.clone().into_buffer_arg(),
                db.clone().into_buffer_arg(),
                partials.clone().into_buffer_arg(),
                d_in as u32,
                d_out as u32,
                x.stride as u32,
                dy.stride as u32,
                work.entries() as u32,
                part_count as u32,
                packed as u32,
                spread.slots as u32,
                tile,
                plan.elem,
                plan.staged,
            );
        }
    }
    let (folds, units) = (spread.folds(lanes, like), units(client, d_in + d_out));
    // SAFETY: units past the last column of the last rank do nothing, and a rank's slots lie within partials.
    unsafe {
        fold::fold::launch_unchecked(
            client,
            cube_for_each(client, ranks * (d_in + d_out).div_ceil(units)),
            CubeDim::new_1d(units as u32),
            partials.into_buffer_arg(),
            folds.arg(),
            da.clone().into_buffer_arg(),
            db.clone().into_buffer_arg(),
            d_in as u32,
            d_out as u32,
            ranks as u32,
            folds.entries() as u32,
            spread.slots as u32,
            units,
        );
    }
    (da, db)
}

impl LoraKernel for CubeBackend {
    fn lora_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        lanes: &LoraLanes,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        check(&x, &weight, &a, &b);
        let dtype = x.dtype;
        let y = RowMajor::new(product(x.clone(), weight, true, dtype));
        let (x, a, b) = (RowMajor::new(x), RowMajor::new(a), RowMajor::new(b));
        let plan = Plan::new(&[&x, &y, &a, &b]);
        let down = project_down(&x, &a, lanes, false, &plan);
        let down = project_up(down, &b, &y, lanes, true, &plan);
        (y.into_tensor(), down)
    }

    fn lora_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        down: FloatTensor<Self>,
        dy: FloatTensor<Self>,
        lanes: &LoraLanes,
        needs_dx: bool,
    ) -> (Option<FloatTensor<Self>>, FloatTensor<Self>, FloatTensor<Self>) {
        let [ranks, _] = a.shape().dims();
        let dtype = x.dtype;
        let dx = needs_dx.then(|| RowMajor::new(product(dy.clone(), weight, false, dtype)));
        let (x, a, b, dy) = (RowMajor::new(x), RowMajor::new(a), RowMajor::new(b), RowMajor::new(dy));
        let mut operands = vec![&x, &dy, &a, &b];
        operands.extend(&dx);
        let plan = Plan::new(&operands);
        let mut d_down = project_down(&dy, &b, lanes, true, &plan);
        if let Some(dx) = &dx {
            d_down = project_up(d_down, &a, dx, lanes, false, &plan);
        }
        let (da, db) = factor_gradients(&x, &dy, down, d_down, ranks, lanes, &plan);
        (dx.map(RowMajor::into_tensor), da, db)
    }
}

impl LoraExtension for CubeBackend {
    fn multi_lora_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        lanes: LoraLanes,
    ) -> FloatTensor<Self> {
        Self::lora_forward(x, weight, a, b, &lanes).0
    }
}
