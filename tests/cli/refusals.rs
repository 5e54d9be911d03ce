//! Bad input: the messages, and that no file is lost.

use std::fs;
use std::process::Command;

use octet::onnx::schema::{AttributeProto, ModelProto};
use prost::Message;

use super::models::{self, convolution, npz};
use super::{QUANTIZE, ended, misused, octet, prepared, refusal, refused, save, without_stages};
use octet_test_models::npy;

#[test]
fn a_file_that_is_no_model_is_refused() {
    let folder = prepared("no-model");
    let whole = convolution().encode_to_vec();
    let cases: [(&str, &[u8], &str); 4] = [
        ("empty", b"", "empty"),
        ("truncated", &whole[..whole.len() / 2], "again"),
        (
            "html",
            b"<!DOCTYPE html><html><body>Not found</body></html>",
            "HTML",
        ),
        ("noise", &[0xff; 300], "again"),
    ];
    for (name, bytes, word) in cases {
        let file = format!("{name}.onnx");
        fs::write(folder.join(&file), bytes).unwrap();
        refused(
            &folder,
            &["quantize", &file, "--samples", "data", "--out", "q.onnx"],
            &[&file, word],
        );
    }
    refused(
        &folder,
        &["inspect", "gone.onnx"],
        &["gone.onnx", "check the path"],
    );
    assert!(!folder.join("q.onnx").exists());
}

#[test]
fn a_model_that_cannot_be_quantized_is_refused() {
    let folder = prepared("not-quantizable");
    save(&folder, "m.onnx", &models::unknown_operator());
    refused(&folder, &QUANTIZE, &["m.onnx", "Frobnicate"]);
    save(&folder, "m.onnx", &models::already_quantized());
    refused(&folder, &QUANTIZE, &["m.onnx", "quantized already"]);
    // The samples don't matter: the refusal precedes them.
    let other = npz("x", &[1, 2], &[0.0; 2]);
    (0..4).for_each(|i| fs::write(folder.join(format!("data/s{i}.npz")), &other).unwrap());
    refused(&folder, &QUANTIZE, &["m.onnx", "quantized already"]);
}

#[test]
fn what_makes_no_sense_is_refused_where_nothing_is_run_too() {
    let folder = prepared("makes-no-sense");
    let group = |mut model: ModelProto| {
        let conv = &mut model.graph.as_mut().unwrap().node[0];
        conv.attribute.push(AttributeProto::int("group", 2));
        model
    };
    for scheme in ["weights", "dynamic", "float16"] {
        let quantize = ["quantize", "m.onnx", "--scheme", scheme, "--out", "q.onnx"];
        save(&folder, "m.onnx", &group(convolution()));
        let words = ["m.onnx", "Conv (node `conv`)", "the channels of its input"];
        refused(&folder, &quantize, &words);
        // An unknown operator may be valid.
        save(&folder, "m.onnx", &models::unknown_operator());
        assert!(octet(&folder, &quantize).status.success(), "{scheme}");
    }
}

#[test]
fn a_bad_sample_is_refused_by_name() {
    let folder = prepared("samples");
    let sample = folder.join("data/s2.npz");
    let mut values = vec![0.5; 48];
    values[17] = f32::NAN;
    let doubled = npy("<i8", "(1, 3, 4, 4)", &[0; 384]);
    let cases: Vec<(Vec<u8>, &[&str])> = vec![
        (
            npz("x", &[1, 3, 4, 5], &[0.0; 60]),
            &["\"x\"", "[1, 3, 4, 5]", "[1, 3, 4, 4]"],
        ),
        (npz("x", &[3, 4, 4], &[0.0; 48]), &["batch axis"]),
        (npz("x", &[1, 3, 4, 4], &values), &["NaN", "[0, 1, 0, 1]"]),
        (models::zip("x", &doubled), &["int64", "float32"]),
        (b"".to_vec(), &["empty"]),
        (b"<html></html>".to_vec(), &["zip"]),
    ];
    for (bytes, words) in cases {
        fs::write(&sample, bytes).unwrap();
        let stop = [&QUANTIZE[..], &["--bad-samples", "stop"]].concat();
        refused(&folder, &stop, &[&["data/s2.npz"], words].concat());
    }
    assert!(!folder.join("q.onnx").exists());
}

#[test]
fn no_samples_and_foreign_files_are_refused() {
    let folder = prepared("no-samples");
    fs::create_dir(folder.join("none")).unwrap();
    let with = |path: &'static str| ["quantize", "m.onnx", "--samples", path, "--out", "q.onnx"];
    refused(&folder, &with("none"), &["none: no samples", ".npz"]);
    refused(&folder, &with("gone"), &["gone", "check the path"]);
    fs::write(folder.join("none/labels.csv"), "a,b").unwrap();
    refused(&folder, &with("none"), &["none: no samples", ".npz"]);
    refused(
        &folder,
        &with("none/labels.csv"),
        &["none/labels.csv", ".npz"],
    );
    fs::write(folder.join("none/photo.heic"), "").unwrap();
    refused(&folder, &with("none"), &["none/photo.heic", ".npz"]);
    misused(
        &folder,
        &["quantize", "m.onnx", "--out", "q.onnx"],
        &["--samples"],
    );
}

