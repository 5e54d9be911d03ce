//! Contract of the command line. Good input gives a model and a report. Bad input gives an exit
//! code by the kind of failure, and one line with the problem, its place, its cause and the next
//! step. No file is lost.
#![allow(clippy::unwrap_used)]
#![cfg(feature = "cli")]

mod comparison;
mod completions;
mod conventions;
mod doctor;
mod example;
mod files;
mod journal;
mod models;
mod notes;
mod photos;
mod profile;
mod refusals;
mod rows_and_sound;
mod schema;
mod search;
mod shard_refusals;
mod shards;
mod snippets;
mod stages;
mod texts;
mod verify;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use models::{convolution, npz};
use octet::onnx::schema::{ModelProto, TensorProto};
use octet_test_models::npy;
use prost::Message;

/// An empty folder for one test.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("cli")
        .join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Runs the program. The lines of its stages are left out; `stages.rs` tests them.
fn octet(folder: &Path, arguments: &[&str]) -> Output {
    without_stages(with_stages(folder, arguments))
}

fn without_stages(mut output: Output) -> Output {
    let said = String::from_utf8(output.stderr).unwrap();
    let others = said.lines().filter(|line| !stages::is_stage(line));
    output.stderr = others
        .flat_map(|line| [line, "\n"])
        .collect::<String>()
        .into();
    output
}

fn with_stages(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_octet"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The line with which the program ended; the exit code must match.
#[track_caller]
fn refusal(output: &Output, code: i32) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        output.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    said
}

/// Expects that an input file is refused.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    ended(folder, arguments, 3, words);
}

/// Expects that the arguments or settings are refused.
#[track_caller]
fn misused(folder: &Path, arguments: &[&str], words: &[&str]) {
    ended(folder, arguments, 2, words);
}

#[track_caller]
fn ended(folder: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    let said = refusal(&octet(folder, arguments), code);
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

/// Standard output and standard error of a call that must succeed.
#[track_caller]
fn good(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = octet(folder, arguments);
    let [printed, said] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{said}");
    (printed, said)
}

fn save(folder: &Path, name: &str, model: &ModelProto) {
    fs::write(folder.join(name), model.encode_to_vec()).unwrap();
}

/// Values of a sample.
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

const QUANTIZE: [&str; 6] = ["quantize", "m.onnx", "--samples", "data", "--out", "q.onnx"];

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
    // Two notes: the small model grew, and a hint for other machines.
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("VNNI") && said.contains("grew") && said.lines().count() == 2,
        "{said}"
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
        good(&folder, &[&QUANTIZE[..], more].concat());
        fs::read(folder.join("q.onnx")).unwrap()
    };
    assert!(run(&["--threads", "1"]) == run(&["--threads", "3"]));
    // Ranges alone don't reproduce the other effects of auto.
    let minmax = ["--method", "minmax"];
    let one = run(&[&minmax[..], &["--save-ranges", "ranges.json"]].concat());
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
    let other = |more: &[&str]| one != run(&[&minmax[..], more].concat());
    assert!(other(&["--activations", "i8"]));
    assert!(other(&["--per-tensor"]));
    assert!(other(&["--keep-float", "relu"]));
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
        "\"picture\" is used for input \"x\"",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn samples_of_every_kind_of_tensor_file_make_the_same_model() {
    let folder = prepared("kinds");
    let made = |calib: &str, out: &str| {
        let output = octet(
            &folder,
            &["quantize", "m.onnx", "--samples", calib, "--out", out],
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
            "quantize",
            "m.onnx",
            "--samples",
            "pictures",
            "--out",
            "q.onnx",
            "--report",
            "r.yaml",
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
