//! What the command line promises: a model and a report for good input; for bad input code 2 and
//! one line that says what, where, why and what to do next, with no file lost.

#![cfg(feature = "cli")]

#[path = "cli/models.rs"]
mod models;
#[path = "cli/profile.rs"]
mod profile;
#[path = "cli/schema.rs"]
mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use models::{convolution, npy, npz};
use octet::onnx::schema::{ModelProto, TensorProto};
use prost::Message;

/// An empty folder of that test's own.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("cli")
        .join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn octet(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_octet"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The line with which the program refused.
#[track_caller]
fn refusal(output: &Output) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        output.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    said
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let said = refusal(&octet(folder, arguments));
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

fn save(folder: &Path, name: &str, model: &ModelProto) {
    fs::write(folder.join(name), model.encode_to_vec()).unwrap();
}

/// The values of a sample.
fn sample(i: usize) -> Vec<f32> {
    (0..48)
        .map(|k| ((k * 7 + i * 5) % 19) as f32 / 9.0 - 1.0)
        .collect()
}

/// A folder with `m.onnx`, four samples in `data` and nothing else.
fn prepared(test: &str) -> PathBuf {
    let folder = folder(test);
    save(&folder, "m.onnx", &convolution());
    fs::create_dir(folder.join("data")).unwrap();
    for i in 0..4 {
        fs::write(
            folder.join(format!("data/s{i}.npz")),
            npz("x", &[1, 3, 4, 4], &sample(i)),
        )
        .unwrap();
    }
    folder
}

const QUANTIZE: [&str; 6] = ["quantize", "m.onnx", "--calib", "data", "--out", "q.onnx"];

#[test]
fn a_model_and_samples_become_a_quantized_model_and_a_report() {
    let folder = prepared("works");
    fs::write(folder.join("data/labels.csv"), "s0,1").unwrap();
    let output = octet(&folder, &[&QUANTIZE[..], &["--report", "r.yaml"]].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let model = ModelProto::decode(fs::read(folder.join("q.onnx")).unwrap().as_slice()).unwrap();
    let graph = model.graph.unwrap();
    assert!(
        graph
            .node
            .iter()
            .any(|n| n.op_type.as_deref() == Some("QuantizeLinear"))
    );
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    for part in [
        "memory_usage:",
        "\"Calibration End\"",
        "\"End\"",
        "\nmodel:",
        "\nquantization:",
    ] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
    let left: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn the_result_is_the_same_for_any_number_of_threads_and_from_saved_ranges() {
    let folder = prepared("same");
    let run = |more: &[&str]| {
        let output = octet(&folder, &[&QUANTIZE[..], more].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        fs::read(folder.join("q.onnx")).unwrap()
    };
    let one = run(&["--threads", "1", "--save-ranges", "ranges.json"]);
    assert!(one == run(&["--threads", "3"]));
    let out = octet(
        &folder,
        &[
            "quantize",
            "m.onnx",
            "--ranges",
            "ranges.json",
            "--out",
            "again.onnx",
        ],
    );
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert!(one == fs::read(folder.join("again.onnx")).unwrap());
    assert!(one != run(&["--activations", "i8"]));
    assert!(one != run(&["--per-tensor"]));
    assert!(one != run(&["--keep-float", "relu"]));
}

#[test]
fn weights_beside_the_model_are_found_by_themselves() {
    let folder = prepared("external");
    let output = octet(&folder, &QUANTIZE);
    assert!(output.status.success());
    let inline = fs::read(folder.join("q.onnx")).unwrap();
    let (model, weights) = models::external("weights.bin");
    save(&folder, "m.onnx", &model);
    refused(
        &folder,
        &QUANTIZE,
        &["m.onnx", "weights.bin", "beside the model"],
    );
    fs::write(folder.join("weights.bin"), weights).unwrap();
    let output = octet(&folder, &QUANTIZE);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(inline == fs::read(folder.join("q.onnx")).unwrap());
}

#[test]
fn weights_outside_the_models_folder_are_not_read() {
    let folder = prepared("outside");
    let (model, weights) = models::external("../weights.bin");
    save(&folder, "m.onnx", &model);
    fs::write(folder.join("../weights.bin"), weights).unwrap();
    refused(&folder, &QUANTIZE, &["outside", "../weights.bin"]);
}

#[test]
fn inspect_tells_what_is_in_a_model() {
    let folder = prepared("inspect");
    let output = octet(&folder, &["inspect", "m.onnx"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for part in ["m.onnx", "opset 13", "input x: float32", "Conv 1", "Relu 1"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let output = octet(&folder, &["inspect", "m.onnx", "--json"]);
    let card: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(card["opset"], 13);
    fs::write(folder.join("empty.onnx"), []).unwrap();
    refused(
        &folder,
        &["inspect", "empty.onnx"],
        &["empty.onnx", "empty"],
    );
}

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
            &["quantize", &file, "--calib", "data", "--out", "q.onnx"],
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
        refused(&folder, &QUANTIZE, &[&["data/s2.npz"], words].concat());
    }
    assert!(!folder.join("q.onnx").exists());
}

#[test]
fn what_is_converted_in_a_sample_is_said() {
    let folder = prepared("converted");
    let array = npy("<f8", "(1, 3, 4, 4)", &[0.5f64.to_le_bytes(); 48].concat());
    fs::write(folder.join("data/s0.npz"), models::zip("picture", &array)).unwrap();
    let output = octet(&folder, &QUANTIZE);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    for part in [
        "note: data/s0.npz",
        "float64",
        "\"picture\" is taken for input \"x\"",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn no_samples_and_foreign_files_are_refused() {
    let folder = prepared("no-samples");
    fs::create_dir(folder.join("none")).unwrap();
    let with = |path: &'static str| ["quantize", "m.onnx", "--calib", path, "--out", "q.onnx"];
    refused(&folder, &with("none"), &["none: no samples", ".npz"]);
    refused(&folder, &with("gone"), &["gone", "check the path"]);
    fs::write(folder.join("none/labels.csv"), "a,b").unwrap();
    refused(&folder, &with("none"), &["none: no samples", ".npz"]);
    refused(
        &folder,
        &with("none/labels.csv"),
        &["none/labels.csv", ".npz"],
    );
    fs::write(folder.join("none/photo.webp"), "").unwrap();
    refused(&folder, &with("none"), &["none/photo.webp", ".npz"]);
    refused(
        &folder,
        &["quantize", "m.onnx", "--out", "q.onnx"],
        &["--calib"],
    );
}

#[test]
fn options_that_are_not_there_are_refused_with_what_is() {
    let folder = prepared("options");
    let cases: [(&[&str], &[&str]); 11] = [
        (
            &["--method", "percentile:x"],
            &["percentile:x", "percentile:99.99"],
        ),
        (&["--method", "magic"], &["--method", "magic", "minmax"]),
        (&["--weights", "i9"], &["i9", "u4"]),
        (&["--scheme", "magic"], &["not known", "static"]),
        (&["--scheme", "dynamic"], &["--calib", "leave them out"]),
        (&["--format", "onnx"], &["not known", "qdq"]),
        (&["--activations", "i32"], &["i32", "u8, i8"]),
        (&["--threads", "0"], &["--threads 0"]),
        (&["--mean", "1,2"], &["--mean 1,2"]),
        (&["--keep-float", "nowhere"], &["nowhere"]),
        (&["--speed"], &["--speed", "--help"]),
    ];
    for (more, words) in cases {
        refused(&folder, &[&QUANTIZE[..], more].concat(), words);
    }
    fs::write(folder.join("r.json"), r#"{"x": [2, 1]}"#).unwrap();
    let with_ranges = [
        "quantize", "m.onnx", "--ranges", "r.json", "--out", "q.onnx",
    ];
    refused(&folder, &with_ranges, &["r.json", "from 2 to 1"]);
    fs::write(folder.join("r.json"), "{}").unwrap();
    refused(&folder, &with_ranges, &["no range"]);
}

#[test]
fn the_model_is_never_overwritten_by_its_result() {
    let folder = prepared("itself");
    let before = fs::read(folder.join("m.onnx")).unwrap();
    let same = [
        "quantize",
        "m.onnx",
        "--calib",
        "data",
        "--out",
        "./data/../m.onnx",
    ];
    refused(&folder, &same, &["the model itself"]);
    refused(
        &folder,
        &[
            "quantize",
            "m.onnx",
            "--calib",
            "data",
            "--out",
            "no/q.onnx",
        ],
        &["folder does not exist"],
    );
    assert_eq!(before, fs::read(folder.join("m.onnx")).unwrap());
}

#[test]
fn samples_of_every_kind_of_tensor_file_make_the_same_model() {
    let folder = prepared("kinds");
    let made = |calib: &str, out: &str| {
        let output = octet(
            &folder,
            &["quantize", "m.onnx", "--calib", calib, "--out", out],
        );
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        fs::read(folder.join(out)).unwrap()
    };
    let wanted = made("data", "npz.onnx");
    fs::create_dir(folder.join("arrays")).unwrap();
    for i in 0..4 {
        let values = sample(i);
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        fs::write(
            folder.join(format!("arrays/s{i}.npy")),
            npy("<f4", "(1, 3, 4, 4)", &bytes),
        )
        .unwrap();
        let set = folder.join(format!("sets/test_data_set_{i}"));
        fs::create_dir_all(&set).unwrap();
        let tensor = TensorProto::from_f32("x", &[1, 3, 4, 4], &values);
        fs::write(set.join("input_0.pb"), tensor.encode_to_vec()).unwrap();
    }
    assert!(made("arrays", "npy.onnx") == wanted);
    assert!(made("sets", "pb.onnx") == wanted);
}

#[test]
fn pictures_are_samples_and_png_and_jpeg_may_be_mixed() {
    let folder = prepared("pictures");
    fs::create_dir(folder.join("pictures")).unwrap();
    for (index, name) in ["a.png", "b.png", "c.jpg"].iter().enumerate() {
        let shade = |x: u32, y: u32| image::Rgb([(x * 60) as u8, (y * 60) as u8, 80 * index as u8]);
        let picture = image::RgbImage::from_fn(8, 6, shade);
        picture.save(folder.join("pictures").join(name)).unwrap();
    }
    let output = octet(
        &folder,
        &[
            "quantize", "m.onnx", "--calib", "pictures", "--out", "q.onnx", "--report", "r.yaml",
        ],
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    assert!(report.contains("samples: 3"), "{report}");
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
    let said = refusal(&output);
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
        "--calib",
        "data",
        "--out",
        "/dev/full",
    ];
    refused(
        &folder,
        &full,
        &["/dev/full", "bytes", "no space left", "free some space"],
    );

    // A limit on the size of files stands for a disk that fills while the model is written.
    fs::write(folder.join("q.onnx"), "what was there before").unwrap();
    let command = format!(
        "trap '' XFSZ; ulimit -f 0; exec '{}' {}",
        env!("CARGO_BIN_EXE_octet"),
        QUANTIZE.join(" ")
    );
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = refusal(&output);
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
    fs::write(folder.join("data/s9.npz"), "broken").unwrap();
    refused(
        &folder,
        &[&QUANTIZE[..], &["--report", "r.yaml", "--threads", "1"]].concat(),
        &["s9.npz"],
    );
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    assert!(
        report.contains("\"Calibration Start\"") && report.contains("\nmodel:"),
        "{report}"
    );
}
