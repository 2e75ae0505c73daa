//! What a device has, and the tiles that follow from it.

use cubecl::CubeCount;
use cubecl::client::Client;
use cubecl::ir::{ElemType, FloatKind};

/// Most units in a cube of kernels that go over vectors.
const UNITS: usize = 256;

/// Most units that a cube is given.
///
/// On CubeCL's CPU runtime a unit is a core, and one that waits for the others of its cube spins: beside any other work two
/// of them take many times as long as one, and alone they gain nothing.
pub(super) fn most_units(client: &Client) -> usize {
    let hardware = &client.properties().hardware;
    if hardware.num_cpu_cores.is_some() { 1 } else { hardware.max_units_per_cube as usize }
}

/// Units of a cube that goes over vectors: a power of two, as many as there is work for.
pub(super) fn units(client: &Client, width: usize) -> usize {
    let most = most_units(client);
    let wanted = width.next_power_of_two().clamp(1, UNITS);
    1 << wanted.min(most).max(1).ilog2()
}

/// How many cubes run at a time, about; a launch of fewer leaves some of the device idle.
pub(super) fn parallel_cubes(client: &Client) -> usize {
    let hardware = &client.properties().hardware;
    let processors = hardware.num_streaming_multiprocessors.or(hardware.num_cpu_cores);
    // WebGPU doesn't tell; most GPUs that speak it have fewer.
    processors.unwrap_or(32) as usize
}

/// A launch of as many cubes as have work, up to some rounds of what runs at a time.
///
/// Work beyond that is for loops of the kernel, in steps of `CUBE_COUNT_X`: so no device's limit on cubes matters, and a
/// cube's start is paid few times.
pub(super) fn cubes(client: &Client, work: usize) -> CubeCount {
    const ROUNDS: usize = 32;
    CubeCount::Static(work.min(ROUNDS * parallel_cubes(client)) as u32, 1, 1)
}

/// So many cubes or somewhat more, since a dimension of a launch is limited: a kernel finds its own by `CUBE_POS`, and does
/// nothing past the last.
pub(super) fn cube_for_each(client: &Client, count: usize) -> CubeCount {
    let (most, _, _) = client.properties().hardware.max_cube_count;
    let rows = count.div_ceil(most as usize).max(1);
    CubeCount::Static(count.div_ceil(rows) as u32, rows as u32, 1)
}

/// Whether the device multiplies 16 x 16 x 16 tiles of this type into f32 with units of their own.
pub(super) fn has_matrix_units(client: &Client, elem: ElemType) -> bool {
    let f32 = ElemType::Float(FloatKind::F32);
    client.features().matmul.cmma.iter().any(|config| {
        config.a_type == elem
            && config.b_type == elem
            && config.cd_type == f32
            && (config.m, config.n, config.k) == (16, 16, 16)
    })
}

/// Whether the device is a processor that poses as one: CubeCL's CPU runtime, a software rasterizer behind WebGPU, or the CUDA
/// driver of `gpu/emulate`.
///
/// Burn's own kernels that are chosen by trying (products and reductions) take seconds to minutes to choose there.
pub(super) fn is_software(client: &Client) -> bool {
    let identity = &client.properties().identity;
    identity.physical.is_none() || identity.name == "Emulated GPU"
}

/// Whether Burn's products of f32 may round their operands to TF32.
pub(super) fn rounds_f32(client: &Client) -> bool {
    client.properties().supports_type(ElemType::Float(FloatKind::TF32))
}
