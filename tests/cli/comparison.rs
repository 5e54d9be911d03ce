//! `octet compare`: errors, labels, the verdict and its exit code.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{QUANTIZE, good, octet, prepared, refused};

/// Standard output of a call that must succeed.
#[track_caller]
fn said(folder: &Path, arguments: &[&str]) -> String {
    good(folder, arguments).0
}

#[test]
fn compare_finds_the_error_of_each_layer_and_none_between_a_model_and_itself() {
    let folder = prepared("compare");
    said(&folder, &QUANTIZE);
    let compare = ["compare", "m.onnx", "q.onnx", "--samples", "data"];
    let text = said(&folder, &compare);
    assert!(
        text.contains("worst output: y\noutput y (values): SQNR"),
        "{text}"
    );
    let found: Value = serde_json::from_str(&said(
        &folder,
        &[&compare[..], &["--json", "--report", "r.yaml"]].concat(),
    ))
    .unwrap();
    let output = found["outputs"][0]["apart"]["sqnr"].as_f64().unwrap();
    assert!((20.0..80.0).contains(&output), "{output}");
    assert_eq!(
        (&found["headline"], &found["outputs"][0]["kind"]),
        (&"y".into(), &"values".into())
    );
    assert!(found["outputs"][0]["weightsOnly"].is_null());
    let split = said(&folder, &[&compare[..], &["--split", "--json"]].concat());
    let split: Value = serde_json::from_str(&split).unwrap();
    let alone = |key: &str| split["outputs"][0][key].as_f64().unwrap();
    assert!(alone("weightsOnly") > output && alone("activationsOnly") >= output - 0.5);
    let layers = found["layers"].as_array().unwrap();
    let last = layers.iter().find(|l| l["value"] == "y").unwrap();
    assert_eq!(last["layer"], "conv");
    // It is the only layer, so its own error is the whole error.
    assert_eq!(last["accumulated"], last["added"]);
    assert_eq!(
        (last["harm"].as_f64(), &found["worst"][0]),
        (Some(1.0), &last["layer"])
    );
    let only = |key: &str| last[key].as_f64().unwrap();
    assert!(only("weightsOnly") > output && only("activationsOnly") >= output - 0.5);
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    assert!(report.contains("\ncomparison:"), "{report}");

    let same = ["compare", "m.onnx", "m.onnx", "--samples", "data", "--json"];
    let found: Value = serde_json::from_str(&said(&folder, &same)).unwrap();
    assert_eq!(found["outputs"][0]["apart"]["sqnr"], 200.0);
    assert_eq!(found["worst"].as_array().unwrap().len(), 0);
}

#[test]
fn compare_tells_the_answers_of_a_processor_with_other_sums() {
    let folder = prepared("compare-processor");
    said(&folder, &QUANTIZE);
    let compare = ["compare", "m.onnx", "q.onnx", "--samples", "data"];
    let there = ["--processor", "x86-without-vnni", "--report", "r.yaml"];
    let text = said(&folder, &[&compare[..], &there].concat());
    let sentence = "output `y` on x86 without VNNI: ";
    assert!(text.contains(sentence), "{text}");
    assert!(text.contains("{type: u8}"), "{text}");
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    assert!(report.contains(sentence), "{report}");
    assert!(!said(&folder, &compare).contains("VNNI"));
    let other = [&compare[..], &["--processor", "z80"]].concat();
    super::misused(&folder, &other, &["x86-without-vnni"]);
}

#[test]
fn samples_unlike_those_of_the_calibration_are_warned_of() {
    let folder = prepared("compare-unlike");
    said(&folder, &QUANTIZE);
    let values: Vec<f32> = (0..48).map(|k| k as f32 * 5.0).collect();
    fs::write(
        folder.join("far.npz"),
        super::npz("x", &[1, 3, 4, 4], &values),
    )
    .unwrap();
    let far = [
        "compare",
        "m.onnx",
        "q.onnx",
        "--samples",
        "far.npz",
        "--json",
    ];
    let found: Value = serde_json::from_str(&said(&folder, &far)).unwrap();
    let warned = found["warnings"].as_array().unwrap();
    let warning = warned.iter().find(|w| w["kind"] == "inputRange").unwrap();
    assert!(
        warning["message"]
            .as_str()
            .unwrap()
            .contains("preprocessed differently")
    );
}

#[test]
fn labels_are_of_samples_or_refused() {
    let folder = prepared("compare-labels");
    said(&folder, &QUANTIZE);
    let with = [
        "compare",
        "m.onnx",
        "q.onnx",
        "--samples",
        "data",
        "--labels",
        "l.csv",
    ];
    fs::write(folder.join("l.csv"), "sample,class\nother,1\n").unwrap();
    refused(&folder, &with, &["none of the 1 labels"]);
    fs::write(folder.join("l.csv"), "sample,class\ns0,first\n").unwrap();
    refused(&folder, &with, &["l.csv line 2", "SAMPLE,CLASS"]);
    fs::write(folder.join("l.csv"), "sample,class\ns0,1\n").unwrap();
    said(&folder, &with);
}

#[test]
fn a_verdict_that_is_worse_than_required_ends_with_the_code_4() {
    let folder = prepared("compare-verdict");
    said(&folder, &QUANTIZE);
    let compare = ["compare", "m.onnx", "q.onnx", "--samples", "data"];
    let text = said(&folder, &[&compare[..], &["--require", "ship"]].concat());
    assert!(
        text.starts_with("4 samples\nverdict: ship\n  y: SQNR: "),
        "{text}"
    );
    // One sample shows only itself.
    let one = [&compare[..4], &["data/s0.npz"]].concat();
    let require = |verdict: &'static str| [&one[..], &["--require", verdict]].concat();
    said(&folder, &require("look"));
    let output = octet(&folder, &require("ship"));
    let failure = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{failure}");
    // The comparison is printed all the same.
    assert!(output.stdout.starts_with(b"1 sample\nverdict: look"));
    for words in ["the verdict on `y` is: look", "at least 2 samples"] {
        assert!(failure.contains(words), "{failure}");
    }

    // Four bits leave little of the model; the layer to keep float is named with its settings.
    let coarse = r#"{"weights":{"type":"i4"},"activations":{"type":"u4"}}"#;
    let quantize = [
        "quantize",
        "m.onnx",
        "--samples",
        "data",
        "--out",
        "q4.onnx",
    ];
    said(&folder, &[&quantize[..], &["--config", coarse]].concat());
    let coarse = ["compare", "m.onnx", "q4.onnx", "--samples", "data"];
    let found = said(
        &folder,
        &[&coarse[..], &["--json", "--html", "r.html"]].concat(),
    );
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_ne!(found["verdict"]["decision"], "ship");
    let text = said(&folder, &coarse);
    assert!(
        text.contains("to try: ") && text.contains(r#"(--config '{"by_node":{"conv":"#),
        "{text}"
    );
    let html = fs::read_to_string(folder.join("r.html")).unwrap();
    assert!(html.contains("<h2>Verdict: "), "{html}");
}
