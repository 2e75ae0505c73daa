//! The shape of a Llama model, from Hugging Face's `config.json`.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::config_keys::Keys;
use super::error::ModelError;

/// The shape of a Llama model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Width of the residual stream.
    pub hidden: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of one head; even. `heads * head_dim` may differ from `hidden`.
    pub head_dim: usize,
    /// Width of the feed-forward layer.
    pub intermediate: usize,
    /// Rows of the embedding: token ids are below it.
    pub vocabulary: usize,
    /// Most tokens in a row.
    pub context: usize,
    /// Added to the mean square in RMS norms.
    pub rms_norm_epsilon: f64,
    /// Whether the embedding is the head too.
    pub tied: bool,
    /// How positions are encoded.
    pub rotary: Rotary,
}

/// Frequencies of the rotary position encoding (Su et al., 2021), in the half-split layout.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Rotary {
    /// `theta^(-2i / head_dim)`.
    Default {
        /// The base.
        theta: f64,
    },
    /// As Llama 3.1 stretches them to a longer context: low frequencies are divided by `factor`.
    Llama3 {
        /// The base.
        theta: f64,
        /// What low frequencies are divided by; at least 1.
        factor: f64,
        /// Turns within the original context up to which a frequency is low.
        low_freq_factor: f64,
        /// Turns within the original context from which a frequency stays as it is; above `low_freq_factor`.
        high_freq_factor: f64,
        /// Context that the model was first trained at, in tokens.
        original_context: usize,
    },
}

impl ModelConfig {
    /// Reads `config.json` in a model's directory.
    ///
    /// # Errors
    /// As [`read_file`](Self::read_file).
    pub fn read(dir: &Path) -> Result<Self, ModelError> {
        Self::read_file(&dir.join("config.json"))
    }

    /// Reads a configuration as transformers 5 writes it (`rope_parameters`) or as older versions did (`rope_theta`,
    /// `rope_scaling`).
    ///
    /// What is absent is what transformers takes it to be; the sizes must be there. Settings that don't change what
    /// the model computes are ignored.
    ///
    /// # Errors
    /// When the file can't be read, the model is of another family ([`ModelError::UnsupportedModel`]), or a setting is
    /// wrong or asks for something unsupported.
    pub fn read_file(path: &Path) -> Result<Self, ModelError> {
        let bytes = fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
        let map: Map<String, Value> =
            serde_json::from_slice(&bytes).map_err(|source| ModelError::Json { path: path.to_owned(), source })?;
        let keys = Keys { path, prefix: "", map: &map };
        match keys.text("model_type")? {
            Some("llama") => {}
            Some(other) => {
                return Err(ModelError::UnsupportedModel { path: path.to_owned(), model_type: other.to_owned() });
            }
            None => return Err(keys.wrong("model_type", "\"llama\"")),
        }
        refuse_unsupported(&keys)?;
        let (hidden, heads) = (keys.required_size("hidden_size")?, keys.required_size("num_attention_heads")?);
        let config = Self {
            hidden,
            layers: keys.required_size("num_hidden_layers")?,
            heads,
            kv_heads: kv_heads(&keys, heads)?,
            head_dim: head_dim(&keys, hidden, heads)?,
            intermediate: keys.required_size("intermediate_size")?,
            vocabulary: keys.required_size("vocab_size")?,
            context: keys.size("max_position_embeddings")?.unwrap_or(2048),
            rms_norm_epsilon: keys.positive("rms_norm_eps")?.unwrap_or(1e-6),
            tied: keys.flag("tie_word_embeddings")?,
            rotary: rotary(&keys)?,
        };
        Ok(config)
    }
}

