//! The multi-LoRA linear layer on Flex.
//!
//! The base product runs on all threads over the whole batch. Lanes are cut into tiles of tokens: a tile's `S = X Aᵀ` and
//! `Y += scale S B` are computed together while it is in cache, likewise `dS = scale dY Bᵀ` and `dX += dS A`. `dA = dSᵀ X`
//! and `dB = scale Sᵀ dY` sum over all of a lane's tokens, so they are cut along the width instead.

use std::ops::Range;

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use rayon::prelude::*;

use super::matrix::{Parallelism, View, ViewMut, threads_for};
use super::tensor::{Dense, tensor};
use crate::lanes::{LoraLane, LoraLanes};
use crate::lora::LoraKernel;

/// Tokens in one tile of a lane.
const TILE: usize = 128;
/// Columns of `dA` and `dB` computed together.
const BAND: usize = 512;

/// Up to [`TILE`] tokens of one lane.
struct Tile<'l> {
    lane: &'l LoraLane,
    rows: Range<usize>,
}

impl LoraKernel for Flex {
    fn lora_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        lanes: &LoraLanes,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (x, weight, a, b) = (Dense::new(x), Dense::new(weight), Dense::new(a), Dense::new(b));
        let [tokens, d_in] = x.dims();
        let [d_out, _] = weight.dims();
        let mut y = base(&x, View::dense(weight.slice(), d_out, d_in).transposed(), tokens, d_out);
        let tiles = tiles(lanes);
        let mut down = vec![0.0; down_len(&tiles)];
        let work = tiles.iter().zip(tile_rows(&mut y, &tiles, d_out)).zip(tile_downs(&mut down, &tiles));
        work.collect::<Vec<_>>().into_par_iter().for_each(|((tile, y), s)| {
            let (n, r) = (tile.rows.len(), tile.lane.ranks.len());
            let x = View::dense(&x.slice()[tile.rows.start * d_in..], n, d_in);
            let a = View::dense(&a.slice()[tile.lane.ranks.start * d_in..], r, d_in);
            let b = View::dense(&b.slice()[tile.lane.ranks.start * d_out..], r, d_out);
            ViewMut::dense(s, n, r).product(1.0, x, a.transposed(), false, Parallelism::None);
            let s = View::dense(s, n, r);
            ViewMut::dense(y, n, d_out).product(tile.lane.scale, s, b, true, Parallelism::None);
        });
        let kept = down.len();
        (tensor(y, [tokens, d_out]), tensor(down, [kept]))
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
        let (x, weight, a, b) = (Dense::new(x), Dense::new(weight), Dense::new(a), Dense::new(b));
        let (down, dy) = (Dense::new(down), Dense::new(dy));
        let [tokens, d_in] = x.dims();
        let [d_out, _] = weight.dims();
        let [ranks, _] = a.dims();
        let mut dx =
            if needs_dx { base(&dy, View::dense(weight.slice(), d_out, d_in), tokens, d_in) } else { Vec::new() };
        let tiles = tiles(lanes);
        let mut d_down = vec![0.0; down.slice().len()];
        let rows =
            if needs_dx { tile_rows(&mut dx, &tiles, d_in) } else { tiles.iter().map(|_| &mut [][..]).collect() };
        let work = tiles.iter().zip(rows).zip(tile_downs(&mut d_down, &tiles));
        work.collect::<Vec<_>>().into_par_iter().for_each(|((tile, dx), ds)| {
            let (n, r) = (tile.rows.len(), tile.lane.ranks.len());
            let dy = View::dense(&dy.slice()[tile.rows.start * d_out..], n, d_out);
            let a = View::dense(&a.slice()[tile.lane.ranks.start * d_in..], r, d_in);
            let b = View::dense(&b.slice()[tile.lane.ranks.start * d_out..], r, d_out);
            ViewMut::dense(ds, n, r).product(tile.lane.scale, dy, b.transposed(), false, Parallelism::None);
            if needs_dx {
                let ds = View::dense(ds, n, r);
                ViewMut::dense(dx, n, d_in).product(1.0, ds, a, true, Parallelism::None);
            }
        });
        let lane_downs = lane_downs(lanes);
        let da = factor_gradient(ranks, d_in, lanes, |_| 1.0, &d_down, &lane_downs, x.slice());
        let db = factor_gradient(ranks, d_out, lanes, |lane| lane.scale, down.slice(), &lane_downs, dy.slice());
        let dx = needs_dx.then(|| tensor(dx, [tokens, d_in]));
        (dx, tensor(da, [ranks, d_in]), tensor(db, [ranks, d_out]))
    }
}

