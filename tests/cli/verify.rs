//! `octet verify`: a result made again is equal, and a change of one is found.

use std::fs;
use std::path::Path;

use octet::onnx::schema::ModelProto;
use prost::Message;

use super::{QUANTIZE, folder, good, misused, octet, prepared, refusal, refused, save};

const VERIFY: [&str; 3] = ["verify", "m.onnx", "q.onnx"];

fn verified(folder: &Path, more: &[&str]) {
    let (printed, _) = good(folder, &[&VERIFY[..], more].concat());
    assert!(printed.starts_with("q.onnx: equal"), "{printed}");
}

/// The line of a result that differs; the exit code is that of a failed gate.
fn differs(folder: &Path, more: &[&str]) -> String {
    refusal(&octet(folder, &[&VERIFY[..], more].concat()), 4)
}

/// Adds one to the last byte of the first tensor of bytes; returns its name.
fn change_a_weight(folder: &Path) -> String {
    let bytes = fs::read(folder.join("q.onnx")).unwrap();
    let mut model = ModelProto::decode(bytes.as_slice()).unwrap();
    let graph = model.graph.as_mut().unwrap();
    let weights = graph.initializer.iter_mut();
    let mut weights = weights.filter(|one| one.raw_data.as_ref().is_some_and(|raw| raw.len() > 8));
    let weight = weights.next().unwrap();
    let mut raw = weight.raw_data.clone().unwrap().to_vec();
    *raw.last_mut().unwrap() = raw.last().unwrap().wrapping_add(1);
    weight.raw_data = Some(raw.into());
    let name = weight.name.clone().unwrap();
    save(folder, "q.onnx", &model);
    name
}

#[test]
fn a_result_is_made_again_from_samples_and_a_weight_changed_by_one_is_named() {
    let folder = prepared("verify_samples");
    good(&folder, &[&QUANTIZE[..], &["--report", "r.yaml"]].concat());
    let proof = ["--samples", "data", "--proof", "r.yaml"];
    verified(&folder, &["--samples", "data"]);
    verified(&folder, &proof);
    verified(&folder, &[&proof[..], &["--threads", "1"]].concat());
    let name = change_a_weight(&folder);
    let said = differs(&folder, &proof);
    assert!(
        said.contains(&format!("tensor `{name}` differs in 1 of")),
        "{said}"
    );
    assert!(said.contains("this file was changed after it"), "{said}");
    assert!(differs(&folder, &["--samples", "data"]).contains(&name));
}

#[test]
fn ranges_and_the_settings_of_the_report_make_a_result_again() {
    let folder = prepared("verify_ranges");
    let more = [
        "--method",
        "minmax",
        "--per-tensor",
        "--save-ranges",
        "ranges.json",
        "--report",
        "r.yaml",
    ];
    good(&folder, &[&QUANTIZE[..], &more].concat());
    let proof = ["--ranges", "ranges.json", "--proof", "r.yaml"];
    verified(&folder, &proof);
    // Without the report's settings the weights have a scale per channel.
    assert!(differs(&folder, &proof[..2]).contains("tensor"));
    let ranges = fs::read_to_string(folder.join("ranges.json")).unwrap();
    let mut ranges: serde_json::Value = serde_json::from_str(&ranges).unwrap();
    ranges["x"] = serde_json::json!([-3.0, 3.0]);
    fs::write(folder.join("ranges.json"), ranges.to_string()).unwrap();
    assert!(differs(&folder, &proof).contains("the ranges are not those of the report"));
}

#[test]
fn ranges_alone_do_not_make_a_result_again_whose_biases_were_corrected() {
    let folder = prepared("verify_statistics");
    let more = ["--save-ranges", "ranges.json", "--report", "r.yaml"];
    good(&folder, &[&QUANTIZE[..], &more].concat());
    let said = differs(&folder, &["--ranges", "ranges.json", "--proof", "r.yaml"]);
    assert!(said.contains("no statistics of the samples"), "{said}");
    verified(&folder, &["--samples", "data", "--proof", "r.yaml"]);
}

#[test]
fn schemes_without_samples_are_verified_too() {
    let folder = prepared("verify_dynamic");
    let scheme = ["--scheme", "weights"];
    good(
        &folder,
        &[&["quantize", "m.onnx", "--out", "q.onnx"], &scheme[..]].concat(),
    );
    verified(&folder, &scheme);
    change_a_weight(&folder);
    differs(&folder, &scheme);
}

#[test]
fn the_proof_of_two_runs_is_equal_and_names_the_bytes() {
    let proof = |test: &str, threads: &str| {
        let folder = prepared(test);
        let more = ["--report", "r.yaml", "--threads", threads];
        good(&folder, &[&QUANTIZE[..], &more].concat());
        let report = fs::read(folder.join("r.yaml")).unwrap();
        let report: serde_json::Value = serde_yaml_ng::from_slice(&report).unwrap();
        let file = fs::read(folder.join("q.onnx")).unwrap();
        let mut checksum = octet::session::Checksum::new();
        checksum.add(&file);
        assert_eq!(report["proof"]["result"], checksum.finish());
        report["proof"].clone()
    };
    assert_eq!(proof("verify_proof_1", "1"), proof("verify_proof_2", "2"));
}

#[test]
fn another_float_model_a_report_without_proof_and_outputs_are_refused() {
    let folder = prepared("verify_refusals");
    good(&folder, &[&QUANTIZE[..], &["--report", "r.yaml"]].concat());
    let proof = ["--samples", "data", "--proof", "r.yaml"];
    let whole = |more: &[&'static str]| [&VERIFY[..], more].concat();
    misused(
        &folder,
        &whole(&["--samples", "data", "--out", "o.onnx"]),
        &["--out", "leave it out"],
    );
    misused(&folder, &whole(&[]), &["no samples"]);
    fs::write(folder.join("none.yaml"), "model: {}\n").unwrap();
    refused(
        &folder,
        &whole(&["--samples", "data", "--proof", "none.yaml"]),
        &["none.yaml", "--report"],
    );
    let mut model = super::convolution();
    model.doc_string = Some("another".into());
    save(&folder, "m.onnx", &model);
    assert!(differs(&folder, &proof).contains("not the float model of the report"));
    let empty = self::folder("verify_missing");
    refused(
        &empty,
        &["verify", "m.onnx", "q.onnx", "--samples", "data"],
        &["q.onnx"],
    );
}
