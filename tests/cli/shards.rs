//! Calibrations that several runs share: shards, their merge, and the quantization from them have
//! the bytes of one run.

use std::fs;
use std::path::Path;

use octet::onnx::schema::{AttributeProto, DataType};

use super::models::npz;
use super::save;
use super::{good, misused, prepared, refused, sample};

/// Numbers of shards.
const COUNTS: [usize; 5] = [1, 2, 3, 7, 64];
const BLOCKS_GPTQ: &str = r#"{"scheme": "blocks", "blocks": {"size": 16, "method": "gptq"}}"#;
const BLOCKS_AWQ: &str = r#"{"scheme": "blocks", "blocks": {"size": 16, "method": "awq"}}"#;

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_string()).collect()
}

fn call(folder: &Path, arguments: &[String]) -> String {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    good(folder, &words).0
}

/// Observes all shards of a pass in reverse order and merges them.
fn pass(folder: &Path, settings: &[&str], count: usize, after: &[String], out: &str) {
    let mut files = Vec::new();
    for number in (1..=count).rev() {
        let file = format!("{out}-{number}-{count}");
        let shard = format!("{number}/{count}");
        let mut words = strings(&["observe", "m.onnx", "--samples", "data", "--threads", "1"]);
        words.extend(strings(&["--shard", &shard, "--out", &file]));
        words.extend(strings(settings));
        if !after.is_empty() {
            words.push("--after".into());
            words.extend(after.iter().cloned());
        }
        call(folder, &words);
        files.push(file);
    }
    let mut words = strings(&["merge", "--complete", "--out", out]);
    words.extend(files);
    call(folder, &words);
}

pub fn from_stats(folder: &Path, settings: &[&str], passes: &[String]) -> Vec<u8> {
    let mut words = strings(&["quantize", "m.onnx", "--out", "shared.onnx", "--stats"]);
    words.extend(passes.iter().cloned());
    words.extend(strings(settings));
    call(folder, &words);
    fs::read(folder.join("shared.onnx")).unwrap()
}

pub fn alone(folder: &Path, settings: &[&str]) -> Vec<u8> {
    let mut words = strings(&[
        "quantize",
        "m.onnx",
        "--samples",
        "data",
        "--out",
        "alone.onnx",
    ]);
    words.extend(strings(settings));
    call(folder, &words);
    fs::read(folder.join("alone.onnx")).unwrap()
}

/// All passes that settings need, in `count` shards.
pub fn passes(folder: &Path, settings: &[&str], count: usize, number: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for at in 1..=number {
        let out = format!("all{count}-{at}.stats");
        pass(folder, settings, count, &all, &out);
        all.push(out);
    }
    all
}

#[test]
fn any_number_of_shards_has_the_bytes_of_one_run_for_every_method_of_one_pass() {
    let folder = prepared("shards");
    let first: Vec<Vec<u8>> = COUNTS
        .map(|count| {
            let all = passes(&folder, &[], count, 1);
            fs::read(folder.join(&all[0])).unwrap()
        })
        .to_vec();
    // The complete statistics do not tell how they were divided.
    assert!(first.iter().all(|bytes| *bytes == first[0]));
    let methods = octet::stats::METHODS.iter().map(|entry| entry.name);
    let mut tried = 0;
    for method in methods.filter(|name| !name.starts_with("ort-")) {
        let settings = ["--method", method];
        let shared = from_stats(&folder, &settings, &["all7-1.stats".into()]);
        assert!(shared == alone(&folder, &settings), "{method}");
        tried += 1;
    }
    assert!(tried >= 8, "{tried} methods");
}

