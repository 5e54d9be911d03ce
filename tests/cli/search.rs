//! `octet search`: a budget in, settings and a model out.

use std::fs;

use super::{folder, good, misused, npz, octet, refusal, save};
use octet_test_models::networks;

/// A folder with a small network and samples.
fn prepared(test: &str) -> std::path::PathBuf {
    let folder = folder(test);
    save(
        &folder,
        "m.onnx",
        &networks::mobile(&["1", "3", "16", "16"]),
    );
    fs::create_dir(folder.join("data")).unwrap();
    for i in 0..8 {
        let value = |k: usize| ((k * 7 + i * 131) % 257) as f32 / 128.0 - 1.0;
        let values: Vec<f32> = (0..768).map(value).collect();
        fs::write(
            folder.join(format!("data/s{i}.npz")),
            npz("x", &[1, 3, 16, 16], &values),
        )
        .unwrap();
    }
    folder
}

const SEARCH: [&str; 6] = ["search", "m.onnx", "--calib", "data", "--budget", "sqnr=30"];

#[test]
fn a_search_writes_a_model_its_settings_a_report_and_sensitivities() {
    let folder = prepared("search");
    let files = [
        "--out",
        "q.onnx",
        "--report",
        "r.yaml",
        "--save-settings",
        "s.yaml",
        "--save-sensitivities",
        "n.json",
    ];
    let (printed, _) = good(&folder, &[&SEARCH[..], &files].concat());
    for words in [
        "4 samples chose, 4 verified",
        "->",
        "a model of costs",
        "The budget sqnr=30dB",
    ] {
        assert!(printed.contains(words), "{words:?} is not in: {printed}");
    }
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    for key in ["search:", "points:", "verdict:", "withoutSearch:"] {
        assert!(report.contains(key), "{key:?} is not in: {report}");
    }
    // The settings quantize the model; the file of sensitivities gives the same choice and bytes.
    let again = [
        "--sensitivities",
        "n.json",
        "--out",
        "q2.onnx",
        "--save-settings",
        "s2.yaml",
    ];
    good(&folder, &[&SEARCH[..], &again].concat());
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert!(read("q.onnx") == read("q2.onnx") && read("s.yaml") == read("s2.yaml"));
    let quantize = [
        "quantize",
        "m.onnx",
        "--samples",
        "data",
        "--config",
        "s.yaml",
        "--out",
        "q3.onnx",
    ];
    good(&folder, &quantize);
    // Labels are by sample.
    fs::write(
        folder.join("labels.csv"),
        "sample,class\ns0,1\ns1,2\ns2,0\ns3,1\ns4,1\ns5,3\ns6,0\ns7,2\n",
    )
    .unwrap();
    let labels = ["--labels", "labels.csv", "--metric", "sqnr", "--json"];
    let (json, _) = good(&folder, &[&SEARCH[..], &labels].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["samples"], serde_json::json!([4, 4]));
    assert_eq!(
        json["bits"].as_array().unwrap().len(),
        json["points"].as_array().unwrap().len()
    );
}

#[test]
fn threads_change_no_byte_of_a_search() {
    let folder = prepared("search-threads");
    let run = |threads: &str, name: &str| {
        let out = ["--threads", threads, "--json", "--out", name];
        let (json, _) = good(&folder, &[&SEARCH[..], &out].concat());
        (json, fs::read(folder.join(name)).unwrap())
    };
    assert!(run("1", "one.onnx") == run("3", "three.onnx"));
}

#[test]
fn a_search_that_can_not_end_well_is_refused_in_words() {
    let folder = prepared("search-refused");
    let with = |budget: &'static str| ["search", "m.onnx", "--calib", "data", "--budget", budget];
    misused(&folder, &with("accuracy"), &["no amount", "accuracy=0.5%"]);
    misused(&folder, &with("time=3ms"), &["add --profile"]);
    misused(
        &folder,
        &[&SEARCH[..], &["--weight-bits", "8,9"]].concat(),
        &["`9`", "4, 8, 16 and float"],
    );
    misused(
        &folder,
        &[&SEARCH[..], &["--scheme", "dynamic"]].concat(),
        &["scheme static"],
    );
    misused(
        &folder,
        &[&SEARCH[..], &["--metric", "labels"]].concat(),
        &["--labels"],
    );
    let said = refusal(&octet(&folder, &with("bytes=10B")), 1);
    assert!(
        said.contains("can't be met: the best that these candidates reach is"),
        "{said}"
    );
    fs::create_dir(folder.join("one")).unwrap();
    fs::copy(folder.join("data/s0.npz"), folder.join("one/s0.npz")).unwrap();
    let one = ["search", "m.onnx", "--calib", "one", "--budget", "sqnr=30"];
    let said = refusal(&octet(&folder, &one), 3);
    assert!(said.contains("at least 2 samples"), "{said}");
    fs::write(folder.join("n.json"), "{}").unwrap();
    let said = refusal(
        &octet(
            &folder,
            &[&SEARCH[..], &["--sensitivities", "n.json"]].concat(),
        ),
        3,
    );
    assert!(said.contains("sensitivities can't be read"), "{said}");
}
