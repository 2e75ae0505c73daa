//! Matrix products over a whole batch: the frozen layers and the head.
//!
//! `out = lhs rhs` or `lhs rhsᵀ`. `lhs`: `[m, k]`; `rhs`: `[k, n]`, or `[n, k]` if transposed; `out`: `[m, n]`.
//! Burn multiplies 16-bit operands on cards, and f32 where it isn't rounded: with CubeK's kernels, the fastest of which it
//! finds by trying each on the first product of a size. A plain tiled kernel stands in
//! - on processors that pose as a device, where trying takes 6 to 18 s a size (lavapipe) or minutes (CubeCL's runtime);
//! - for f32 where matrix units would round the operands to TF32's 10 bits, as CubeK lets them;
//! - where CubeK has no kernel.
//!
//! Tried, plain, 256 x 576 x 576 in f32: 20 GFLOP/s on two cores of CubeCL's CPU runtime with one unit per cube and vectors
//! of 16, 5.5 on the same cores through WebGPU and lavapipe.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::tensor::CubeTensor;
use cubecl::client::Client;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::hardware::{is_software, rounds_f32, units};
use super::tensor::{RowMajor, elem, empty};

/// `lhs rhs`, or `lhs rhsᵀ` if `rhs_transposed`, summed in f32 and rounded to `out` once.
///
/// Both operands are of one dtype, and may lie at any stride; a transposed one isn't copied. The sum over no columns is 0.
pub(super) fn product(lhs: CubeTensor, rhs: CubeTensor, rhs_transposed: bool, out: DType) -> CubeTensor {
    let [_, k] = lhs.shape().dims();
    let rounds = lhs.dtype == DType::F32 && rounds_f32(&lhs.client);
    if k == 0 || rounds || is_software(&lhs.client) {
        return plain_product(lhs, rhs, rhs_transposed, out);
    }
    let mut factor = rhs.clone();
    if rhs_transposed {
        factor.meta.swap(0, 1);
    }
    let done = matmul(lhs.clone(), factor, None, MatmulStrategy::default(), out);
    done.unwrap_or_else(|_| plain_product(lhs, rhs, rhs_transposed, out))
}

/// The tile of one cube, and how its units share it.
struct Tile {
    /// Entries in a row of a unit's part: the vector it computes with.
    vector: usize,
    /// Rows of a unit's part.
    rows: usize,
    /// Units beside each other.
    across: usize,
    /// Units below each other.
    down: usize,
    /// Columns of `lhs` in shared memory at a time.
    depth: usize,
}

impl Tile {
    fn new(client: &Client) -> Self {
        if client.properties().hardware.num_cpu_cores.is_some() {
            // A unit is a core, with long vectors. One per cube, since cores that wait for each other gain nothing.
            return Self { vector: 16, rows: 8, across: 1, down: 1, depth: 128 };
        }
        let units = units(client, 256);
        let across = 1 << units.ilog2().div_ceil(2);
        Self { vector: 4, rows: 4, across, down: units / across, depth: 16 }
    }
}

fn plain_product(lhs: CubeTensor, rhs: CubeTensor, rhs_transposed: bool, out: DType) -> CubeTensor {
    let (lhs, rhs) = (RowMajor::new(lhs), RowMajor::new(rhs));
    let n = if rhs_transposed { rhs.rows } else { rhs.width };
    let out = empty(lhs.tensor(), Shape::new([lhs.rows, n]), out);
    if lhs.rows == 0 || n == 0 {
        return out;
    }
    let client = &lhs.tensor().client;
    let tile = Tile::new(client);
    let cubes_across = n.div_ceil(tile.vector * tile.across) as u32;
    let cubes_down = lhs.rows.div_ceil(tile.rows * tile.down) as u32;
    // SAFETY: reads and writes are guarded by the shapes, which both operands and the output have.
    unsafe {
        plain::launch_unchecked(
            client,
            CubeCount::Static(cubes_across, cubes_down, 1),
            CubeDim::new_1d((tile.across * tile.down) as u32),
            lhs.arg(),
            rhs.arg(),
            out.clone().into_buffer_arg(),
            lhs.rows as u32,
            n as u32,
            lhs.width as u32,
            lhs.stride as u32,
            rhs.stride as u32,
            rhs_transposed,
            tile.rows,
            tile.across,
            tile.down,
            tile.depth,
            tile.vector,
            lhs.elem(),
            elem(&out),
        );
    }
    out
}