fn refuse_unsupported(keys: &Keys<'_>) -> Result<(), ModelError> {
    for key in ["attention_bias", "mlp_bias"] {
        if keys.flag(key)? {
            return Err(keys.wrong(key, "false, biases are not supported"));
        }
    }
    if !matches!(keys.text("hidden_act")?, None | Some("silu" | "swish")) {
        return Err(keys.wrong("hidden_act", "\"silu\""));
    }
    if keys.get("quantization_config").is_some() {
        return Err(keys.wrong("quantization_config", "none, only f32, f16 and bf16 weights are supported"));
    }
    keys.only_number("pretraining_tp", 1.0)?;
    keys.only_number("attention_dropout", 0.0)?;
    keys.only_number("partial_rotary_factor", 1.0)
}

fn kv_heads(keys: &Keys<'_>, heads: usize) -> Result<usize, ModelError> {
    match keys.size("num_key_value_heads")? {
        Some(kv_heads) if !heads.is_multiple_of(kv_heads) => {
            Err(keys.wrong("num_key_value_heads", format!("a divisor of num_attention_heads, which is {heads}")))
        }
        given => Ok(given.unwrap_or(heads)),
    }
}

fn head_dim(keys: &Keys<'_>, hidden: usize, heads: usize) -> Result<usize, ModelError> {
    match keys.size("head_dim")? {
        Some(head_dim) if head_dim % 2 == 1 => Err(keys.wrong("head_dim", "an even number")),
        Some(head_dim) => Ok(head_dim),
        None if hidden.is_multiple_of(2 * heads) => Ok(hidden / heads),
        None => Err(keys.wrong(
            "hidden_size",
            format!("an even multiple of num_attention_heads, which is {heads}, since head_dim is missing"),
        )),
    }
}

fn rotary(keys: &Keys<'_>) -> Result<Rotary, ModelError> {
    let outer_theta = keys.positive("rope_theta")?;
    let mut found: Option<Rotary> = None;
    for (key, prefix) in [("rope_parameters", "rope_parameters."), ("rope_scaling", "rope_scaling.")] {
        let Some(map) = keys.object(key)? else { continue };
        let rotary = rotary_object(&Keys { path: keys.path, prefix, map }, outer_theta)?;
        if found.is_some_and(|other| other != rotary) {
            return Err(keys.wrong(key, "the same as rope_parameters, or none"));
        }
        found = Some(rotary);
    }
    Ok(found.unwrap_or(Rotary::Default { theta: outer_theta.unwrap_or(DEFAULT_THETA) }))
}

const DEFAULT_THETA: f64 = 10_000.0;

fn rotary_object(keys: &Keys<'_>, outer_theta: Option<f64>) -> Result<Rotary, ModelError> {
    keys.only_number("partial_rotary_factor", 1.0)?;
    let theta = match (keys.positive("rope_theta")?, outer_theta) {
        (Some(inner), Some(outer)) if inner != outer => {
            return Err(keys.wrong("rope_theta", format!("{outer}, as rope_theta beside it says")));
        }
        (inner, outer) => inner.or(outer).unwrap_or(DEFAULT_THETA),
    };
    let key = if keys.get("rope_type").is_none() && keys.get("type").is_some() { "type" } else { "rope_type" };
    match keys.text(key)? {
        Some("default") => Ok(Rotary::Default { theta }),
        Some("llama3") => {
            let (low, high) = (keys.required_positive("low_freq_factor")?, keys.required_positive("high_freq_factor")?);
            if high <= low {
                return Err(keys.wrong("high_freq_factor", format!("more than low_freq_factor, which is {low}")));
            }
            let factor = keys.required_positive("factor")?;
            if factor < 1.0 {
                return Err(keys.wrong("factor", "at least 1"));
            }
            Ok(Rotary::Llama3 {
                theta,
                factor,
                low_freq_factor: low,
                high_freq_factor: high,
                original_context: keys.required_size("original_max_position_embeddings")?,
            })
        }
        None if keys.map.values().all(|value| !value.is_object()) && keys.get("factor").is_none() => {
            Ok(Rotary::Default { theta })
        }
        _ => Err(keys.wrong(key, "\"default\" or \"llama3\"")),
    }
}
