//! The comparisons that users run on devices of their own.

use alto_kernels::testing::{Kernel, shapes};

use crate::device::{device, dtype};

#[test]
fn every_kernel_passes_on_every_shape() {
    for kernel in Kernel::ALL {
        for shape in shapes() {
            for comparison in kernel.compare(&shape, &device().inner(), dtype()) {
                assert!(comparison.passes(), "{kernel}, {}: {comparison}", shape.name);
            }
        }
    }
}
