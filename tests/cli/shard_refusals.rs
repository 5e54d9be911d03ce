//! Shards that don't belong together, damaged files and bad samples are refused by name.

use std::fs;

use super::models::{convolution, npz};
use super::save;
use super::shards::{alone, from_stats, observe, passes};
use super::{ended, good, misused, prepared, refused, sample};

#[test]
fn shards_that_do_not_belong_together_are_refused_by_name() {
    let folder = prepared("shards-refused");
    observe(&folder, "1/2", "a", &[]);
    observe(&folder, "2/2", "b", &[]);
    observe(&folder, "1/3", "third", &[]);
    observe(&folder, "2/2", "other", &["--image-preset", "raw"]);
    observe(&folder, "2/2", "equal", &["--equalize=0.5"]);
    let merge = |files: &[&str], words: &[&str]| {
        let arguments = [&["merge", "--out", "m.stats"], files].concat();
        refused(&folder, &arguments, words);
        assert!(!folder.join("m.stats").exists());
    };
    merge(
        &["a", "a"],
        &["a and a both hold shard 1/2", "each shard counts once"],
    );
    merge(
        &["a", "third"],
        &["a divides", "into 2 shards", "third into 3"],
    );
    merge(
        &["a", "other"],
        &["other has another setting than a", "image."],
    );
    merge(
        &["a", "equal"],
        &[
            "equal has another setting",
            "equalize: 0.5",
            "equalize: null",
        ],
    );
    merge(
        &["a", "--complete"],
        &["the shards 2 of 2 of the samples", "are missing"],
    );
    merge(&["a", "absent"], &["can't read the statistics absent"]);
    merge(
        &["a", "data/s0.npz"],
        &["data/s0.npz", "no file of statistics"],
    );

    let mut model = convolution();
    model.producer_name = Some("another".into());
    save(&folder, "other.onnx", &model);
    let arguments = [
        "observe",
        "other.onnx",
        "--samples",
        "data",
        "--shard",
        "2/2",
        "--out",
        "foreign",
    ];
    good(&folder, &arguments);
    merge(
        &["a", "foreign"],
        &["foreign has another model than a", "other.onnx"],
    );
    let quantize = |files: &[&str], code: i32, words: &[&str]| {
        let own = ["quantize", "m.onnx", "--out", "q.onnx", "--stats"];
        ended(&folder, &[&own[..], files].concat(), code, words);
    };
    quantize(&["foreign"], 3, &["the shards 1 of 2"]);
    quantize(&["a"], 3, &["a: the shards 2 of 2", "missing"]);
    good(&folder, &["merge", "a", "b", "--out", "all"]);
    quantize(
        &["all", "--equalize=0.5"],
        2,
        &["another setting", "equalize"],
    );
    quantize(&["all", "all"], 3, &["another pass", "1, not 2"]);
    misused(
        &folder,
        &[
            "observe",
            "m.onnx",
            "--samples",
            "data",
            "--shard",
            "3/2",
            "--out",
            "c",
        ],
        &["--shard 3/2 is no shard"],
    );
    misused(
        &folder,
        &[
            "observe",
            "m.onnx",
            "--samples",
            "data",
            "--after",
            "all",
            "--out",
            "c",
        ],
        &["all are complete", "octet quantize --stats"],
    );
}

#[test]
fn damaged_files_are_refused_and_never_a_panic() {
    let folder = prepared("shards-damaged");
    observe(&folder, "1/1", "whole", &[]);
    let bytes = fs::read(folder.join("whole")).unwrap();
    for end in [0, 7, 11, 20, 60, bytes.len() / 2, bytes.len() - 1] {
        fs::write(folder.join("cut"), &bytes[..end]).unwrap();
        refused(&folder, &["merge", "cut", "--out", "m"], &["cut"]);
    }
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(folder.join("damaged"), damaged).unwrap();
        refused(&folder, &["merge", "damaged", "--out", "m"], &["damaged"]);
    }
    let mut newer = bytes;
    newer[8] = 9;
    fs::write(folder.join("newer"), newer).unwrap();
    refused(
        &folder,
        &["merge", "newer", "--out", "m"],
        &["format 9", "reads format 1"],
    );
}

#[test]
fn a_bad_sample_is_skipped_and_counted_or_ends_its_shard() {
    let folder = prepared("shards-bad");
    fs::write(folder.join("data/s2.npz"), "no archive").unwrap();
    // Its values are of another shape, which is found when it runs.
    fs::write(
        folder.join("data/s3.npz"),
        npz("x", &[1, 3, 2, 2], &sample(3)[..12]),
    )
    .unwrap();
    for settings in [&[][..], &["--rounding", "gptq"]] {
        let number = 1 + usize::from(!settings.is_empty());
        let all = passes(&folder, settings, 3, number);
        let shared = from_stats(&folder, settings, &all);
        assert!(shared == alone(&folder, settings), "{settings:?}");
    }
    let (told, _) = good(
        &folder,
        &["merge", "all3-1.stats", "--json", "--out", "again"],
    );
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["header"]["samples"], 2);
    let skipped = told["header"]["skipped"].as_array().unwrap();
    let named: Vec<_> = skipped
        .iter()
        .map(|one| (one["place"].clone(), one["sample"].clone()))
        .collect();
    assert_eq!(
        named,
        [
            (2.into(), "data/s2.npz".into()),
            (3.into(), "data/s3.npz".into())
        ]
    );
    let own = [
        "observe",
        "m.onnx",
        "--samples",
        "data",
        "--bad-samples",
        "stop",
    ];
    refused(
        &folder,
        &[&own[..], &["--shard", "3/4", "--out", "c"]].concat(),
        &["s2.npz"],
    );
    good(
        &folder,
        &[&own[..], &["--shard", "1/4", "--out", "c"]].concat(),
    );
}