/// `x w` over the whole batch, on all threads.
fn base(x: &Dense, w: View, tokens: usize, width: usize) -> Vec<f32> {
    let [_, inner] = x.dims();
    let mut y = vec![0.0; tokens * width];
    let x = View::dense(x.slice(), tokens, inner);
    ViewMut::dense(&mut y, tokens, width).product(1.0, x, w, false, threads_for(tokens, width, inner));
    y
}

/// `scale Sᵀ V` of every lane, `[ranks, width]`: `s` holds `[n, r]` of each lane, `v` is `[tokens, width]`.
fn factor_gradient(
    ranks: usize,
    width: usize,
    lanes: &[LoraLane],
    scale: impl Fn(&LoraLane) -> f32 + Sync,
    s: &[f32],
    lane_downs: &[usize],
    v: &[f32],
) -> Vec<f32> {
    let mut gradient = vec![0.0; ranks * width];
    let mut lane_order: Vec<usize> = (0..lanes.len()).filter(|&lane| !lanes[lane].ranks.is_empty()).collect();
    lane_order.sort_by_key(|&lane| lanes[lane].ranks.start);
    let (mut rest, mut taken, mut work) = (gradient.as_mut_slice(), 0, Vec::new());
    for lane in lane_order {
        let ranks = &lanes[lane].ranks;
        let (_, tail) = rest.split_at_mut((ranks.start - taken) * width);
        let (own, tail) = tail.split_at_mut(ranks.len() * width);
        (rest, taken) = (tail, ranks.end);
        let bands = ViewMut::dense(own, ranks.len(), width).column_bands(BAND);
        work.extend(bands.into_iter().enumerate().map(|(band, view)| (lane, band * BAND, view)));
    }
    work.into_par_iter().for_each(|(lane, column, mut own)| {
        let (rows, r) = (&lanes[lane].rows, lanes[lane].ranks.len());
        if rows.is_empty() {
            return;
        }
        let s = View::dense(&s[lane_downs[lane]..], rows.len(), r);
        let v = View::new(&v[rows.start * width + column..], rows.len(), BAND.min(width - column), width);
        own.product(scale(&lanes[lane]), s.transposed(), v, false, Parallelism::None);
    });
    gradient
}

/// Where each lane's part of the down projections begins: they lie in the order of the lanes' tokens.
fn lane_downs(lanes: &[LoraLane]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    order.sort_by_key(|&lane| lanes[lane].rows.start);
    let (mut downs, mut end) = (vec![0; lanes.len()], 0);
    for lane in order {
        downs[lane] = end;
        end += lanes[lane].rows.len() * lanes[lane].ranks.len();
    }
    downs
}

/// The lanes' tokens in tiles, in token order; lanes without ranks have none.
fn tiles(lanes: &[LoraLane]) -> Vec<Tile<'_>> {
    let mut tiles = Vec::new();
    for lane in lanes.iter().filter(|lane| !lane.ranks.is_empty()) {
        let starts = lane.rows.clone().step_by(TILE);
        tiles.extend(starts.map(|start| Tile { lane, rows: start..(start + TILE).min(lane.rows.end) }));
    }
    tiles.sort_by_key(|tile| tile.rows.start);
    tiles
}

fn down_len(tiles: &[Tile]) -> usize {
    tiles.iter().map(|tile| tile.rows.len() * tile.lane.ranks.len()).sum()
}

/// The rows of each tile in a `[tokens, width]` matrix.
fn tile_rows<'d>(mut data: &'d mut [f32], tiles: &[Tile], width: usize) -> Vec<&'d mut [f32]> {
    let mut taken = 0;
    let cut = tiles.iter().map(|tile| {
        let (_, tail) = std::mem::take(&mut data).split_at_mut((tile.rows.start - taken) * width);
        let (own, tail) = tail.split_at_mut(tile.rows.len() * width);
        (data, taken) = (tail, tile.rows.end);
        own
    });
    cut.collect()
}

/// The part of each tile in the down projections.
fn tile_downs<'d>(mut data: &'d mut [f32], tiles: &[Tile]) -> Vec<&'d mut [f32]> {
    let cut = tiles.iter().map(|tile| {
        let (own, tail) = std::mem::take(&mut data).split_at_mut(tile.rows.len() * tile.lane.ranks.len());
        data = tail;
        own
    });
    cut.collect()
}
