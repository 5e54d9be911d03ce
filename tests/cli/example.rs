//! The example for users of the crate gives the same result as the command line.

use std::fs;

use super::{QUANTIZE, octet, prepared};

#[path = "../../examples/quantize.rs"]
#[allow(dead_code, reason = "its `main` reads the arguments")]
mod quantize;

#[test]
fn the_example_writes_the_model_of_the_command_line_and_a_report() {
    let folder = prepared("example");
    let at = |name: &str| folder.join(name).display().to_string();
    quantize::quantize(&at("m.onnx"), &at("data"), &at("example.onnx")).unwrap();
    let output = octet(&folder, &QUANTIZE);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(fs::read(at("example.onnx")).unwrap() == fs::read(at("q.onnx")).unwrap());
    let report = fs::read_to_string(at("example.onnx.yaml")).unwrap();
    for part in ["samples: 4", "\"Calibration End\"", "tensors:"] {
        assert!(report.contains(part), "{part:?} is not in: {report}");
    }
}

#[test]
fn the_example_says_why_it_stops() {
    let folder = prepared("example-refused");
    let at = |name: &str| folder.join(name).display().to_string();
    fs::create_dir(at("none")).unwrap();
    let error = quantize::quantize(&at("m.onnx"), &at("none"), &at("q.onnx")).unwrap_err();
    assert!(error.to_string().contains("sample"), "{error}");
    assert!(!folder.join("q.onnx").exists());
}
