//! `octet doctor`: the machine and the build are described, and a model's fate is told.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{QUANTIZE, good, misused, models, octet, prepared, save};

fn found(folder: &Path, more: &[&str]) -> Value {
    let (printed, said) = good(folder, &[&["doctor", "--json"], more].concat());
    assert_eq!(said, "");
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn the_machine_and_the_build_are_described() {
    let folder = prepared("doctor");
    let (printed, _) = good(&folder, &["doctor"]);
    let starts = ["octet 0.", "processor: ", "memory: ", "disk: ", "kernels: "];
    for words in starts {
        assert!(printed.contains(words), "{words:?} is not in: {printed}");
    }
    assert!(printed.contains("self-check: passed"), "{printed}");
    let found = found(&folder, &["--threads", "3"]);
    assert_eq!(found["threads"], 3);
    assert_eq!(found["optimized"], !cfg!(debug_assertions));
    assert_eq!(found["architecture"], std::env::consts::ARCH);
    assert_eq!(found["selfCheck"]["passed"], true);
    let available = found["selfCheck"]["available"].as_array().unwrap();
    assert!(available.contains(&found["selfCheck"]["kernels"]));
    assert_eq!(found["model"], Value::Null);
    let here = fs::canonicalize(&folder).unwrap();
    assert_eq!(found["disks"][0]["folder"], here.to_str().unwrap());
    if cfg!(target_os = "linux") {
        assert!(found["disks"][0]["free"].as_u64().unwrap() > 0, "{found}");
        assert!(found["freeMemory"].as_u64().unwrap() > 0, "{found}");
    }
    misused(&folder, &["doctor", "--threads", "0"], &["--threads 0"]);
}

#[test]
fn a_models_fate_is_told_as_it_comes_about() {
    let folder = prepared("doctor-model");
    let model = &found(&folder, &["m.onnx"])["model"];
    let bytes = fs::metadata(folder.join("m.onnx")).unwrap().len();
    assert_eq!(model["bytes"], bytes);
    assert_eq!([&model["nodes"], &model["quantizable"]], [2, 2]);
    assert_eq!(model["out"], "m_int8.onnx");
    assert_eq!(
        model["samples"],
        "pictures, or .npz with x (float32 1×3×4×4)"
    );
    let (printed, _) = good(&folder, &["doctor", "m.onnx"]);
    assert!(printed.contains("octet m.onnx SAMPLES would write m_int8.onnx"));
    good(&folder, &["-q", "m.onnx", "data"]);
    let model = &found(&folder, &["m.onnx"])["model"];
    assert_eq!(
        model["notes"][0],
        "m_int8.onnx exists already: name another with --out"
    );
}

#[test]
fn a_model_that_cannot_be_quantized_is_named_after_the_diagnosis() {
    let folder = prepared("doctor-bad");
    good(&folder, &QUANTIZE);
    fs::write(folder.join("noise.onnx"), [0xff; 300]).unwrap();
    save(&folder, "outside.onnx", &models::external("gone.bin").0);
    for (model, words) in [
        ("q.onnx", "quantized already"),
        ("noise.onnx", "again"),
        ("outside.onnx", "gone.bin"),
        ("gone.onnx", "check the path"),
    ] {
        let output = octet(&folder, &["doctor", model]);
        let [printed, said] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.lines().count() == 1 && said.contains(words), "{said}");
        assert!(printed.contains("self-check: passed"), "{printed}");
        let line = printed.lines().last().unwrap();
        assert!(
            line.contains("can't be quantized") && line.contains(words),
            "{line}"
        );
    }
}
