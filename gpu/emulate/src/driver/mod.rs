//! The driver's functions, as far as CubeCL calls them.
//!
//! Everything happens within the call, so that streams and events have nothing to wait for.

mod launch;
mod memory;

use std::cell::RefCell;
use std::env;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use launch::{function, load};
use memory::allocated;

use crate::clock;

/// Codes of `cuda.h`.
type Status = c_int;
const SUCCESS: Status = 0;
const INVALID_VALUE: Status = 1;
const OUT_OF_MEMORY: Status = 2;
const INVALID_PTX: Status = 218;
const NOT_FOUND: Status = 500;
/// Unlike a launch failure, it doesn't make all later calls fail.
const UNKNOWN: Status = 999;

/// CUDA 12.9.
const VERSION: c_int = 12_090;
const SHARED_MEMORY_UNASKED: usize = 48 << 10;

type Handle = *mut c_void;
/// What a stream or a context is; nobody looks inside.
const SOMETHING: Handle = ptr::dangling_mut::<u64>().cast();

thread_local! {
    /// What the last failure on this thread was about.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

fn fail(status: Status, message: impl Into<Vec<u8>>) -> Status {
    let message = CString::new(message).unwrap_or_default();
    eprintln!("emulated CUDA driver: {}", message.to_string_lossy());
    MESSAGE.replace(message);
    status
}

fn runs() -> bool {
    env::var("EMULATED_RUN").as_deref() != Ok("0")
}

fn capability() -> c_int {
    env::var("EMULATED_SM").ok().and_then(|sm| sm.parse().ok()).unwrap_or(90)
}

/// CubeCL allocates pages of up to a quarter of it, and none is touched that isn't read.
fn total_memory() -> usize {
    if runs() { 2 << 30 } else { 64 << 30 }
}

/// Bytes of shared memory that a block may ask for.
fn shared_memory() -> usize {
    if capability() >= 90 { 227 << 10 } else { 163 << 10 }
}

fn attribute(number: c_int) -> Option<c_int> {
    Some(match number {
        // Units of a block, in all and along each axis.
        1..=3 => 1024,
        4 => 64,
        // Blocks along each axis.
        5 => c_int::MAX,
        6 | 7 => 65_535,
        8 => SHARED_MEMORY_UNASKED as c_int,
        // Units of a warp.
        10 => 32,
        // Processors.
        16 => {
            if capability() >= 90 {
                132
            } else {
                108
            }
        }
        75 => capability() / 10,
        76 => capability() % 10,
        97 => shared_memory() as c_int,
        _ => return None,
    })
}

/// Functions that have nothing to do.
macro_rules! nothing {
    ($($name:ident($($type:ty),*);)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name($(_: $type),*) -> Status {
            SUCCESS
        })*
    };
}
nothing! {
    cuInit(c_uint);
    cuCtxSetCurrent(Handle);
    cuStreamDestroy_v2(Handle);
    cuStreamSynchronize(Handle);
    cuStreamWaitEvent(Handle, Handle, c_uint);
    cuEventSynchronize(Handle);
    cuEventQuery(Handle);
    cuModuleUnload(Handle);
}

/// Functions that write one value for their caller, or fail.
macro_rules! answers {
    ($($name:ident($type:ty $(, $argument:ident: $of:ty)*) = $value:expr;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $name(into: *mut $type $(, $argument: $of)*) -> Status {
            let value: Result<$type, Status> = $value;
            match value {
                Ok(value) => {
                    // SAFETY: the caller gives a place for the answer.
                    unsafe { into.write(value) };
                    SUCCESS
                }
                Err(status) => status,
            }
        })*
    };
}
answers! {
    cuDriverGetVersion(c_int) = Ok(VERSION);
    cuDeviceGetCount(c_int) = Ok(1);
    cuDeviceGet(c_int, index: c_int) = if index == 0 { Ok(0) } else { Err(INVALID_VALUE) };
    cuDeviceTotalMem_v2(usize, _device: c_int) = Ok(total_memory());
    cuDeviceGetAttribute(c_int, number: c_int, _device: c_int) =
        attribute(number).ok_or_else(|| fail(INVALID_VALUE, format!("device attribute {number} isn't known")));
    cuDevicePrimaryCtxRetain(Handle, _device: c_int) = Ok(SOMETHING);
    cuStreamCreate(Handle, _flags: c_uint) = Ok(SOMETHING);
    cuStreamCreateWithPriority(Handle, _flags: c_uint, _priority: c_int) = Ok(SOMETHING);
    cuEventCreate(Handle, _flags: c_uint) = Ok(Box::into_raw(Box::new(clock::now())).cast());
    cuMemAlloc_v2(u64, bytes: usize) = allocated(bytes);
    cuMemAllocAsync(u64, bytes: usize, _stream: Handle) = allocated(bytes);
    cuMemAllocHost_v2(Handle, bytes: usize) = allocated(bytes).map(|address| address as Handle);
    cuModuleLoadData(Handle, image: *const c_char) = load(image);
    cuModuleGetFunction(Handle, module: Handle, name: *const c_char) = function(module, name);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(status: Status, into: *mut *const c_char) -> Status {
    let name = match status {
        INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        INVALID_PTX => c"CUDA_ERROR_INVALID_PTX",
        NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        _ => c"CUDA_ERROR_UNKNOWN",
    };
    // SAFETY: the caller gives a place for the answer.
    unsafe { into.write(name.as_ptr()) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(_status: Status, into: *mut *const c_char) -> Status {
    // SAFETY: the caller gives a place for the answer, which lives until the next failure on this thread.
    unsafe { into.write(MESSAGE.with_borrow(|message| message.as_ptr())) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> Status {
    // SAFETY: the caller gives places for both answers.
    unsafe {
        least.write(0);
        greatest.write(0);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(into: *mut c_char, length: c_int, _device: c_int) -> Status {
    // SAFETY: the caller gives a place of this length.
    unsafe { copy_text(c"Emulated GPU", into, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetPCIBusId(into: *mut c_char, length: c_int, _device: c_int) -> Status {
    // SAFETY: the caller gives a place of this length.
    unsafe { copy_text(c"0000:00:00.0", into, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventRecord(event: *mut u64, _stream: Handle) -> Status {
    // SAFETY: made by `cuEventCreate`, and not destroyed yet.
    unsafe { event.write(clock::now()) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventDestroy_v2(event: *mut u64) -> Status {
    // SAFETY: made by `cuEventCreate`, and destroyed once.
    drop(unsafe { Box::from_raw(event) });
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(into: *mut f32, from: *const u64, to: *const u64) -> Status {
    // SAFETY: the caller gives a place, and events made by `cuEventCreate`.
    unsafe { into.write((*to).saturating_sub(*from) as f32 / 1e6) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime_v2(into: *mut f32, from: *const u64, to: *const u64) -> Status {
    // SAFETY: as above.
    unsafe { cuEventElapsedTime(into, from, to) }
}

/// # Safety
/// `into` must be as long as `length` says.
unsafe fn copy_text(text: &CStr, into: *mut c_char, length: c_int) -> Status {
    let text = text.to_bytes_with_nul();
    if (length as usize) < text.len() {
        return INVALID_VALUE;
    }
    // SAFETY: as the caller promises, and it is long enough.
    unsafe { into.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
    SUCCESS
}
