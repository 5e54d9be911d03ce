//! Output files and their printed sizes, names of options for samples, and the method that is used.

use std::fs;

use super::models::{self, convolution};
use super::{QUANTIZE, good, misused, prepared, refused, save};

#[test]
fn the_result_goes_beside_the_model_under_a_name_by_scheme() {
    let folder = prepared("names");
    fs::create_dir(folder.join("models")).unwrap();
    save(&folder, "models/net.onnx", &convolution());
    let samples = ["--samples", "data"];
    let cases: [(&[&str], &str); 6] = [
        (&samples, "net_int8.onnx"),
        (&["--samples", "data", "--weights", "u8"], "net_uint8.onnx"),
        (&["--scheme", "dynamic"], "net_quantized.onnx"),
        (&["--scheme", "weights"], "net_weights_int8.onnx"),
        (&["--scheme", "float16"], "net_fp16.onnx"),
        (
            &["--samples", "data", "--format", "qoperator"],
            "net_int8_qoperator.onnx",
        ),
    ];
    for (options, name) in cases {
        let quantize = ["quantize", "models/net.onnx"];
        let (printed, _) = good(&folder, &[&quantize, options].concat());
        assert!(
            printed.starts_with(&format!("models/{name}: ")),
            "{printed}"
        );
        let out = folder.join("models").join(name);
        let made = fs::read(&out).unwrap();
        // Existing files are replaced only if they are named.
        misused(
            &folder,
            &[&quantize, options].concat(),
            &[name, "exists already", "--out"],
        );
        assert!(made == fs::read(&out).unwrap());
    }
    let model = fs::read(folder.join("models/net.onnx")).unwrap();
    let mut before = Vec::new();
    prost::Message::encode(&convolution(), &mut before).unwrap();
    assert!(model == before);
}

#[test]
fn weights_beside_the_model_count_and_are_never_overwritten() {
    let folder = prepared("data-files");
    let (model, weights) = models::external("weights.bin");
    save(&folder, "m.onnx", &model);
    fs::write(folder.join("weights.bin"), &weights).unwrap();
    let all = fs::metadata(folder.join("m.onnx")).unwrap().len() as usize + weights.len();
    let (printed, _) = good(&folder, &QUANTIZE);
    assert!(printed.contains(&format!(" % of {all};")), "{printed}");
    let (card, _) = good(&folder, &["inspect", "m.onnx"]);
    assert!(card.starts_with(&format!("m.onnx: {all} bytes")), "{card}");
    assert!(card.contains("of these 216 in weights.bin"), "{card}");
    let quantize = ["quantize", "m.onnx", "--samples", "data"];
    for option in ["--out", "--report", "--save-ranges", "--save-prepared"] {
        let lost = [
            &quantize[..],
            &["--out", "other.onnx", option, "weights.bin"],
        ]
        .concat();
        let lost = match option {
            "--out" => [&quantize[..], &[option, "weights.bin"]].concat(),
            _ => lost,
        };
        misused(&folder, &lost, &[option, "weights.bin", "model's weights"]);
    }
    assert_eq!(fs::read(folder.join("weights.bin")).unwrap(), weights);
}

#[test]
fn samples_have_one_name_everywhere_and_the_old_ones_are_understood() {
    let folder = prepared("one-name");
    good(&folder, &QUANTIZE);
    for name in ["--samples", "--calib", "--data", "--input"] {
        let out = ["--out", "again.onnx"];
        good(
            &folder,
            &[&["quantize", "m.onnx", name, "data"], &out[..]].concat(),
        );
        good(&folder, &["run", "m.onnx", name, "data/s0.npz"]);
        good(&folder, &["compare", "m.onnx", "q.onnx", name, "data"]);
    }
    let one = fs::read(folder.join("q.onnx")).unwrap();
    assert!(one == fs::read(folder.join("again.onnx")).unwrap());
    for command in ["quantize", "run", "compare"] {
        let (help, _) = good(&folder, &[command, "--help"]);
        assert!(help.contains("--samples <PATH>"), "{help}");
    }
}

#[test]
fn ranges_are_by_auto_where_no_method_is_named() {
    let folder = prepared("default-method");
    let by = |more: &[&str]| {
        let report = ["--report", "r.yaml"];
        good(&folder, &[&QUANTIZE[..], &report, more].concat());
        let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
        (fs::read(folder.join("q.onnx")).unwrap(), report)
    };
    let (plain, report) = by(&[]);
    assert!(report.contains("method: \"auto\""), "{report}");
    assert!(plain == by(&["--method", "auto"]).0);
    let (minmax, report) = by(&["--method", "minmax"]);
    assert!(report.contains("method: \"minmax\"") && minmax != plain);
}

#[test]
fn constants_count_as_parameters_wherever_they_stand() {
    let folder = prepared("constants");
    let count = |folder| {
        let (card, _) = good(folder, &["inspect", "m.onnx"]);
        let line = card.lines().next().unwrap().to_string();
        line.split(", ").nth(1).unwrap().to_string()
    };
    assert_eq!(count(&folder), "56 parameters");
    save(&folder, "m.onnx", &models::of_constants());
    assert_eq!(count(&folder), "56 parameters");
}

#[test]
fn a_picture_that_is_taken_for_a_model_is_named() {
    let folder = prepared("picture");
    let picture = image::RgbImage::from_pixel(8, 8, image::Rgb([9, 8, 7]));
    picture.save(folder.join("cat.png")).unwrap();
    picture.save(folder.join("cat.jpg")).unwrap();
    fs::rename(folder.join("data/s0.npz"), folder.join("s0.npz")).unwrap();
    for (file, what) in [
        ("cat.png", "a PNG picture"),
        ("cat.jpg", "a JPEG picture"),
        ("s0.npz", "NumPy arrays (.npz)"),
    ] {
        let words = [file, what, "not an ONNX model", "--samples"];
        refused(&folder, &["inspect", file], &words);
    }
}