/// Each unit sums a part of `rows` by one vector in registers, from tiles in shared memory.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn plain<E: Float, O: Float, N: Size>(
    lhs: &[E],
    rhs: &[E],
    out: &mut [O],
    m: u32,
    n: u32,
    k: u32,
    lhs_stride: u32,
    rhs_stride: u32,
    #[comptime] rhs_transposed: bool,
    #[comptime] rows: usize,
    #[comptime] across: usize,
    #[comptime] down: usize,
    #[comptime] depth: usize,
    #[define(N)] vector: usize,
    #[define(E)] _elem: ElemType,
    #[define(O)] _elem_out: ElemType,
) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let (lhs_stride, rhs_stride) = (lhs_stride as usize, rhs_stride as usize);
    let vector = comptime!(vector);
    let (units, height) = comptime!((across * down, rows * down));
    let unit = UNIT_POS as usize;
    let first_row = CUBE_POS_Y as usize * height;
    let first_column = CUBE_POS_X as usize * comptime!(across * vector);
    let mut left = Shared::<[f32]>::new_slice(comptime!(height * depth));
    let mut right = Shared::<[Vector<f32, N>]>::new_slice(comptime!(depth * across));
    let mut sums = Array::<Vector<f32, N>>::new(rows);
    #[unroll]
    for i in 0..rows {
        sums[i] = Vector::new(0.0f32);
    }
    let (own_row, own_column) = (unit / across * rows, unit % across);

    for start in range_stepped(0, k, depth) {
        for e in range_stepped(unit, comptime!(height * depth), units) {
            let (row, column) = (first_row + e / depth, start + e % depth);
            let mut entry = 0.0f32;
            if row < m && column < k {
                entry = f32::cast_from(lhs[row * lhs_stride + column]);
            }
            left[e] = entry;
        }
        for e in range_stepped(unit, comptime!(depth * across), units) {
            // Neighbours read what lies beside each other.
            let (deep, wide) =
                if comptime!(rhs_transposed) { (e % depth, e / depth) } else { (e / across, e % across) };
            let mut entries = Vector::<f32, N>::new(0.0f32);
            if start + deep < k {
                #[unroll]
                for j in 0..vector {
                    let (row, column) = (start + deep, first_column + wide * vector + j);
                    if column < n {
                        let at = if comptime!(rhs_transposed) {
                            column * rhs_stride + row
                        } else {
                            row * rhs_stride + column
                        };
                        entries.insert(j, f32::cast_from(rhs[at]));
                    }
                }
            }
            right[deep * across + wide] = entries;
        }
        sync_cube();
        for deep in 0..depth {
            let entries = right[deep * across + own_column];
            #[unroll]
            for i in 0..rows {
                sums[i] += Vector::new(left[(own_row + i) * depth + deep]) * entries;
            }
        }
        sync_cube();
    }

    #[unroll]
    for i in 0..rows {
        let row = first_row + own_row + i;
        let sums = sums[i];
        #[unroll]
        for j in 0..vector {
            let column = first_column + own_column * vector + j;
            if row < m && column < n {
                out[row * n + column] = O::cast_from(sums.extract(j));
            }
        }
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use burn::backend::ops::FloatTensorOps;
    use burn::tensor::{TensorData, read_sync};
    use burn_cubecl::{CubeBackend, CubeDevice};

    use super::*;

    /// Small whole numbers, whose products and sums are exact in every dtype.
    fn integers(rows: usize, columns: usize, seed: usize) -> Vec<f32> {
        (0..rows * columns).map(|i| ((i * i + 7 * i + seed) % 5) as f32 - 2.0).collect()
    }

    #[test]
    fn the_plain_product_is_exact_on_whole_numbers() {
        let device = CubeDevice::cpu().expect("built in");
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for [m, n, k] in [[0, 3, 2], [3, 0, 2], [2, 3, 0], [1, 1, 1], [5, 7, 9], [8, 16, 128], [19, 37, 260]] {
                for transposed in [false, true] {
                    let (lhs, rhs) = (integers(m, k, 1), integers(k, n, 2));
                    let at = |i: usize, j: usize| (0..k).map(|l| lhs[i * k + l] * rhs[l * n + j]).sum::<f32>();
                    let expected: Vec<f32> = (0..m * n).map(|e| at(e / n, e % n)).collect();
                    let tensor = |data: Vec<f32>, shape: [usize; 2]| {
                        CubeBackend::float_from_data(TensorData::new(data, shape).convert_dtype(dtype), &device)
                    };
                    let turned = (0..n * k).map(|e| rhs[e % k * n + e / k]).collect();
                    let rhs = if transposed { tensor(turned, [n, k]) } else { tensor(rhs.clone(), [k, n]) };
                    let got = product(tensor(lhs.clone(), [m, k]), rhs, transposed, DType::F32);
                    let got = read_sync(CubeBackend::float_into_data(got)).expect("a result");
                    let got = got.try_to_vec::<f32>().expect("f32");
                    assert_eq!(got, expected, "{dtype:?}, {m} x {n} x {k}, transposed: {transposed}");
                }
            }
        }
    }
}
