//! Photos of many sizes for a detector whose height and width are open.

use std::fs;
use std::path::Path;

use octet::graph::{Dim, TensorType};
use octet::onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, StringStringEntryProto,
    TensorProto, ValueInfoProto,
};

use super::{folder, octet, refusal, save, schema};

/// Halves an image five times and joins the last two scales. Height and width must be multiples of
/// 32.
fn detector(metadata: &[(&str, &str)]) -> ModelProto {
    let halve = |at: usize| {
        let (from, name) = match at {
            1 => ("images".to_string(), "c1".to_string()),
            at => (format!("c{}", at - 1), format!("c{at}")),
        };
        NodeProto::new("Conv", &name, &[&from, "w"], &[&name])
            .with(AttributeProto::ints("strides", &[2, 2]))
            .with(AttributeProto::ints("pads", &[1, 1, 1, 1]))
    };
    let open = |name: &str, channels: usize| {
        let shape = vec![
            Dim::Known(1),
            Dim::Known(channels),
            Dim::Named(format!("{name}_h")),
            Dim::Named(format!("{name}_w")),
        ];
        let shape = Some(shape);
        let element = DataType::Float;
        ValueInfoProto::new(name, &TensorType { element, shape })
    };
    let weights: Vec<f32> = (0..81)
        .map(|i| ((i * 11) % 23) as f32 / 40.0 - 0.25)
        .collect();
    let mut node: Vec<NodeProto> = (1..=5).map(halve).collect();
    node.push(
        NodeProto::new("Resize", "up", &["c5", "", "twice"], &["u"])
            .with(AttributeProto::text("mode", "nearest"))
            .with(AttributeProto::text(
                "coordinate_transformation_mode",
                "asymmetric",
            ))
            .with(AttributeProto::text("nearest_mode", "floor")),
    );
    node.push(
        NodeProto::new("Concat", "join", &["u", "c4"], &["boxes"])
            .with(AttributeProto::int("axis", 1)),
    );
    let graph = GraphProto {
        name: Some("g".into()),
        node,
        input: vec![open("images", 3)],
        output: vec![open("boxes", 6)],
        initializer: vec![
            TensorProto::from_f32("w", &[3, 3, 3, 3], &weights),
            TensorProto::from_f32("twice", &[4], &[1.0, 1.0, 2.0, 2.0]),
        ],
        ..GraphProto::default()
    };
    let mut model = ModelProto::from_graph(graph, 13);
    model.ir_version = Some(8);
    model.metadata_props = metadata
        .iter()
        .map(|(key, value)| StringStringEntryProto {
            key: Some(key.to_string()),
            value: Some(value.to_string()),
        })
        .collect();
    model
}

const METADATA: [(&str, &str); 4] = [
    ("author", "Ultralytics"),
    ("task", "detect"),
    ("stride", "32"),
    ("imgsz", "[64, 96]"),
];

fn picture(path: &Path, width: u32, height: u32) {
    let pixel = |x: u32, y: u32| image::Rgb([(x * 3) as u8, (y * 5) as u8, (x * y) as u8]);
    image::RgbImage::from_fn(width, height, pixel)
        .save(path)
        .unwrap();
}

/// `m.onnx`, and `photos` with two images whose sides are multiples of 32, two others, and one
/// truncated file.
fn prepared(test: &str, metadata: &[(&str, &str)]) -> std::path::PathBuf {
    let folder = folder(test);
    save(&folder, "m.onnx", &detector(metadata));
    let photos = folder.join("photos");
    fs::create_dir(&photos).unwrap();
    for (name, width, height) in [("a", 96, 64), ("b", 64, 128), ("c", 90, 100), ("d", 57, 33)] {
        picture(&photos.join(format!("{name}.png")), width, height);
    }
    let whole = photos.join("whole.jpg");
    picture(&whole, 40, 40);
    let bytes = fs::read(&whole).unwrap();
    fs::remove_file(&whole).unwrap();
    fs::write(photos.join("broken.jpg"), &bytes[..bytes.len() / 2]).unwrap();
    folder
}

const QUANTIZE: [&str; 8] = [
    "quantize", "m.onnx", "--calib", "photos", "--out", "q.onnx", "--report", "r.yaml",
];

