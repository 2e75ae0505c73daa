//! Log-probabilities under a linear head on CubeCL, a chunk of labelled tokens at a time.
//!
//! `l = log softmax(x Wᵀ)[target]`; its unit gradient is `P W` with `P = onehot(target) - softmax(x Wᵀ)`.
//! `x`: `[tokens, width]`; `W`: `[vocabulary, width]`. Of a chunk: `logits`: `[chunk, vocabulary]`, f32; `P`: likewise, in
//! the type of `x` for the second product; `unit`: `[labelled, width]`, kept in the type of `x`; `log_probs`: `[labelled]`,
//! f32.
//!
//! A chunk's launches: its tokens are gathered, the logits are a product, one cube per token makes the log-probability
//! and `P` of them, and the unit gradient is a second product. A cube reads a token's logits once for maximum and sum
//! together, each unit rescaling its sum when its maximum grows (Milakov & Gimelshein, 2018), and once for `P`.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::hardware::{cubes, units};
use super::labelled::{LABEL_WORDS, gathered, placed, scattered, table};
use super::product::product;
use super::reduce::{max, sum};
use super::table::Table;
use super::tensor::{RowMajor, elem, empty, vector};
use crate::log_probs::{LogProbsExtension, LogProbsKernel};

/// Most bytes of a chunk's logits.
const LOGITS: usize = 256 << 20;
/// A chunk has a multiple of so many tokens if it has more, which products are fastest with.
const GRAIN: usize = 64;

/// The log-probabilities of a chunk's tokens from its logits, and `P` if `with_weights`.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn softmax<E: Float, N: Size>(
    logits: &[Vector<f32, N>],
    labelled: &[u32],
    log_probs: &mut [f32],
    weights: &mut [Vector<E, N>],
    tokens: u32,
    vocabulary: u32,
    stride: u32,
    first: u32,
    #[comptime] with_weights: bool,
    #[comptime] units: usize,
    #[define(N)] vector: usize,
    #[define(E)] _elem: ElemType,
) {
    let (unit, vocabulary, vector) = (UNIT_POS as usize, vocabulary as usize, comptime!(vector));
    let mut scratch = Shared::<[f32]>::new_slice(units);
    for token in range_stepped(CUBE_POS_X as usize, tokens as usize, CUBE_COUNT_X as usize) {
        let row = token * stride as usize;
        let mut top = f32::min_value();
        let mut total = f32::new(0.0f32);
        for i in range_stepped(unit, vocabulary, units) {
            let logits = logits[row + i];
            #[unroll]
            for j in 0..vector {
                let logit = logits.extract(j);
                // One of the two is the maximum so far, the other's exponential is relative to it.
                let other = (-(logit - top).abs()).exp();
                if logit > top {
                    total = total * other + 1.0f32;
                    top = logit;
                } else {
                    total += other;
                }
            }
        }
        let own_top = top;
        let top = max(own_top, &mut scratch, units);
        let total = sum(total * (own_top - top).exp(), &mut scratch, units);
        let target = labelled[(first as usize + token) * LABEL_WORDS + 1] as usize;
        if unit == 0 {
            let at = logits[row + target / vector];
            let mut logit = f32::new(0.0f32);
            #[unroll]
            for j in 0..vector {
                if target % vector == j {
                    logit = at.extract(j);
                }
            }
            log_probs[first as usize + token] = logit - top - total.ln();
        }
        if comptime!(with_weights) {
            let share = Vector::<f32, N>::new(-1.0f32 / total);
            for i in range_stepped(unit, vocabulary, units) {
                let mut weight = (logits[row + i] - Vector::new(top)).exp() * share;
                if target / vector == i {
                    #[unroll]
                    for j in 0..vector {
                        if target % vector == j {
                            weight.insert(j, weight.extract(j) + 1.0f32);
                        }
                    }
                }
                weights[token * vocabulary + i] = Vector::cast_from(weight);
            }
        }
    }
}

/// The labelled tokens of one call, and what becomes of them.
struct Call {
    x: RowMajor,
    head: CubeTensor,
    labelled: Table,
    log_probs: CubeTensor,
}

/// Labelled tokens in a chunk whose logits take at most so many bytes.
fn chunk(vocabulary: usize, bytes: usize) -> usize {
    let most = (bytes / (size_of::<f32>() * vocabulary)).max(1);
    if most > GRAIN { most / GRAIN * GRAIN } else { most }
}

impl Call {
    fn new(x: CubeTensor, head: CubeTensor, labelled: &[(usize, usize)]) -> Self {
        let labelled = table(&x, labelled);
        let log_probs = empty(&x, Shape::new([labelled.entries()]), DType::F32);
        Self { x: RowMajor::new(x), head, labelled, log_probs }
    }

