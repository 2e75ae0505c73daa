//! `adapter_config.json`, both ways.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Number, Value};

use super::error::PeftError;
use crate::adapter::Adapter;

/// What PEFT and vLLM need to know; PEFT fills in the rest.
#[derive(Serialize)]
pub(super) struct Settings<'a> {
    peft_type: &'static str,
    task_type: &'static str,
    base_model_name_or_path: &'a str,
    inference_mode: bool,
    r: usize,
    lora_alpha: Number,
    lora_dropout: f64,
    use_rslora: bool,
    use_dora: bool,
    bias: &'static str,
    fan_in_fan_out: bool,
    init_lora_weights: bool,
    modules_to_save: (),
    target_modules: &'a BTreeSet<String>,
}

impl<'a> Settings<'a> {
    pub(super) fn of(adapter: &'a Adapter, base_model: &'a str) -> Self {
        let alpha = adapter.config.alpha;
        // PEFT declares an integer, though it computes with any number.
        let whole = alpha.fract() == 0.0 && alpha.abs() < 1e15;
        let number = if whole { Some(Number::from(alpha as i64)) } else { Number::from_f64(alpha) };
        Self {
            peft_type: "LORA",
            task_type: "CAUSAL_LM",
            base_model_name_or_path: base_model,
            inference_mode: true,
            r: adapter.config.rank,
            lora_alpha: number.unwrap_or(Number::from(0)),
            lora_dropout: 0.0,
            use_rslora: adapter.config.rank_stabilized,
            use_dora: false,
            bias: "none",
            fan_in_fan_out: false,
            init_lora_weights: true,
            modules_to_save: (),
            target_modules: &adapter.config.targets,
        }
    }
}

/// Settings that an adapter for training here may have, whatever their value: they say where it comes from, how it
/// was started, or concern parts that its tensors show not to be there.
const HARMLESS: [&str; 15] = [
    "auto_mapping",
    "base_model_name_or_path",
    "corda_config",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "layers_pattern",
    "loftq_config",
    "lora_ga_config",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "target_modules",
];

/// The settings that were read: rank, alpha, whether rank-stabilized, and the target modules as they are written.
pub(super) struct ReadSettings {
    pub(super) rank: usize,
    pub(super) alpha: f64,
    pub(super) rank_stabilized: bool,
    /// `None` for all linear layers.
    pub(super) targets: Option<Vec<String>>,
}

impl ReadSettings {
    /// Takes what is understood and refuses what isn't: a setting of PEFT's that would change what the adapter
    /// computes has a value other than null, false or empty.
    pub(super) fn parse(path: &Path, map: &Map<String, Value>) -> Result<Self, PeftError> {
        let wrong = |key: &str, expected| {
            let value = map.get(key).map_or("missing".to_owned(), Value::to_string);
            Err(PeftError::Setting { path: path.to_owned(), key: key.to_owned(), value, expected })
        };
        let get = |key: &str| map.get(key).filter(|value| !value.is_null());
        if get("peft_type").and_then(Value::as_str) != Some("LORA") {
            return wrong("peft_type", "\"LORA\"");
        }
        let Some(rank) = get("r").and_then(Value::as_u64).filter(|&r| r > 0) else {
            return wrong("r", "a whole number of at least 1");
        };
        let Some(alpha) = get("lora_alpha").and_then(Value::as_f64).filter(|&alpha| alpha.is_finite() && alpha > 0.0)
        else {
            return wrong("lora_alpha", "a finite positive number");
        };
        let Some(rank_stabilized) = get("use_rslora").map_or(Some(false), Value::as_bool) else {
            return wrong("use_rslora", "true or false");
        };
        for key in map.keys().filter(|key| !HARMLESS.contains(&key.as_str())) {
            let Some(value) = get(key) else { continue };
            let (fine, expected) = match key.as_str() {
                "peft_type" | "r" | "lora_alpha" | "use_rslora" => continue,
                "task_type" => (value == "CAUSAL_LM", "\"CAUSAL_LM\""),
                "bias" => (value == "none", "\"none\", trained biases are not supported"),
                "lora_dropout" => {
                    (value.as_f64() == Some(0.0), "0, training on would be without dropout: set it to 0 to agree")
                }
                "init_lora_weights" => (
                    value.is_boolean() || ["gaussian", "orthogonal", "eva"].iter().any(|&fine| value == fine),
                    "a start that leaves the base model's weights alone",
                ),
                _ => (is_off(value), "it off (null, false or empty), it is not supported"),
            };
            if !fine {
                return wrong(key, expected);
            }
        }
        let targets = match get("target_modules") {
            Some(Value::String(all)) if all == "all-linear" => None,
            Some(Value::Array(names)) if !names.is_empty() && names.iter().all(Value::is_string) => {
                Some(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            _ => return wrong("target_modules", "a list of module names, patterns are not supported"),
        };
        Ok(Self { rank: rank as usize, alpha, rank_stabilized, targets })
    }
}

fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
