//! Modules, and launches of their kernels.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::PathBuf;
use std::{env, fs, process, slice};

use super::{
    Handle, INVALID_PTX, INVALID_VALUE, NOT_FOUND, SUCCESS, Status, UNKNOWN, attribute, fail, runs, shared_memory,
};
use crate::block::Launch;
use crate::clock;
use crate::decode::{Kernel, decode};
use crate::launch::{Grid, run};
use crate::memory::Allocations;
use crate::ptx::entries;

/// In the names of kernels by which CubeCL measures a device, for minutes here; nobody reads what they compute.
const NOT_RUN: [&str; 2] = ["_throughput_", "prime_buffer_"];

/// What a launch costs, in instructions.
const LAUNCH: u64 = 5_000;

struct Module {
    ptx: String,
    /// Empty if nothing is to be run.
    kernels: Vec<Kernel>,
}

struct Function {
    name: String,
    module: *const Module,
}

pub(super) fn load(image: *const c_char) -> Result<Handle, Status> {
    // SAFETY: a module's image is text that ends in a zero.
    let ptx = unsafe { CStr::from_ptr(image) }.to_string_lossy().into_owned();
    let kernels =
        if runs() { entries(&ptx).and_then(|entries| entries.iter().map(decode).collect()) } else { Ok(vec![]) };
    let kernels = kernels.map_err(|error: String| fail(INVALID_PTX, error))?;
    Ok(Box::into_raw(Box::new(Module { ptx, kernels })).cast())
}

pub(super) fn function(module: Handle, name: *const c_char) -> Result<Handle, Status> {
    // SAFETY: the caller gives text that ends in a zero, and a module that was loaded; modules are never unloaded.
    let (name, module) = unsafe { (CStr::from_ptr(name).to_string_lossy().into_owned(), &*module.cast::<Module>()) };
    if runs() && module.kernels.iter().all(|kernel| kernel.name != name) {
        return Err(fail(NOT_FOUND, format!("the module has no kernel {name}")));
    }
    Ok(Box::into_raw(Box::new(Function { name, module })).cast())
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(_function: Handle, attribute: c_int, value: c_int) -> Status {
    // Of the attributes that can be set, the most dynamic shared memory is 8.
    if attribute == 8 && value as usize > shared_memory() {
        return fail(INVALID_VALUE, format!("{value} bytes of shared memory, of {} there are", shared_memory()));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: *const Function,
    blocks_x: c_uint,
    blocks_y: c_uint,
    blocks_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    _stream: Handle,
    arguments: *const *const u8,
    _extra: Handle,
) -> Status {
    let (blocks, block) = ([blocks_x, blocks_y, blocks_z], [block_x, block_y, block_z]);
    let grid = Grid { blocks, block, dynamic_shared_bytes: shared_bytes as usize };
    // SAFETY: made by `cuModuleGetFunction`; functions and modules are never unloaded.
    let (function, module) = unsafe { (&*function, &*(*function).module) };
    clock::advance(LAUNCH);
    if let Err(error) = write_ptx(function, module, &grid) {
        return fail(UNKNOWN, error);
    }
    if let Some(error) = out_of_range(&grid) {
        return fail(INVALID_VALUE, format!("{}: {error}", function.name));
    }
    let kernel = module.kernels.iter().find(|kernel| kernel.name == function.name);
    let Some(kernel) = kernel.filter(|kernel| !NOT_RUN.iter().any(|part| kernel.name.contains(part))) else {
        return SUCCESS;
    };
    let size = kernel.parameters.last().map_or(0, |(bytes, at)| at + bytes);
    let mut parameters = vec![0; size];
    for (index, &(bytes, at)) in kernel.parameters.iter().enumerate() {
        // SAFETY: the caller gives an argument for each parameter of the kernel, as long as it is.
        let argument = unsafe { slice::from_raw_parts(*arguments.add(index), bytes) };
        parameters[at..at + bytes].copy_from_slice(argument);
    }
    let launch = Launch { kernel, grid, parameters, allocations: Allocations::now() };
    match run(&launch) {
        Ok(()) => SUCCESS,
        Err(error) => fail(UNKNOWN, error),
    }
}

/// What of a launch is more than the device has, if anything.
fn out_of_range(grid: &Grid) -> Option<String> {
    let most = |first: c_int| [0, 1, 2].map(|axis| attribute(first + axis).unwrap_or(0) as u32);
    let fits = |lengths: [u32; 3], most: [u32; 3]| lengths.iter().zip(most).all(|(&l, most)| (1..=most).contains(&l));
    if !fits(grid.blocks, most(5)) {
        return Some(format!("{:?} blocks, of at most {:?}", grid.blocks, most(5)));
    }
    if !fits(grid.block, most(2)) || grid.units() > 1024 {
        return Some(format!("blocks of {:?}, at most {:?} and 1024 in all", grid.block, most(2)));
    }
    (grid.dynamic_shared_bytes > shared_memory())
        .then(|| format!("{} bytes of shared memory, of {} there are", grid.dynamic_shared_bytes, shared_memory()))
}

/// Writes the module where the environment asks for it, with the launch in its first line.
fn write_ptx(function: &Function, module: &Module, grid: &Grid) -> Result<(), String> {
    let Some(folder) = env::var_os("EMULATED_PTX").map(PathBuf::from) else { return Ok(()) };
    let file = folder.join(format!("{}.ptx", function.name));
    if file.exists() {
        return Ok(());
    }
    let ([x, y, z], shared) = (grid.block, grid.dynamic_shared_bytes);
    let text = format!("// {} units {x} {y} {z} shared {shared}\n{}", function.name, module.ptx);
    // Whole or not at all, whoever else writes it.
    let unfinished = folder.join(format!("{}.{:x}", function.name, process::id()));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&unfinished, text));
    written.and_then(|()| fs::rename(&unfinished, &file)).map_err(|error| format!("{}: {error}", file.display()))
}
