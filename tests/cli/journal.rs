//! `octet quantize --journal`: a run continues after the layers that an earlier one has learned.

use std::fs;
use std::path::Path;

use super::{folder, good, misused, npz, save};
use octet_test_models::networks;

const LEARN: [&str; 10] = [
    "quantize",
    "m.onnx",
    "--samples",
    "data",
    "--out",
    "q.onnx",
    "--rounding",
    "closed-form",
    "--finetune",
    "adaround",
];

/// A folder with a network of several layers, and six samples.
fn layered(test: &str) -> std::path::PathBuf {
    let folder = folder(test);
    save(&folder, "m.onnx", &networks::mobile(&["1", "3", "8", "8"]));
    fs::create_dir(folder.join("data")).unwrap();
    for i in 0..6 {
        let values: Vec<f32> = (0..192)
            .map(|k| ((k * 7 + i * 5) % 19) as f32 / 9.0 - 1.0)
            .collect();
        let file = npz("x", &[1, 3, 8, 8], &values);
        fs::write(folder.join(format!("data/s{i}.npz")), file).unwrap();
    }
    folder
}

/// Learns with a journal; returns the result, and what was said.
fn learned(folder: &Path, more: &[&str]) -> (Vec<u8>, String) {
    let arguments = [&LEARN[..], &["--journal", "r.journal"], more].concat();
    let (_, said) = good(folder, &arguments);
    (fs::read(folder.join("q.onnx")).unwrap(), said)
}

#[test]
fn a_run_goes_on_from_a_journal_that_was_cut_short() {
    let folder = layered("journal");
    good(&folder, &LEARN);
    let expected = fs::read(folder.join("q.onnx")).unwrap();
    let (first, said) = learned(&folder, &[]);
    assert!(
        first == expected && !said.contains("continues after"),
        "{said}"
    );
    let whole = fs::read(folder.join("r.journal")).unwrap();
    let mut counts = Vec::new();
    for length in [whole.len(), whole.len() * 2 / 3, whole.len() / 2, 60] {
        fs::write(folder.join("r.journal"), &whole[..length]).unwrap();
        let (again, said) = learned(&folder, &[]);
        assert!(again == expected, "{length}");
        assert!(
            fs::read(folder.join("r.journal")).unwrap() == whole,
            "{length}"
        );
        let count = said.split_once("continues after ").map(|(_, rest)| {
            let number = rest.split(' ').next().unwrap();
            number.parse::<usize>().unwrap()
        });
        counts.push(count.unwrap_or(0));
    }
    assert!(counts[0] > counts[1] && counts[1] > 0, "{counts:?}");
    assert_eq!(counts[3], 0, "{counts:?}");
}

#[test]
fn a_journal_of_other_settings_is_begun_again_and_other_files_are_left_alone() {
    let folder = layered("journal_other");
    learned(&folder, &[]);
    let before = fs::read(folder.join("r.journal")).unwrap();
    let (_, said) = learned(&folder, &["--weights", "i4"]);
    assert!(!said.contains("continues after"), "{said}");
    assert!(fs::read(folder.join("r.journal")).unwrap() != before);
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    let with = |name| [&LEARN[..], &["--journal", name]].concat();
    misused(&folder, &with("notes.txt"), &["notes.txt", "no journal"]);
    assert_eq!(fs::read(folder.join("notes.txt")).unwrap(), b"mine");
    let plain = [&LEARN[..6], &["--journal", "r.journal"]].concat();
    misused(&folder, &plain, &["--journal", "--finetune"]);
}
