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
fn repeated_runs_keep_the_plan_and_tell_their_times() {
    let folder = prepared("run-repeat");
    let once = said(&folder, &RUN);
    let repeated = said(&folder, &[&RUN[..], &["--repeat", "5"]].concat());
    assert!(repeated.starts_with(once.trim_end()), "{repeated}");
    assert!(repeated.contains("ms per run (median of 5;"), "{repeated}");
    assert!(repeated.contains("with its plan"), "{repeated}");
    misused(
        &folder,
        &[&RUN[..], &["--repeat", "5", "--csv", "l.csv"]].concat(),
        &["--repeat", "--profile"],
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
    let learned = ["--rounding", "closed-form", "--config"];
    let steps = ["{finetune: {num_iterations: 20}}", "--out", "t.onnx"];
    let demo = ["quantize", "m.onnx", "--demo", "4"];
    let learned = report(&[&demo[..], &learned, &steps].concat());
    assert!(learned.contains("\ntuning:") && learned.contains("curve:"));
    let blocks = "{finetune: {num_iterations: 5, blocks: true, distillation: 5}}";
    let blocks = ["--config", blocks, "--out", "b.onnx"];
    let learned = report(&[&demo[..], &blocks].concat());
    assert!(learned.contains("block of ") && learned.contains("distillation"));
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
