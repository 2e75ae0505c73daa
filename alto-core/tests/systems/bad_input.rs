//! Parameters that are missing or make no sense are named.

use std::error::Error;

use alto_core::dtype::Dtype;
use alto_core::simulated::systems::{AdapterLoad, CostError, Device, ModelShape, System};

use crate::setup::{shipped, tiny_setup};

const H100: &str = include_str!("../../src/simulated/devices/h100-sxm.toml");

fn refused(text: &str) -> String {
    let error = Device::from_toml(text).expect_err("a file that can't be used");
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[test]
fn a_missing_parameter_is_named() {
    for key in ["name", "memory", "memory_bandwidth", "send_seconds", "setup_seconds", "source", "version"] {
        let without: String = H100
            .lines()
            .filter(|line| !line.starts_with(&format!("{key} =")))
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(refused(&without).contains(&format!("missing field `{key}`")), "{key}: {}", refused(&without));
    }
}

#[test]
fn a_parameter_that_is_not_over_zero_is_named_with_its_value() {
    for (key, value, parameter) in [
        ("memory_bandwidth", "0", "memory_bandwidth"),
        ("link_bandwidth", "-1", "link_bandwidth"),
        ("memory", "nan", "memory"),
        ("f16", "inf", "flops.f16"),
        ("bf16", "-2.5", "flops.bf16"),
        ("send_seconds", "0", "launch.send_seconds"),
        ("setup_seconds", "-1e-6", "launch.setup_seconds"),
    ] {
        let change = |line: &str| match line.starts_with(&format!("{key} =")) {
            true => format!("{key} = {value}\n"),
            false => format!("{line}\n"),
        };
        let error = refused(&H100.lines().map(change).collect::<String>());
        assert!(error.starts_with(&format!("H100 SXM: {parameter} is ")), "{error}");
        assert!(error.ends_with(", expected a finite number over 0"), "{error}");
    }
}

#[test]
fn an_unknown_parameter_or_version_is_refused() {
    assert!(refused(&format!("color = 1\n{H100}")).contains("unknown field `color`"));
    let error = refused(&H100.replace("version = 1", "version = 2"));
    assert_eq!(error, "H100 SXM: version is 2, expected 1");
}

#[test]
fn a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device.toml");
    assert!(matches!(Device::read(&path), Err(CostError::Open { path: named, .. }) if named == path));
    std::fs::write(&path, "name = 1").unwrap();
    let error = Device::read(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("{} doesn't hold the roofline parameters of a device", path.display()));
    std::fs::write(&path, H100).unwrap();
    assert_eq!(Device::read(&path).unwrap(), Device::named("H100 SXM").unwrap());
    // A number that can't be computed with, too.
    let text = std::fs::read_to_string(&path).unwrap();
    let memory = text.lines().find(|line| line.starts_with("memory =")).unwrap();
    std::fs::write(&path, text.replace(memory, "memory = -1")).unwrap();
    let error = Device::read(&path).unwrap_err();
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(source.as_deref(), Some("H100 SXM: memory is -1, expected a finite number over 0"));
}

#[test]
fn what_a_setup_needs_and_lacks_is_named() {
    let loads = [AdapterLoad::new(8, 1, 16)];
    let lonely = |system| tiny_setup(system, 2, |device| device.link_bandwidth = None).pass(&loads);
    let error = lonely(System::DataParallel).unwrap_err();
    assert_eq!(error.to_string(), "endless: link_bandwidth is missing, which a system on more than one device needs");
    assert!(lonely(System::OneAfterAnother).is_ok());

    let mut setup = tiny_setup(System::AdapterParallel, 1, |_| {});
    setup.dtype = Dtype::F16;
    let error = setup.step(&loads).unwrap_err();
    assert_eq!(error.to_string(), "endless: flops.f16 is missing, which a model in f16 needs");

    let none = tiny_setup(System::AdapterParallel, 0, |_| {}).update(&loads).unwrap_err();
    assert_eq!(none.to_string(), "adapter parallel: devices is 0, expected a finite number over 0");
    let mut setup = tiny_setup(System::AdapterParallel, 1, |_| {});
    setup.model.kv_heads = 0;
    let error = setup.needed_bytes(&loads).unwrap_err();
    assert_eq!(error.to_string(), "tiny: kv_heads is 0, expected a finite number over 0");
    let error = tiny_setup(System::Pipeline, 3, |_| {}).pass(&loads).unwrap_err();
    assert_eq!(error.to_string(), "tiny has 2 layers, which can't be cut into 3 stages");
}

#[test]
fn a_name_that_nothing_has_is_answered_with_those_there_are() {
    let error = Device::named("H1000").unwrap_err().to_string();
    assert!(error.starts_with("no device is named \"H1000\"; there are H100 SXM, H200 SXM"), "{error}");
    let error = ModelShape::named("Llama").unwrap_err().to_string();
    assert!(error.contains("Llama-3.1-8B"), "{error}");
}

#[test]
fn what_does_not_fit_does_not_fit() {
    let loads = [AdapterLoad::new(16, 1, 256)];
    assert!(!shipped(System::OneAfterAnother, "H100 SXM", "Llama-3.1-70B", 1).fits(&loads).unwrap());
    assert!(shipped(System::AdapterParallel, "H100 SXM", "Llama-3.1-70B", 4).fits(&loads).unwrap());
    assert!(shipped(System::OneAfterAnother, "H100 SXM", "Llama-3.1-8B", 1).fits(&loads).unwrap());
}
