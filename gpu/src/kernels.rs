//! Every kernel beside its reference, on the library's table of awkward batches.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use alto_kernels::testing::{Kernel, Shape, shapes};
use burn::tensor::{DType, Device};

use crate::device::named;
use crate::record::{Record, Table, message};

/// Most tokens of a shape in a rehearsal.
const REHEARSED: usize = 16;

/// Compares every kernel in each of these dtypes.
pub(crate) fn kernels(record: &mut Record, device: &Device, dtypes: &[DType], rehearsal: bool) {
    let shapes: Vec<Shape> = shapes().into_iter().filter(|shape| !rehearsal || shape.tokens() <= REHEARSED).collect();
    let mut rows = Vec::new();
    for kernel in Kernel::ALL {
        for &dtype in dtypes {
            let (mut passed, mut worst, mut at) = (0, 0.0f64, String::new());
            // What goes wrong mostly goes wrong alike on many shapes.
            let mut wrong: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for shape in &shapes {
                let compared = catch_unwind(AssertUnwindSafe(|| kernel.compare(shape, device, dtype)));
                let compared = match compared {
                    Ok(compared) => compared,
                    Err(panic) => {
                        wrong.entry(message(&*panic)).or_default().push(shape.name);
                        continue;
                    }
                };
                passed += usize::from(compared.iter().all(|comparison| comparison.passes()));
                for comparison in compared {
                    if !comparison.passes() {
                        wrong.entry(comparison.to_string()).or_default().push(shape.name);
                    }
                    if comparison.worst > worst {
                        (worst, at) = (comparison.worst, format!("{} of `{}`", comparison.tensor, shape.name));
                    }
                }
            }
            for (what, shapes) in wrong {
                let (count, names) = (shapes.len(), shapes.join("; "));
                record.failures.push(format!("{kernel}, {}, on {count} shapes ({names}): {what}", named(dtype)));
            }
            record.figure(format!("kernel {kernel} {}: worst share of tolerance", named(dtype)), worst);
            let passed = format!("{passed} of {}", shapes.len());
            rows.push(vec![kernel.to_string(), named(dtype).to_string(), passed, format!("{worst:.2}"), at]);
        }
    }
    record.tables.push(Table {
        title: "Kernels beside their references".to_owned(),
        note: "Shapes on which every tensor is within tolerance; the largest error as a share of what is allowed."
            .to_owned(),
        columns: vec!["kernel", "dtype", "shapes passed", "worst", "where"],
        rows,
    });
}
