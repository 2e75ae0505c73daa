use std::fs;

use alto_core::model::{Linear, ModelConfig, ModelError, Rotary, inverse_frequencies, tables};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{assert_error, chain, scratch, testdata};

/// What the configuration says after these keys are set in a small sound one; `Value::Null` is written as null.
fn read_with(edits: &[(&str, Value)]) -> Result<ModelConfig, ModelError> {
    let mut map: Map<String, Value> = [
        ("model_type", json!("llama")),
        ("hidden_size", json!(64)),
        ("num_hidden_layers", json!(2)),
        ("num_attention_heads", json!(4)),
        ("intermediate_size", json!(160)),
        ("vocab_size", json!(256)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into_iter()
    .collect();
    map.extend(edits.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    read_text(&serde_json::to_vec(&map).unwrap())
}

fn read_text(text: &[u8]) -> Result<ModelConfig, ModelError> {
    let dir = scratch();
    fs::write(dir.path().join("config.json"), text).unwrap();
    ModelConfig::read(dir.path())
}

#[test]
fn both_layouts_of_a_configuration_say_the_same() {
    for model in ["llama_untied", "llama_tied", "llama3_rope"] {
        let dir = testdata("oracle").join(model);
        let new = ModelConfig::read(&dir).unwrap();
        let old = ModelConfig::read_file(&dir.join("config_v4.json")).unwrap();
        assert_eq!(new, old, "{model}");
    }
}

#[test]
fn a_configuration_is_read_as_written() {
    let mut expected = ModelConfig {
        hidden: 64,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        intermediate: 160,
        vocabulary: 256,
        context: 256,
        rms_norm_epsilon: 1e-5,
        tied: false,
        rotary: Rotary::Default { theta: 10_000.0 },
    };
    assert_eq!(ModelConfig::read(&testdata("oracle/llama_untied")).unwrap(), expected);
    expected.tied = true;
    expected.rotary = Rotary::Llama3 {
        theta: 500_000.0,
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 32,
    };
    assert_eq!(ModelConfig::read(&testdata("oracle/llama3_rope")).unwrap(), expected);
}

#[test]
fn what_is_absent_is_what_transformers_takes_it_to_be() {
    let config = read_with(&[]).unwrap();
    assert_eq!((config.kv_heads, config.head_dim, config.context), (4, 16, 2048));
    assert_eq!((config.rms_norm_epsilon, config.tied), (1e-6, false));
    assert_eq!(config.rotary, Rotary::Default { theta: 10_000.0 });
    let nulls = ["rope_scaling", "head_dim", "num_key_value_heads", "quantization_config", "rope_theta"];
    assert_eq!(read_with(&nulls.map(|key| (key, Value::Null))).unwrap(), config);
}

#[test]
fn heads_may_be_wider_than_the_residual_stream() {
    let config = read_with(&[("head_dim", json!(32)), ("num_key_value_heads", json!(1))]).unwrap();
    assert_eq!(Linear::Q.shape(&config), [128, 64]);
    assert_eq!(Linear::V.shape(&config), [32, 64]);
    assert_eq!(Linear::O.shape(&config), [64, 128]);
    assert_eq!(Linear::Down.shape(&config), [64, 160]);
    assert_eq!(Linear::Gate.path(3), "model.layers.3.mlp.gate_proj");
    assert!(Linear::ALL.into_iter().all(|linear| Linear::from_name(linear.name()) == Some(linear)));
}

#[test]
fn unknown_keys_and_the_older_key_of_a_rotary_type_are_fine() {
    let old = json!({"type": "default", "beta_fast": 32});
    let edits = [("rope_scaling", old), ("use_cache", json!(true)), ("my_own", json!([1]))];
    assert_eq!(read_with(&edits).unwrap(), read_with(&[]).unwrap());
}

#[test]
fn other_families_are_told_apart() {
    for model in ["qwen2", "qwen3"] {
        let error = ModelConfig::read(&testdata("oracle").join(model)).unwrap_err();
        let ModelError::UnsupportedModel { path, model_type } = &error else { panic!("{error}") };
        assert_eq!(model_type, model);
        assert!(path.ends_with("config.json"));
        assert!(error.to_string().contains("llama"));
    }
}

#[test]
fn unsupported_and_senseless_settings_are_named() {
    let llama3 = |key: &str, value: Value| {
        let mut scaling = json!({
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32
        });
        scaling[key] = value;
        scaling
    };
    let cases = [
        ("model_type", Value::Null, "null"),
        ("hidden_size", json!(0), "0"),
        ("hidden_size", json!(-64), "-64"),
        ("hidden_size", json!(1e300), "1e+300"),
        ("hidden_size", json!("64"), "\"64\""),
        ("hidden_size", json!(u64::MAX), "18446744073709551615"),
        ("hidden_size", json!(66), "66"),
        ("hidden_size", json!(60), "60"),
        ("num_hidden_layers", Value::Null, "null"),
        ("num_key_value_heads", json!(3), "3"),
        ("num_key_value_heads", json!(8), "8"),
        ("head_dim", json!(15), "15"),
        ("vocab_size", json!(0), "0"),
        ("max_position_embeddings", json!(0), "0"),
        ("rms_norm_eps", json!(-1e-5), "-0.00001"),
        ("rms_norm_eps", json!(0), "0"),
        ("attention_bias", json!(true), "true"),
        ("mlp_bias", json!(true), "true"),
        ("attention_dropout", json!(0.1), "0.1"),
        ("hidden_act", json!("gelu"), "\"gelu\""),
        ("pretraining_tp", json!(2), "2"),
        ("partial_rotary_factor", json!(0.5), "0.5"),
        ("quantization_config", json!({"bits": 4}), "{\"bits\":4}"),
        ("tie_word_embeddings", json!("yes"), "\"yes\""),
        ("rope_theta", json!(0), "0"),
        ("rope_scaling", json!(8), "8"),
        ("rope_scaling", json!({"type": "linear", "factor": 2.0}), "rope_scaling.type is \"linear\""),
        ("rope_scaling", json!({"rope_type": "yarn", "factor": 2.0}), "rope_scaling.rope_type is \"yarn\""),
        ("rope_scaling", json!({"factor": 2.0}), "rope_scaling.rope_type is missing"),
        ("rope_scaling", llama3("factor", json!(0.5)), "rope_scaling.factor is 0.5"),
        ("rope_scaling", llama3("factor", Value::Null), "rope_scaling.factor is null"),
        ("rope_scaling", llama3("high_freq_factor", json!(1)), "rope_scaling.high_freq_factor is 1"),
        ("rope_scaling", llama3("original_max_position_embeddings", json!(0)), "original_max_position_embeddings is 0"),
        ("rope_scaling", llama3("partial_rotary_factor", json!(0.5)), "partial_rotary_factor is 0.5"),
        ("rope_parameters", json!({"full_attention": {"rope_type": "default"}}), "rope_type is missing"),
    ];
    for (key, value, shown) in cases {
        assert_error(read_with(&[(key, value)]), &["config.json", key, shown, "expected"]);
    }
}

#[test]
fn rotary_settings_that_contradict_each_other_are_refused() {
    let parameters = json!({"rope_type": "default", "rope_theta": 5e5});
    let both = [("rope_parameters", parameters.clone()), ("rope_theta", json!(1e4))];
    assert_error(read_with(&both), &["rope_parameters.rope_theta is 500000", "10000"]);
    let scaling = json!({"rope_type": "default", "rope_theta": 1e6});
    let both = [("rope_parameters", parameters), ("rope_scaling", scaling)];
    assert_error(read_with(&both), &["rope_scaling", "1000000", "the same as rope_parameters"]);
}

#[test]
fn files_that_are_no_configuration_are_named() {
    assert_error(ModelConfig::read(&testdata("no such directory")), &["no such directory", "config.json", "No such"]);
    for text in ["", "{", "[]", "{\"hidden_size\": NaN}", "\u{0}"] {
        assert_error(read_text(text.as_bytes()), &["config.json", "not a valid JSON object", "line 1"]);
    }
    assert_error(read_text(b"\xff\xfe{\0}\0"), &["config.json"]);
}

#[test]
fn frequencies_are_those_of_transformers() {
    let llama3 = |head_dim, original_context| ModelConfig {
        head_dim,
        rotary: Rotary::Llama3 {
            theta: 500_000.0,
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context,
        },
        ..read_with(&[]).unwrap()
    };
    // The bits of transformers 5.24's `inv_freq`: low, interpolated and high frequencies are all among them.
    let short = [0x3f800000, 0x3cc693b0, 0x3b9a08c8, 0x3a6ef74f, 0x39395d21, 0x380fc8f8, 0x36df10c4, 0x35ad07a7];
    let long = [
        0x3c87a9c3, 0x3c5d06ec, 0x3c340d6d, 0x3c12ac7f, 0x3beef74f, 0x3bc2aa76, 0x3b9e9402, 0x3b812e35, 0x3b527720,
        0x3b0dfd06, 0x3ab3d11d, 0x3a60979e, 0x3a0995d2, 0x39a3f108, 0x393b2dd2, 0x38c86886, 0x38a3418d, 0x3884fdbf,
    ];
    let plain = [
        0x3f800000, 0x3f0ff59a, 0x3ea1e89b, 0x3e361887, 0x3dcccccd, 0x3d6655c2, 0x3d0186e3, 0x3c91ad39, 0x3c23d70a,
        0x3bb8449c, 0x3b4f3e38, 0x3ae91528, 0x3a83126f, 0x3a136a16, 0x39a5cb60, 0x393a7753,
    ];
    let quickstart = ModelConfig::read(&testdata("quickstart/gsm-nano")).unwrap();
    for (config, from, expected) in
        [(llama3(16, 32), 0, &short[..]), (llama3(128, 8192), 20, &long), (quickstart, 0, &plain)]
    {
        let found = inverse_frequencies(&config);
        assert_eq!(found.len(), config.head_dim / 2);
        for (i, &bits) in expected.iter().enumerate() {
            // Two units in the last place: the power function differs by that between C libraries.
            let apart = found[from + i].to_bits().abs_diff(bits);
            assert!(apart <= 2, "{i}: {} is {apart} apart from {}", found[from + i], f32::from_bits(bits));
        }
    }
}

#[test]
fn tables_are_those_of_transformers() {
    let config = ModelConfig::read(&testdata("quickstart/gsm-nano")).unwrap();
    let (cos, sin) = tables(&config, 256);
    assert_eq!((cos.len(), sin.len()), (256 * 16, 256 * 16));
    assert_eq!((cos[0], sin[0]), (1.0, 0.0));
    let expected = [-0.862_303_6, 0.439_074_2, 0.503_343_76, 0.205_496_24];
    for (found, expected) in cos[255 * 16..].iter().zip(expected) {
        // An angle of 143 has an error of 1e-5 from a frequency's last place.
        assert!((found - expected).abs() < 3e-5, "{found} instead of {expected}");
    }
    let expected = [-0.506_391_64, -0.898_450_8, -0.864_086_3, 0.978_657_9];
    for (found, expected) in sin[255 * 16..].iter().zip(expected) {
        assert!((found - expected).abs() < 3e-5, "{found} instead of {expected}");
    }
}

#[test]
fn no_value_of_any_key_makes_it_panic() {
    let text = fs::read(testdata("oracle/llama3_rope/config.json")).unwrap();
    let sound: Map<String, Value> = serde_json::from_slice(&text).unwrap();
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1),
        json!(3),
        json!(1.5),
        json!(1e308),
        json!(u64::MAX),
        json!(i32::MAX),
        json!("x"),
        json!([]),
        json!({}),
    ];
    for key in sound.keys().chain(&["rope_scaling".to_owned(), "rope_theta".to_owned()]) {
        for value in &values {
            let mut map = sound.clone();
            map.insert(key.clone(), value.clone());
            if let Err(error) = read_text(&serde_json::to_vec(&map).unwrap()) {
                assert!(chain(&error).contains("config.json"), "{error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read_text(&bytes).is_err());
    }

    #[test]
    fn a_configuration_cut_anywhere_is_an_error(cut in 0usize..820) {
        let text = fs::read(testdata("oracle/llama3_rope/config.json")).unwrap();
        prop_assert!(read_text(&text[..cut]).is_err());
    }
}
