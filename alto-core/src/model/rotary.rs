//! Frequencies and tables of the rotary position encoding, rounded as transformers rounds them.

use super::config::{ModelConfig, Rotary};

/// The angle per position of each pair of a head's entries, `[head_dim / 2]`, computed in f32.
///
/// With `llama3` scaling, frequencies between the low and the high ones are interpolated (transformers'
/// `_compute_llama3_parameters`).
pub fn inverse_frequencies(config: &ModelConfig) -> Vec<f32> {
    let (Rotary::Default { theta } | Rotary::Llama3 { theta, .. }) = config.rotary;
    let dim = config.head_dim as f32;
    let plain = (0..config.head_dim / 2).map(|i| 1.0 / (theta as f32).powf((2 * i) as f32 / dim));
    match config.rotary {
        Rotary::Default { .. } => plain.collect(),
        Rotary::Llama3 { factor, low_freq_factor, high_freq_factor, original_context, .. } => {
            let context = original_context as f64;
            let (longest, shortest) = ((context / low_freq_factor) as f32, (context / high_freq_factor) as f32);
            let scaled = plain.map(|frequency: f32| {
                let wavelength = (1.0 / frequency) * std::f64::consts::TAU as f32;
                if wavelength < shortest {
                    return frequency;
                }
                if wavelength > longest {
                    return frequency / factor as f32;
                }
                let turns = (1.0 / wavelength) * context as f32;
                let smooth = (turns - low_freq_factor as f32) / (high_freq_factor - low_freq_factor) as f32;
                (1.0 - smooth) * frequency / factor as f32 + smooth * frequency
            });
            scaled.collect()
        }
    }
}

/// Cosines and sines of every position's angles, each `[positions, head_dim / 2]`, computed in f32.
pub fn tables(config: &ModelConfig, positions: usize) -> (Vec<f32>, Vec<f32>) {
    let frequencies = inverse_frequencies(config);
    let angles = || (0..positions).flat_map(|position| frequencies.iter().map(move |f| position as f32 * f));
    (angles().map(f32::cos).collect(), angles().map(f32::sin).collect())
}
