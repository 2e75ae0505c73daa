//! The grouped AdamW on Flex: one pass over the gradient for the norms, one over everything for the update.

use std::ops::Range;

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use rayon::prelude::*;

use super::tensor::{Dense, into_vec, tensor};
use super::vector::{dot, vectorized};
use crate::adamw::{AdamWExtension, AdamWGroup};

/// Entries that one thread takes at a time.
const TILE: usize = 16 * 1024;

impl AdamWExtension for Flex {
    fn grouped_adamw(
        parameters: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        groups: Vec<AdamWGroup>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let gradient = Dense::new(gradient);
        let gradient = gradient.slice();
        let norms: Vec<Norm> = groups.par_iter().map(|group| Norm::of(group, gradient)).collect();
        let factors: Vec<Factors> =
            groups.iter().zip(&norms).map(|(group, norm)| Factors::new(group, norm.norm)).collect();
        let mut spans: Vec<(&Range<usize>, &Factors)> = Vec::new();
        for ((group, norm), factors) in groups.iter().zip(&norms).zip(&factors) {
            if norm.not_finite.is_none() {
                spans.extend(group.spans.iter().filter(|span| !span.is_empty()).map(|span| (span, factors)));
            }
        }
        spans.sort_by_key(|(span, _)| span.start);

        let [mut parameters, mut first, mut second] = [parameters, first, second].map(into_vec);
        let entries = parameters.len();
        let mut rest = [&mut parameters, &mut first, &mut second].map(Vec::as_mut_slice);
        let (mut taken, mut parts) = (0, Vec::new());
        for (span, factors) in spans {
            let [parameters, first, second] = rest.each_mut().map(|rest| {
                let (_, tail) = std::mem::take(rest).split_at_mut(span.start - taken);
                let (own, tail) = tail.split_at_mut(span.len());
                *rest = tail;
                own
            });
            taken = span.end;
            let state = parameters.chunks_mut(TILE).zip(first.chunks_mut(TILE)).zip(second.chunks_mut(TILE));
            let parts_of_span = state.zip(gradient[span.clone()].chunks(TILE));
            parts.extend(parts_of_span.map(|(((parameters, first), second), gradient)| {
                (Part { parameters, first, second, gradient }, factors)
            }));
        }
        parts.into_par_iter().for_each(|(part, factors)| part.update(factors));

        let report: Vec<f32> = norms.iter().flat_map(|norm| [norm.norm as f32, norm.position()]).collect();
        let [parameters, first, second] = [parameters, first, second].map(|data| tensor(data, [entries]));
        (parameters, first, second, tensor(report, [groups.len(), 2]))
    }
}

/// A group's gradient norm, and the first span where it isn't finite.
struct Norm {
    norm: f64,
    not_finite: Option<usize>,
}

impl Norm {
    fn of(group: &AdamWGroup, gradient: &[f32]) -> Self {
        let (mut squares, mut not_finite) = (0.0f64, None);
        for (index, span) in group.spans.iter().enumerate() {
            let mut span_squares = 0.0f64;
            for tile in gradient[span.clone()].chunks(1024) {
                let square = f64::from(vectorized!(dot(tile, tile)));
                // Finite entries may have squares that overflow f32.
                let exact = || tile.iter().map(|&g| f64::from(g).powi(2)).sum();
                span_squares += if square.is_finite() { square } else { exact() };
            }
            if !span_squares.is_finite() && not_finite.is_none() {
                not_finite = Some(index);
            }
            squares += span_squares;
        }
        Self { norm: squares.sqrt(), not_finite }
    }

    /// The span's index as the report gives it.
    fn position(&self) -> f32 {
        self.not_finite.map_or(-1.0, |index| index as f32)
    }
}

/// What the update of a group's entries needs, in f32 as PyTorch computes it.
struct Factors {
    gradient: f32,
    keep: f32,
    /// `1 - beta1`, taken in f64: in f32 it would lose digits.
    fresh1: f32,
    beta2: f32,
    /// `1 - beta2`, likewise.
    fresh2: f32,
    step: f32,
    second_root: f32,
    epsilon: f32,
}

impl Factors {
    fn new(group: &AdamWGroup, norm: f64) -> Self {
        let (beta1, beta2) = group.betas;
        let power = |beta: f64| beta.powf(group.step as f64);
        Self {
            gradient: group.clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0)) as f32,
            keep: (1.0 - group.learning_rate * group.weight_decay) as f32,
            fresh1: (1.0 - beta1) as f32,
            beta2: beta2 as f32,
            fresh2: (1.0 - beta2) as f32,
            step: (group.learning_rate / (1.0 - power(beta1))) as f32,
            second_root: (1.0 - power(beta2)).sqrt() as f32,
            epsilon: group.epsilon as f32,
        }
    }
}

/// A stretch of one group's entries.
struct Part<'a> {
    parameters: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    gradient: &'a [f32],
}

impl Part<'_> {
    fn update(self, f: &Factors) {
        vectorized!({
            let moments = self.first.iter_mut().zip(self.second.iter_mut());
            for ((p, (m, v)), g) in self.parameters.iter_mut().zip(moments).zip(self.gradient) {
                let g = g * f.gradient;
                *m += (g - *m) * f.fresh1;
                *v = *v * f.beta2 + g * g * f.fresh2;
                *p = *p * f.keep - f.step * *m / (v.sqrt() / f.second_root + f.epsilon);
            }
        });
    }
}