    /// As [`LogProbsKernel::log_probs_forward`], so many labelled tokens at a time.
    fn forward(self, chunk: usize, needs_gradient: bool) -> (CubeTensor, Option<CubeTensor>) {
        let (labelled, dtype) = (self.labelled.entries(), self.head.dtype);
        let all = || empty(self.x.tensor(), Shape::new([labelled, self.x.width]), dtype);
        let mut unit = (needs_gradient && labelled == 0).then(all);
        for first in (0..labelled).step_by(chunk) {
            let count = chunk.min(labelled - first);
            let logits = product(gathered(&self.x, &self.labelled, first, count), self.head.clone(), true, DType::F32);
            let Some(weights) = self.softmax(logits, first, needs_gradient) else { continue };
            let part = product(weights, self.head.clone(), false, dtype);
            if count == labelled {
                unit = Some(part);
            } else {
                placed(part, unit.get_or_insert_with(all), first);
            }
        }
        (self.log_probs, unit)
    }

    /// Writes the log-probabilities of the tokens whose logits these are; gives `P` if it is needed.
    fn softmax(&self, logits: CubeTensor, first: usize, with_weights: bool) -> Option<CubeTensor> {
        let (client, dtype) = (logits.client.clone(), self.head.dtype);
        let logits = RowMajor::new(logits);
        let (count, vocabulary) = (logits.rows, logits.width);
        let vector = vector(&[&logits], vocabulary);
        // A buffer must hold a vector, even if none is written.
        let shape = if with_weights { [count, vocabulary] } else { [1, vector] };
        let weights = empty(logits.tensor(), Shape::new(shape), dtype);
        let units = units(&client, vocabulary / vector);
        // SAFETY: a row of logits and weights for each token; targets are within the vocabulary. Without weights none
        // are written.
        unsafe {
            softmax::launch_unchecked(
                &client,
                cubes(&client, count),
                CubeDim::new_1d(units as u32),
                logits.arg(),
                self.labelled.arg(),
                self.log_probs.clone().into_buffer_arg(),
                weights.clone().into_buffer_arg(),
                count as u32,
                (vocabulary / vector) as u32,
                (logits.stride / vector) as u32,
                first as u32,
                with_weights,
                units,
                vector,
                elem(&weights),
            );
        }
        with_weights.then_some(weights)
    }
}

impl LogProbsKernel for CubeBackend {
    fn log_probs_forward(
        x: FloatTensor<Self>,
        head: FloatTensor<Self>,
        labelled: &[(usize, usize)],
        needs_gradient: bool,
    ) -> (FloatTensor<Self>, Option<FloatTensor<Self>>) {
        let [vocabulary, _] = head.shape().dims();
        let most = head.client.properties().memory.max_page_size as usize;
        Call::new(x, head, labelled).forward(chunk(vocabulary, LOGITS.min(most)), needs_gradient)
    }

    fn log_probs_backward(
        unit: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        labelled: &[(usize, usize)],
        tokens: usize,
    ) -> FloatTensor<Self> {
        scattered(unit, gradient, labelled, tokens)
    }
}

impl LogProbsExtension for CubeBackend {
    fn linear_log_probs(
        x: FloatTensor<Self>,
        head: FloatTensor<Self>,
        labelled: Vec<(usize, usize)>,
    ) -> FloatTensor<Self> {
        Self::log_probs_forward(x, head, &labelled, false).0
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use burn::backend::ops::FloatTensorOps;
    use burn::tensor::{TensorData, read_sync};
    use burn_cubecl::CubeDevice;

    use super::*;

    #[test]
    fn chunks_make_no_difference() {
        let device = CubeDevice::cpu().expect("built in");
        for dtype in [DType::F32, DType::BF16] {
            let tensor = |rows: usize, columns: usize| {
                let data: Vec<f32> = (0..rows * columns).map(|i| (i * i % 11) as f32 / 4.0 - 1.0).collect();
                CubeBackend::float_from_data(TensorData::new(data, [rows, columns]).convert_dtype(dtype), &device)
            };
            let (x, head) = (tensor(30, 20), tensor(50, 20));
            let labelled: Vec<_> = (0..29).map(|n| (n + 1, n * 7 % 50)).collect();
            let forward = |chunk| {
                let (log_probs, unit) = Call::new(x.clone(), head.clone(), &labelled).forward(chunk, true);
                [log_probs, unit.expect("asked for")]
                    .map(|tensor| read_sync(CubeBackend::float_into_data(tensor)).expect("a result"))
            };
            let whole = forward(29);
            for chunk in [1, 8, 28, 30] {
                assert_eq!(forward(chunk), whole, "{dtype:?} in chunks of {chunk}");
            }
        }
    }

    #[test]
    fn a_chunk_is_a_multiple_of_the_grain_if_it_can_be() {
        assert_eq!(chunk(1 << 17, 256 << 20), 512);
        assert_eq!(chunk(152_064, 256 << 20), 384);
        assert_eq!(chunk(1 << 20, 256 << 20), 64);
        assert_eq!(chunk(3 << 20, 256 << 20), 21);
        assert_eq!(chunk(1 << 30, 256 << 20), 1);
    }
}