#[test]
fn settings_of_several_passes_have_the_bytes_of_one_run() {
    for (name, settings, number) in [
        ("percentile", &["--method", "ort-percentile:99.9"][..], 2),
        ("entropy", &["--method", "ort-entropy:128/16"], 2),
        ("gptq", &["--rounding", "gptq"], 2),
        ("equalize", &["--equalize=0.5", "--rounding", "gptq"], 3),
        ("blocks-gptq", &["--config", BLOCKS_GPTQ], 2),
        ("blocks-awq", &["--config", BLOCKS_AWQ], 2),
    ] {
        let folder = prepared(&format!("shards-{name}"));
        if name == "equalize" {
            let mut network = octet_test_models::networks::network(&["1", "3", "4", "4"]);
            network.conv("x", "a", [6, 3, 1, 1], 1, 1);
            network.conv("a", "y", [3, 6, 1, 1], 1, 1);
            network.output("y");
            save(&folder, "m.onnx", &network.model());
        }
        if name.starts_with("blocks") {
            let mut network = octet_test_models::networks::network(&["1", "3", "4", "4"]);
            network.list("flat shape", &[1, 48]);
            network.plain("Reshape", &["x", "flat shape"], "flat");
            network.linear("flat", "hidden", 48, 32);
            network.plain("Relu", &["hidden"], "positive");
            network.linear("positive", "y", 32, 16);
            network.output("y");
            save(&folder, "m.onnx", &network.model());
        }
        let expected = alone(&folder, settings);
        for count in COUNTS {
            let all = passes(&folder, settings, count, number);
            assert!(
                from_stats(&folder, settings, &all) == expected,
                "{name}, {count} shards"
            );
        }
        let plan = |after: &[&str]| {
            let words = [&["observe", "m.onnx", "--plan"], settings, after].concat();
            good(&folder, &words).0
        };
        assert!(
            plan(&[]).contains(r#""content":"tensors","pass":1"#),
            "{}",
            plan(&[])
        );
        let first = ["--after", "all2-1.stats"];
        assert!(plan(&first).contains(r#""pass":2"#), "{}", plan(&first));
        let mut words = strings(&[
            "quantize",
            "m.onnx",
            "--out",
            "q.onnx",
            "--stats",
            "all2-1.stats",
        ]);
        words.extend(strings(settings));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        misused(&folder, &words, &["another pass", "--after all2-1.stats"]);
    }
}

/// Observes one shard.
pub fn observe(folder: &Path, shard: &str, out: &str, more: &[&str]) {
    let own = ["observe", "m.onnx", "--shard", shard, "--out", out];
    let samples: &[&str] = match more.contains(&"--samples") {
        true => &[],
        false => &["--samples", "data"],
    };
    good(folder, &[&own[..], samples, more].concat());
}

#[test]
fn people_add_up_their_own_samples() {
    let folder = prepared("shards-people");
    for (person, samples) in [("ann", ["s0", "s1"]), ("bob", ["s2", "s3"])] {
        fs::create_dir(folder.join(person)).unwrap();
        for name in samples {
            fs::copy(
                folder.join(format!("data/{name}.npz")),
                folder.join(format!("{person}/{name}.npz")),
            )
            .unwrap();
        }
        observe(
            &folder,
            "1/1",
            &format!("{person}.stats"),
            &["--samples", person, "--source", person],
        );
    }
    good(
        &folder,
        &["merge", "bob.stats", "ann.stats", "--out", "both"],
    );
    let shared = from_stats(&folder, &[], &["both".into()]);
    assert!(shared == alone(&folder, &[]));
    refused(
        &folder,
        &["merge", "both", "ann.stats", "--out", "twice"],
        &["both hold shard 1/1 of the samples `ann`"],
    );
}

#[test]
fn later_passes_must_see_the_samples_of_the_first() {
    let folder = prepared("shards-samples");
    let settings = ["--rounding", "gptq"];
    observe(&folder, "1/1", "first", &settings);
    fs::write(
        folder.join("data/s0.npz"),
        npz("x", &[1, 3, 4, 4], &sample(9)),
    )
    .unwrap();
    observe(
        &folder,
        "1/1",
        "second",
        &[&settings[..], &["--after", "first"]].concat(),
    );
    refused(
        &folder,
        &[
            "quantize",
            "m.onnx",
            "--stats",
            "first",
            "second",
            "--out",
            "q.onnx",
            "--rounding",
            "gptq",
        ],
        &["second", "are not the 4 of the first pass"],
    );
}

#[test]
fn the_figures_of_shards_are_those_of_one_comparison() {
    let folder = prepared("shards-compare");
    good(
        &folder,
        &["quantize", "m.onnx", "--samples", "data", "--out", "q.onnx"],
    );
    let labels = "s0,1\ns1,0\ns2,1\ns3,3\n";
    fs::write(folder.join("labels.csv"), labels).unwrap();
    let own = ["compare", "m.onnx", "q.onnx", "--split"];
    let given = ["--samples", "data", "--labels", "labels.csv"];
    let whole = good(&folder, &[&own[..], &given, &["--json"]].concat()).0;
    for count in COUNTS {
        let mut files = Vec::new();
        for number in (1..=count).rev() {
            let (shard, out) = (format!("{number}/{count}"), format!("c{number}"));
            let part = ["--shard", &shard, "--save-stats", &out];
            good(&folder, &[&own[..], &given, &part].concat());
            files.push(out);
        }
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        good(&folder, &[&["merge", "--out", "all"], &files[..]].concat());
        let shared = good(&folder, &[&own[..], &["--stats", "all", "--json"]].concat()).0;
        assert!(shared == whole, "{count} shards");
    }
    good(
        &folder,
        &[
            &own[..],
            &given,
            &["--shard", "1/2", "--save-stats", "half"],
        ]
        .concat(),
    );
    observe(&folder, "1/2", "observed", &[]);
    let stats = |file: &str, words: &[&str]| {
        refused(&folder, &[&own[..], &["--stats", file]].concat(), words);
    };
    stats("half", &["the shards 2 of 2", "missing"]);
    stats("observed", &["the shards 2 of 2"]);
    refused(
        &folder,
        &["merge", "half", "observed", "--out", "both"],
        &["another work", "Calibration, not Comparison"],
    );
    refused(
        &folder,
        &["compare", "m.onnx", "q.onnx", "--stats", "all"],
        &["another setting", "split: true"],
    );
    misused(
        &folder,
        &[&own[..], &given, &["--shard", "1/2"]].concat(),
        &["--save-stats"],
    );
}

#[test]
fn a_sample_that_fails_while_it_runs_is_skipped_in_all_passes() {
    let folder = prepared("shards-failing");
    let mut network = octet_test_models::networks::network(&["1", "4"]);
    let to_integers = AttributeProto::int("to", DataType::Int64 as i64);
    network.node("Cast", &["x"], &["i"], vec![to_integers]);
    network.weight("table", &[10, 8]);
    network.plain("Gather", &["table", "i"], "g");
    network.linear("g", "y", 8, 3);
    network.output("y");
    save(&folder, "m.onnx", &network.model());
    for at in 0..4 {
        // The third index of the second sample is beyond the table.
        let third = if at == 1 { 99.0 } else { 3.0 };
        let values = [0.0, at as f32, third, 9.0];
        fs::write(
            folder.join(format!("data/s{at}.npz")),
            npz("x", &[1, 4], &values),
        )
        .unwrap();
    }
    let settings = ["--rounding", "gptq"];
    let all = passes(&folder, &settings, 2, 2);
    assert!(from_stats(&folder, &settings, &all) == alone(&folder, &settings));
    let (told, _) = good(&folder, &["merge", &all[1], "--json", "--out", "again"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["header"]["samples"], 3);
    assert_eq!(told["header"]["skipped"][0]["sample"], "data/s1.npz");
}