#[test]
fn options_that_are_not_there_are_refused_with_what_is() {
    let folder = prepared("options");
    let cases: [(&[&str], &[&str]); 14] = [
        (
            &["--method", "percentile:x"],
            &["percentile:x", "percentile:99.99"],
        ),
        (&["--method", "magic"], &["--method", "magic", "minmax"]),
        (&["--rounding", "up"], &["--rounding", "up", "gptq"]),
        (&["--equalize=2"], &["--equalize", "2", "from 0 to 1"]),
        (&["--equalize=NaN"], &["--equalize", "from 0 to 1"]),
        (&["--weights", "i9"], &["i9", "u4"]),
        (&["--scheme", "magic"], &["not known", "static"]),
        (&["--scheme", "dynamic"], &["--samples", "leave them out"]),
        (&["--format", "onnx"], &["not known", "qdq"]),
        (&["--activations", "i32"], &["i32", "u8, i8"]),
        (&["--threads", "0"], &["--threads 0"]),
        (&["--mean", "1,2"], &["--mean 1,2"]),
        (&["--keep-float", "nowhere"], &["nowhere"]),
        (&["--speed"], &["--speed", "--help"]),
    ];
    for (more, words) in cases {
        misused(&folder, &[&QUANTIZE[..], more].concat(), words);
    }
    fs::write(folder.join("r.json"), r#"{"x": [2, 1]}"#).unwrap();
    let with_ranges = [
        "quantize", "m.onnx", "--ranges", "r.json", "--out", "q.onnx",
    ];
    refused(&folder, &with_ranges, &["r.json", "from 2 to 1"]);
    fs::write(folder.join("r.json"), "{}").unwrap();
    refused(&folder, &with_ranges, &["no range"]);
    // The ranges belong to the model before equalization.
    fs::write(folder.join("r.json"), r#"{"x": [-1, 2]}"#).unwrap();
    let equalized = [&with_ranges[..], &["--equalize"]].concat();
    misused(&folder, &equalized, &["`equalize: 0.5`", "no `equalize`"]);
}

#[test]
fn the_model_is_never_overwritten_by_its_result() {
    let folder = prepared("itself");
    let before = fs::read(folder.join("m.onnx")).unwrap();
    let same = [
        "quantize",
        "m.onnx",
        "--samples",
        "data",
        "--out",
        "./data/../m.onnx",
    ];
    misused(&folder, &same, &["the model itself"]);
    misused(
        &folder,
        &[
            "quantize",
            "m.onnx",
            "--samples",
            "data",
            "--out",
            "no/q.onnx",
        ],
        &["folder does not exist"],
    );
    assert_eq!(before, fs::read(folder.join("m.onnx")).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_printed_is_said() {
    let folder = prepared("unprinted");
    let output = Command::new(env!("CARGO_BIN_EXE_octet"))
        .args(["inspect", "m.onnx"])
        .current_dir(&folder)
        .stdout(fs::File::create("/dev/full").unwrap())
        .output()
        .unwrap();
    let said = refusal(&output, 1);
    assert!(
        said.contains("standard output: no space left on device; make room"),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_with_file_and_size_and_loses_nothing() {
    let folder = prepared("full");
    let full = [
        "quantize",
        "m.onnx",
        "--samples",
        "data",
        "--out",
        "/dev/full",
        "--weights",
        "u8",
    ];
    ended(
        &folder,
        &full,
        1,
        &["/dev/full", "bytes", "no space left", "free some space"],
    );

    // A limit on file sizes simulates a disk that fills up while the model is written.
    fs::write(folder.join("q.onnx"), "what was there before").unwrap();
    let command = format!(
        "trap '' XFSZ; ulimit -f 0; exec '{}' {} --weights u8",
        env!("CARGO_BIN_EXE_octet"),
        QUANTIZE.join(" ")
    );
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = refusal(&without_stages(output), 1);
    assert!(
        said.contains("q.onnx") && said.contains("bytes") && said.contains("too large"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(folder.join("q.onnx")).unwrap(),
        "what was there before"
    );
    let left: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_run_that_fails_leaves_a_report_of_what_was_done() {
    let folder = prepared("unfinished");
    // The header of this image is valid, so only the run finds the damaged pixels.
    let photo = folder.join("data/t9.png");
    image::RgbImage::from_fn(40, 40, |x, y| image::Rgb([(x * y) as u8, x as u8, y as u8]))
        .save(&photo)
        .unwrap();
    let mut bytes = fs::read(&photo).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&photo, bytes).unwrap();
    let more = ["--report", "r.yaml", "--bad-samples", "stop"];
    let output = octet(&folder, &[&QUANTIZE[..], &more].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("t9.png"), "{said}");
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    assert!(
        report.contains("\"Calibration Start\"") && report.contains("\nmodel:"),
        "{report}"
    );
}
