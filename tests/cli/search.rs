//! `octet search`: a budget in, settings and a model out.

use std::fs;

use super::{folder, good, misused, npz, octet, refusal, refused, save};
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

/// All passes of a search in `count` shards, and the words of the last call.
fn in_shards(folder: &std::path::Path, search: &[&str], count: usize, last: &[&str]) -> String {
    let mut passes: Vec<String> = Vec::new();
    loop {
        assert!(passes.len() < 30, "the search does not end");
        let mut common: Vec<&str> = search.to_vec();
        if !passes.is_empty() {
            common.push("--stats");
            common.extend(passes.iter().map(String::as_str));
        }
        let (plan, _) = good(folder, &[&common[..], &["--plan"]].concat());
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        if plan["pass"].is_null() {
            return good(folder, &[&common[..], last].concat()).0;
        }
        assert_eq!(plan["pass"], passes.len() + 1);
        assert!(plan["parts"].as_u64().unwrap() > 0, "{plan}");
        let shards: Vec<String> = (1..=count).map(|n| format!("{n}/{count}")).collect();
        let files: Vec<String> = (1..=count).map(|n| format!("shard{n}.stats")).collect();
        for (shard, file) in shards.iter().zip(&files).rev() {
            let own = ["--shard", shard, "--save-stats", file];
            good(folder, &[&common[..], &own].concat());
        }
        let merged = format!("pass{}-{count}.stats", passes.len() + 1);
        let mut words = vec!["merge", "--complete", "--out", &merged];
        words.extend(files.iter().map(String::as_str));
        good(folder, &words);
        passes.push(merged);
    }
}

#[test]
fn any_number_of_shards_has_the_result_of_one_run() {
    let folder = prepared("search-shards");
    let budget = |budget| ["search", "m.onnx", "--samples", "data", "--budget", budget];
    for (search, counts) in [
        (&budget("sqnr=30")[..], &[1, 3][..]),
        (&budget("wide=2"), &[7]),
        (
            &[&budget("bytes=6kB")[..], &["--method", "ort-entropy"]].concat(),
            &[2],
        ),
    ] {
        let files = |name: &str| {
            let ends = ["onnx", "yaml", "json", "report"];
            ends.map(|end| format!("{name}.{end}"))
        };
        let outputs = |[out, settings, noises, report]: &[String; 4]| {
            let words = [
                ["--out", out],
                ["--save-settings", settings],
                ["--save-sensitivities", noises],
                ["--report", report],
            ];
            let words = words.concat().into_iter().map(String::from);
            words.chain(["--json".into()]).collect::<Vec<String>>()
        };
        let one = files("one");
        let words = outputs(&one);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (whole, _) = good(&folder, &[search, &words].concat());
        for &count in counts {
            let shared = files("shared");
            let words = outputs(&shared);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(in_shards(&folder, search, count, &words), whole, "{count}");
            for (one, shared) in one.iter().zip(&shared) {
                let read = |name: &String| fs::read(folder.join(name)).unwrap();
                assert!(read(one) == read(shared), "{one} in {count} shards");
            }
        }
    }
}

#[test]
fn passes_of_another_search_are_refused_by_name() {
    let folder = prepared("search-shards-refused");
    fn call<'a>(budget: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let search = ["search", "m.onnx", "--samples", "data", "--budget", budget];
        [&search[..], more].concat()
    }
    let whole = in_shards(&folder, &call("sqnr=30", &[]), 2, &[]);
    assert!(whole.contains("The budget sqnr=30dB"), "{whole}");
    let passes = ["--stats", "pass1-2.stats", "pass2-2.stats"];
    let other = [&passes[..], &["--plan"]].concat();
    refused(
        &folder,
        &call("sqnr=20", &other),
        &["pass2-2.stats has another setting", "budget"],
    );
    misused(
        &folder,
        &call("sqnr=30", &passes),
        &[
            "needs another pass",
            "--save-stats",
            "add the file to --stats",
        ],
    );
    misused(
        &folder,
        &call("sqnr=30", &["--plan", "--profile"]),
        &["--profile measures times on one machine"],
    );
    misused(
        &folder,
        &call("sqnr=30", &["--shard", "3/2", "--save-stats", "x.stats"]),
        &["--shard 3/2 is no shard"],
    );
    refused(
        &folder,
        &call("sqnr=30", &["--stats", "pass2-2.stats", "--plan"]),
        &["pass2-2.stats has another pass"],
    );
    let quantize = [
        "quantize",
        "m.onnx",
        "--out",
        "q.onnx",
        "--stats",
        "pass2-2.stats",
    ];
    let told = ["pass2-2.stats: these are no statistics of a calibration"];
    refused(&folder, &quantize, &told);
}
