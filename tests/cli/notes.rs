//! Notes beside the result: models that grew, shortened lists of notes, suggestions for misspelt
//! names, and exit codes.

use std::fs;

use octet::onnx::schema::{AttributeProto, NodeProto, TensorProto};

use super::models::convolution;
use super::{QUANTIZE, folder, good, misused, prepared, save, schema};

#[test]
fn a_model_that_grows_is_said_with_what_to_choose() {
    let folder = prepared("grows");
    let (printed, said) = good(&folder, &[&QUANTIZE[..], &["--report", "r.yaml"]].concat());
    let share = printed.split(" bytes, ").nth(1).unwrap();
    let share: f64 = share.split(' ').next().unwrap().parse().unwrap();
    assert!(share > 100.0, "{printed}");
    let advice = said.lines().next().unwrap();
    assert!(
        advice.contains("note: the model grew from") && advice.contains("float16"),
        "{said}"
    );
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    assert!(report.contains("the model grew from"), "{report}");
}

#[test]
fn a_table_that_stays_float_in_blocks_is_named() {
    let folder = folder("table");
    let mut model = convolution();
    let graph = model.graph.as_mut().unwrap();
    // A lookup table of 64 kB and a MatMul weight of 16 kB.
    graph.initializer = vec![
        TensorProto::from_f32("table", &[256, 64], &[0.25; 256 * 64]),
        TensorProto::from_f32("weight", &[64, 64], &[0.5; 64 * 64]),
    ];
    let port = &mut graph.input[0];
    *port = octet::onnx::schema::ValueInfoProto::new(
        "ids",
        &octet::graph::TensorType {
            element: octet::onnx::schema::DataType::Int64,
            shape: Some(vec![octet::graph::Dim::Known(4)]),
        },
    );
    graph.node = vec![
        NodeProto::new("Gather", "look", &["table", "ids"], &["rows"])
            .with(AttributeProto::int("axis", 0)),
        NodeProto::new("MatMul", "product", &["rows", "weight"], &["y"]),
    ];
    graph.output[0] = octet::onnx::schema::ValueInfoProto::new(
        "y",
        &octet::graph::TensorType {
            element: octet::onnx::schema::DataType::Float,
            shape: Some(vec![
                octet::graph::Dim::Known(4),
                octet::graph::Dim::Known(64),
            ]),
        },
    );
    save(&folder, "m.onnx", &model);
    let (printed, said) = good(&folder, &["quantize", "m.onnx", "--scheme", "blocks"]);
    assert!(printed.starts_with("m_q4.onnx: "), "{printed}");
    assert!(
        said.contains(
            "% of the bytes stay float32, most of them embedding tables (`table`, 65.5 kB)"
        ) && said.contains("choose the scheme weights or dynamic"),
        "{said}"
    );
    let (_, said) = good(&folder, &["quantize", "m.onnx", "--scheme", "weights"]);
    assert!(!said.contains("stay float32"), "{said}");
}

#[test]
fn halves_are_not_told_as_integers() {
    let folder = prepared("halves");
    let halves = [
        "quantize", "m.onnx", "--scheme", "float16", "--report", "r.yaml",
    ];
    let (printed, _) = good(&folder, &halves);
    assert!(
        printed.contains("; 2 of 2 operators in half precision"),
        "{printed}"
    );
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    schema::check(&report);
    assert!(
        report.contains("nodes_quantized: 0") && report.contains("nodes_float16: 2"),
        "{report}"
    );
    let (printed, _) = good(&folder, &QUANTIZE);
    assert!(
        printed.contains("; 2 of 2 operators in integer arithmetic"),
        "{printed}"
    );
    let report = ["--report", "r.yaml"];
    good(&folder, &[&QUANTIZE[..], &report].concat());
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    assert!(report.contains("nodes_quantized: 2") && !report.contains("nodes_float16"));
}

#[test]
fn equal_notes_are_one_line_and_all_are_told_when_asked_for() {
    let folder = prepared("many-notes");
    let absent = [
        "Abs", "Acos", "Asin", "Atan", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu",
        "Log", "Neg", "Round", "Selu", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh",
    ];
    let each = absent
        .map(|name| format!("  {name}: {{float: true}}\n"))
        .concat();
    fs::write(folder.join("s.yaml"), format!("by_operator:\n{each}")).unwrap();
    let with = [&QUANTIZE[..], &["--config", "s.yaml", "--report", "r.yaml"]].concat();
    let (_, said) = good(&folder, &with);
    assert!(said.lines().count() <= 5, "{said}");
    assert!(said.contains("(and 21 more like it)"), "{said}");
    assert!(
        said.contains("--verbose") && said.contains("--report"),
        "{said}"
    );
    let (_, said) = good(&folder, &[&with[..], &["--verbose"]].concat());
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    for name in absent {
        assert!(said.contains(&format!("the operator `{name}`")), "{said}");
        assert!(
            report.contains(&format!("the operator `{name}`")),
            "{report}"
        );
    }
}

#[test]
fn a_name_that_is_nearly_right_is_offered() {
    let folder = prepared("meant");
    misused(
        &folder,
        &["quantise", "m.onnx"],
        &["`quantise`", "did you mean quantize?"],
    );
    misused(
        &folder,
        &["quantize", "m.onnx", "--sample", "data"],
        &["'--sample'", "did you mean --samples?"],
    );
    misused(
        &folder,
        &["run", "m.onnx", "--samples", "data", "--group", "operators"],
        &["did you mean operator?"],
    );
}

#[test]
fn the_help_tells_the_codes() {
    let folder = prepared("codes");
    let (help, _) = good(&folder, &["--help"]);
    for line in [
        "  2   an invalid command line",
        "  3   an invalid model, sample",
        "  70  ",
    ] {
        assert!(help.contains(line), "{help}");
    }
}