/// Messages and report of a run that must succeed.
fn done(folder: &Path, more: &[&str]) -> (String, serde_json::Value) {
    let output = octet(folder, &[&QUANTIZE[..], more].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    schema::check(&report);
    (said, serde_yaml_ng::from_str(&report).unwrap())
}

fn skipped(report: &serde_json::Value) -> Vec<&str> {
    let list = report["calibration"]["skipped"].as_array();
    let names = list.into_iter().flatten();
    names.map(|one| one["sample"].as_str().unwrap()).collect()
}

#[test]
fn size_fit_and_values_are_proposed_and_the_broken_photo_is_left_out() {
    let folder = prepared("photos-proposed", &METADATA);
    let (said, report) = done(&folder, &[]);
    for words in [
        "64 high and 96 wide",
        "imgsz",
        "with grey 114 around them",
        "\"unit\"",
        "--image-size",
        "1 of 5 samples were left out: photos/broken.jpg: can't be read: it is truncated",
    ] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
    let image = &report["samples"]["image"];
    assert_eq!(
        (&image["resize"], &image["height"]),
        (&"letterbox".into(), &64.into())
    );
    assert_eq!(report["calibration"]["samples"], 4);
    assert_eq!(skipped(&report), ["photos/broken.jpg"]);
}

#[test]
fn pictures_of_each_format_count_and_an_avif_is_left_out_with_the_conversion() {
    let folder = prepared("photos-formats", &METADATA);
    let photos = folder.join("photos");
    for name in ["e.webp", "f.bmp", "g.gif"] {
        picture(&photos.join(name), 80, 50);
    }
    let avif = b"\0\0\0\x1cftypavif\0\0\0\0avifmif1";
    fs::write(photos.join("h.avif"), avif).unwrap();
    let (said, report) = done(&folder, &[]);
    assert_eq!(report["calibration"]["samples"], 7);
    assert_eq!(skipped(&report), ["photos/broken.jpg", "photos/h.avif"]);
    for words in ["it is AVIF", "magick IN.avif OUT.png"] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
}

#[test]
fn options_and_the_document_count_over_what_is_proposed() {
    let folder = prepared("photos-said", &METADATA);
    fs::write(
        folder.join("s.yaml"),
        "images: {preset: signed, resize: exact, pad: 7}\n",
    )
    .unwrap();
    let (_, report) = done(
        &folder,
        &["--config", "s.yaml", "--image-size", "96x32", "--pad", "9"],
    );
    let image = &report["samples"]["image"];
    let found = [
        &image["resize"],
        &image["height"],
        &image["width"],
        &image["pad"],
    ];
    assert_eq!(
        found,
        [
            &"exact".into(),
            &96.into(),
            &32.into(),
            &serde_json::json!(9)
        ]
    );
    assert_eq!(image["std"], serde_json::json!([127.5, 127.5, 127.5]));
}

#[test]
fn photos_left_as_they_are_run_where_the_model_takes_them() {
    let folder = prepared("photos-none", &[]);
    let (said, report) = done(&folder, &["--resize", "none"]);
    assert_eq!(report["calibration"]["samples"], 2);
    assert_eq!(
        skipped(&report),
        ["photos/broken.jpg", "photos/c.png", "photos/d.png"]
    );
    for words in [
        "3 of 5 samples were left out",
        "[1, 3, 100, 90]",
        "Concat (node `join`)",
    ] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
}

#[test]
fn a_size_that_the_model_refuses_ends_the_run_with_the_reason() {
    let folder = prepared("photos-size", &METADATA);
    let output = octet(
        &folder,
        &[&QUANTIZE[..], &["--image-size", "100x96"]].concat(),
    );
    let said = refusal(&output, 3);
    for words in ["photos/a.png", "[1, 3, 100, 96]", "join", "choose a size"] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
    assert!(!folder.join("q.onnx").exists());
}

#[test]
fn a_bad_photo_ends_the_run_where_that_is_wanted() {
    let folder = prepared("photos-stop", &METADATA);
    let output = octet(
        &folder,
        &[&QUANTIZE[..], &["--bad-samples", "stop"]].concat(),
    );
    assert!(refusal(&output, 3).contains("photos/broken.jpg"));
}
