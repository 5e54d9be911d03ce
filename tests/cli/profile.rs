//! Contract of `octet run` and `octet compare`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{QUANTIZE, misused, octet, prepared, refused, schema};

/// Standard output of a call that must succeed.
#[track_caller]
fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = octet(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

const RUN: [&str; 4] = ["run", "m.onnx", "--samples", "data/s0.npz"];

#[test]
fn run_tells_the_outputs_and_with_profile_every_layer() {
    let folder = prepared("run");
    let plain = said(&folder, &RUN);
    assert!(plain.starts_with("y: float32 1×2×4×4, from "), "{plain}");
    assert_eq!(plain.lines().count(), 1);
    let full = said(
        &folder,
        &[&RUN[..], &["--profile", "--runs", "3", "--csv", "l.csv"]].concat(),
    );
    assert!(full.starts_with(plain.trim_end()), "{full}");
    assert!(full.contains("median of 3 after 2 warm-up runs"), "{full}");
    let table = fs::read_to_string(folder.join("l.csv")).unwrap();
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = |name: &str| names.iter().position(|n| *n == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().any(|row| row[0] == "conv"), "{table}");
    let sum = |name: &str| -> f64 {
        rows.iter()
            .map(|row| row[place(name)].parse().unwrap_or(0.0))
            .sum()
    };
    // 2×4×4 outputs, each with 3×3×3 multiply-accumulates.
    assert_eq!(sum("macs"), 864.0);
    assert!((sum("share") - 1.0).abs() < 1e-9);
    let nodes: Vec<&str> = rows
        .iter()
        .flat_map(|row| row[place("nodes")].split(' '))
        .collect();
    assert!(
        nodes.contains(&"conv") && nodes.contains(&"relu"),
        "{table}"
    );
}

#[test]
fn float_convolutions_run_by_the_kernels_that_are_asked_for() {
    let folder = prepared("run-kernels");
    let run = |more: &[&str]| {
        let table = folder.join("l.csv");
        let asked = ["--profile", "--runs", "1", "--csv", "l.csv"];
        let said = said(&folder, &[&RUN[..], &asked, more].concat());
        let rows = fs::read_to_string(table).unwrap();
        let rows: Vec<String> = rows.lines().skip(1).map(str::to_owned).collect();
        let layers = rows.iter().map(|row| row.split(',').next().unwrap());
        let numbers = said.lines().next().unwrap().split([' ', ',']);
        let numbers: Vec<f64> = numbers.filter_map(|word| word.parse().ok()).collect();
        (layers.map(str::to_owned).collect::<Vec<_>>(), numbers)
    };
    let (octet, ours) = run(&["--float-kernels", "octet"]);
    let (tract, theirs) = run(&["--float-kernels", "tract"]);
    // Our kernel includes the clamp.
    assert_eq!(octet, ["conv"]);
    assert_eq!(tract, ["conv", "relu"]);
    assert_eq!(tract, run(&[]).0, "tract's are the faster ones natively");
    assert!(ours.len() == 3 && ours.len() == theirs.len(), "{ours:?}");
    for (a, b) in ours.iter().zip(&theirs) {
        assert!((a - b).abs() < 1e-5, "{ours:?} {theirs:?}");
    }
    misused(
        &folder,
        &[&RUN[..], &["--float-kernels", "fast"]].concat(),
        &["fast", "octet or tract"],
    );
}

#[test]
fn every_report_is_as_its_schema_says() {
    let folder = prepared("schema");
    let report = |arguments: &[&str]| {
        said(&folder, &[arguments, &["--report", "r.yaml"]].concat());
        let text = fs::read_to_string(folder.join("r.yaml")).unwrap();
        schema::check(&text);
        text
    };
    report(&QUANTIZE);
    report(
        &[
            &QUANTIZE[..],
            &["--method", "percentile", "--keep-float", "relu"],
        ]
        .concat(),
    );
    report(&["quantize", "m.onnx", "--demo", "2", "--out", "q.onnx"]);
    report(&[
        "quantize", "m.onnx", "--scheme", "weights", "--out", "w.onnx",
    ]);
    assert!(report(&RUN).contains("\nprofiles:"));
    let compare = [
        "compare",
        "m.onnx",
        "q.onnx",
        "--samples",
        "data",
        "--profile",
    ];
    let both = report(&compare);
    assert!(
        both.contains("profile: \"float\"") && both.contains("profile: \"int8\""),
        "{both}"
    );
}

#[test]
fn files_for_other_tools_are_written_and_the_page_asks_nobody() {
    let folder = prepared("files");
    let files = [
        "--html",
        "r.html",
        "--trace",
        "t.json",
        "--speedscope",
        "s.json",
        "--model-explorer",
        "e.json",
    ];
    said(&folder, &[&RUN[..], &files].concat());
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let json = |name: &str| -> Value { serde_json::from_str(&read(name)).unwrap() };
    assert!(json("t.json")["traceEvents"].as_array().unwrap().len() > 10);
    assert_eq!(json("s.json")["profiles"][0]["name"], "float");
    assert!(json("e.json")["results"]["conv"]["value"].is_number());
    let page = read("r.html");
    assert!(
        page.contains("default-src 'none'") && page.contains(">conv<"),
        "{page}"
    );
    for outside in ["http:", "https:", "src=", "href=", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// A program that is killed while it calibrates leaves a complete report of its progress.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_killed_leaves_a_report_up_to_there() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let folder = prepared("killed");
    // A sample that never ends: the program waits for it and has written the report of the samples
    // before it.
    let made = Command::new("mkfifo")
        .arg(folder.join("data/s9.npz"))
        .status();
    assert!(made.unwrap().success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_octet"))
        .args(QUANTIZE)
        .args(["--report", "r.yaml", "--threads", "1"])
        .current_dir(&folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let report = folder.join("r.yaml");
    let began = Instant::now();
    let told = || fs::read_to_string(&report).is_ok_and(|text| text.contains("data/s3.npz done"));
    while !told() && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut errors = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    let text = fs::read_to_string(&report).unwrap_or_else(|_| panic!("no report: {errors}"));
    schema::check(&text);
    assert!(
        text.contains("\"Calibration Start\"") && text.contains("data/s3.npz done"),
        "{text}"
    );
    assert!(!text.contains("\"End\""), "{text}");
}

#[test]
fn rows_are_sorted_and_grouped_as_asked() {
    let folder = prepared("run-sorted");
    let more = [
        "--profile",
        "--runs",
        "1",
        "--warm-up",
        "0",
        "--group",
        "operator",
        "--sort",
        "name",
    ];
    let table = said(&folder, &[&RUN[..], &more].concat());
    assert!(table.contains("\nConv"), "{table}");
    misused(
        &folder,
        &[&RUN[..], &["--profile", "--sort", "beauty"]].concat(),
        &["beauty", "own_bytes"],
    );
    misused(&folder, &["run", "m.onnx"], &["--samples"]);
    refused(
        &folder,
        &["run", "m.onnx", "--samples", "gone"],
        &["gone", "check the path"],
    );
}

#[test]
fn compare_finds_the_error_of_each_layer_and_none_between_a_model_and_itself() {
    let folder = prepared("compare");
    said(&folder, &QUANTIZE);
    let compare = ["compare", "m.onnx", "q.onnx", "--samples", "data"];
    let text = said(&folder, &compare);
    assert!(
        text.contains("4 samples\nworst output: y\noutput y (values): SQNR"),
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
fn what_it_will_take_is_told_before_and_kept_beside_what_it_took() {
    let folder = prepared("forecast");
    let only = [&QUANTIZE[..], &["--forecast", "--json"]].concat();
    let forecast: Value = serde_json::from_str(&said(&folder, &only)).unwrap();
    assert!(!folder.join("q.onnx").exists());
    assert_eq!(
        (
            &forecast["samples"],
            &forecast["macs"],
            &forecast["refusal"]
        ),
        (&4.into(), &864.into(), &Value::Null)
    );
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(&forecast["peakBytes"]) > 0.0 && number(&forecast["ms"]) > 0.0);
    assert!(number(&forecast["limitBytes"]) > number(&forecast["peakBytes"]));

    let whole = [&QUANTIZE[..], &["--json", "--report", "r.yaml"]].concat();
    let done: Value = serde_json::from_str(&said(&folder, &whole)).unwrap();
    let size = fs::metadata(folder.join("q.onnx")).unwrap().len();
    assert_eq!(done["summary"]["bytesAfter"], size);
    let report: Value =
        serde_yaml_ng::from_str(&fs::read_to_string(folder.join("r.yaml")).unwrap()).unwrap();
    let told = &report["forecast"];
    assert_eq!(told["forecast"]["macs"], 864);
    assert_eq!(told["actual"]["outputBytes"], size);
    assert!(number(&told["actual"]["peakBytes"]) > 0.0);
    misused(
        &folder,
        &[
            "quantize",
            "m.onnx",
            "--scheme",
            "weights",
            "--out",
            "w.onnx",
            "--forecast",
        ],
        &["--samples"],
    );
}

#[test]
fn layers_and_scopes_stand_in_the_report_when_asked_for() {
    let folder = prepared("checkpoints");
    let more = [
        "--report",
        "r.yaml",
        "--layer-checkpoints",
        "--scope",
        "mine",
    ];
    said(&folder, &[&QUANTIZE[..], &more].concat());
    let text = fs::read_to_string(folder.join("r.yaml")).unwrap();
    schema::check(&text);
    let report: Value = serde_yaml_ng::from_str(&text).unwrap();
    let records = report["memory_usage"].as_array().unwrap();
    let steps: Vec<&str> = records
        .iter()
        .map(|record| record["step"].as_str().unwrap())
        .collect();
    let place = |step: &str| steps.iter().position(|s| *s == step).unwrap();
    let layers = steps.iter().filter(|step| step.ends_with(" layer relu"));
    assert_eq!(layers.count(), 4, "{steps:?}");
    assert!(
        steps
            .iter()
            .any(|step| step.ends_with("s0.npz layer input x"))
    );
    assert!(place("mine Start") < place("Calibration Start"));
    assert!(place("Post-process End") < place("mine End"));
    assert_eq!(steps.last(), Some(&"End"));
    let times: Vec<f64> = records
        .iter()
        .map(|record| record["relative_time_secs"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn what_measuring_costs_is_told() {
    let folder = prepared("overhead");
    let text = said(&folder, &[&RUN[..], &["--overhead", "5"]].concat());
    assert!(
        text.starts_with("profiling adds ") && text.contains("the median of 5 pairs"),
        "{text}"
    );
}
