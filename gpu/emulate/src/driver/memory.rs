//! Memory: its allocation, and copies between host and device, whose addresses are alike here.

use std::ffi::c_uint;
use std::ptr;

use super::{Handle, INVALID_VALUE, OUT_OF_MEMORY, SUCCESS, Status, fail, runs};
use crate::memory::{allocate, free};

pub(super) fn allocated(bytes: usize) -> Result<u64, Status> {
    allocate(bytes, runs()).ok_or_else(|| fail(OUT_OF_MEMORY, format!("no memory for {bytes} bytes")))
}

fn freed(address: u64) -> Status {
    if free(address) { SUCCESS } else { fail(INVALID_VALUE, format!("nothing is allocated at {address:#x}")) }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> Status {
    freed(address)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(address: u64, _stream: Handle) -> Status {
    freed(address)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: Handle) -> Status {
    freed(address as u64)
}

/// Functions that copy so many bytes.
macro_rules! copies {
    ($($name:ident)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $name(into: *mut u8, from: *const u8, bytes: usize, _stream: Handle) -> Status {
            // SAFETY: the caller gives two places of so many bytes.
            unsafe { from.copy_to(into, bytes) };
            SUCCESS
        })*
    };
}
copies!(cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2);

/// `CUDA_MEMCPY2D`.
#[repr(C)]
struct Copy2d {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
}

#[repr(C)]
struct Side {
    x: usize,
    y: usize,
    memory: c_uint,
    host: u64,
    device: u64,
    array: Handle,
    pitch: usize,
}

impl Side {
    fn row(&self, row: usize) -> u64 {
        let start = if self.memory == 1 { self.host } else { self.device };
        start + ((self.y + row) * self.pitch + self.x) as u64
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy2DAsync_v2(copy: *const Copy2d, _stream: Handle) -> Status {
    // SAFETY: the caller gives a description, of places that are as large as it says.
    unsafe {
        let copy = &*copy;
        for row in 0..copy.height {
            ptr::copy(copy.from.row(row) as *const u8, copy.to.row(row) as *mut u8, copy.width);
        }
    }
    SUCCESS
}
