//! A session that reads and converts a model piece by piece.
#![allow(clippy::unwrap_used)]

use octet::onnx;
use octet::onnx::schema::{GraphProto, ModelProto, NodeProto, TensorProto};
use octet::quantize::{Scheme, Settings};
use octet::session::{Error, StreamedModel};
use octet::stream::{ConversionStep, SourceIdentity};
use octet_test_models::{typed_value, value};

const SIDE: usize = 160;

/// Two products by matrices of 100 KiB.
fn file() -> Vec<u8> {
    let weight = |name: &str| {
        let values: Vec<f32> = (0..SIDE * SIDE).map(|at| (at % 97) as f32 - 48.0).collect();
        TensorProto::from_f32(name, &[SIDE, SIDE], &values)
    };
    let graph = GraphProto {
        name: Some("g".into()),
        node: vec![
            NodeProto::new("MatMul", "one", &["x", "w"], &["a"]),
            NodeProto::new("Relu", "two", &["a"], &["b"]),
            NodeProto::new("MatMul", "three", &["b", "v"], &["y"]),
        ],
        initializer: vec![weight("w"), weight("v")],
        input: vec![typed_value(
            "x",
            onnx::schema::DataType::Float,
            &[1, SIDE as i64],
        )],
        output: vec![value("y")],
        ..GraphProto::default()
    };
    onnx::write(&ModelProto::from_graph(graph, 17))
        .unwrap()
        .to_vec()
}

fn settings() -> Settings {
    Settings {
        scheme: Scheme::Blocks,
        ..Settings::default()
    }
}

fn identity(name: &str, bytes: usize) -> SourceIdentity {
    SourceIdentity {
        name: name.into(),
        bytes: bytes as u64,
        modified: None,
    }
}

fn read_wanted(model: &mut StreamedModel, file: &[u8]) {
    while let Some(stretch) = model.wanted() {
        let bytes = &file[stretch.offset as usize..stretch.end() as usize];
        model.feed(bytes).unwrap();
    }
}

/// Reads the graph and the small constants.
fn opened(file: &[u8]) -> StreamedModel {
    let mut model = StreamedModel::open(identity("m.onnx", file.len()));
    read_wanted(&mut model, file);
    assert!(model.end_graph().unwrap().is_empty());
    model.attach(Vec::new()).unwrap();
    read_wanted(&mut model, file);
    let summary = model.end_constants().unwrap();
    assert_eq!(summary.bytes, file.len() as u64);
    assert_eq!(summary.parameters, 2 * (SIDE * SIDE) as u64);
    model
}

/// Converts to the end, or until the journal has something new.
fn convert(model: &mut StreamedModel, file: &[u8], to: &mut [u8], until_journal: bool) {
    loop {
        match model.step().unwrap() {
            ConversionStep::Read(_) if until_journal && model.is_journal_old().unwrap() => return,
            ConversionStep::Read(stretch) => {
                let bytes = &file[stretch.offset as usize..stretch.end() as usize];
                model.feed_conversion(bytes).unwrap();
            }
            ConversionStep::Copy { from, offset, .. } => {
                let bytes = &file[from.offset as usize..from.end() as usize];
                to[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            ConversionStep::Write { offset, bytes, .. } => {
                to[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
            ConversionStep::Restart => panic!("blocks are never planned again"),
            ConversionStep::Finished => return,
        }
    }
}

#[test]
fn a_conversion_stops_and_goes_on_in_another_session() {
    let file = file();
    let mut whole = opened(&file);
    let plan = whole.plan(&settings(), 1 << 30).unwrap();
    assert_eq!((plan.nodes, plan.quantized), (3, 2));
    assert_eq!(plan.float.len(), 1);
    assert_eq!(plan.model, "m_q4.onnx");
    assert_eq!(plan.journal, "m_q4.onnx.journal.json");
    assert_eq!(plan.bytes_to_read, (2 * SIDE * SIDE * 4) as u64);
    let mut wanted = vec![0; plan.bytes_to_write as usize];
    convert(&mut whole, &file, &mut wanted, false);

    let mut first = opened(&file);
    first.plan(&settings(), 1 << 30).unwrap();
    let mut bytes = vec![0; wanted.len()];
    convert(&mut first, &file, &mut bytes, true);
    let journal = first.journal().unwrap();
    assert!(!first.is_journal_old().unwrap());

    let mut second = opened(&file);
    second.plan(&settings(), 1 << 30).unwrap();
    second.resume(&journal).unwrap();
    assert_eq!(
        second.progress().unwrap(),
        (plan.bytes_to_read / 2, plan.bytes_to_read)
    );
    convert(&mut second, &file, &mut bytes, false);
    assert!(bytes == wanted);
    let [one, other] = [&mut whole, &mut second].map(|model| model.finish().unwrap());
    assert_eq!(one.0.as_slice().concat(), other.0.as_slice().concat());
    assert_eq!(one.1.weights, other.1.weights);
    let weight = &one.1.weights[0];
    let numbers = (SIDE * SIDE) as u64;
    assert_eq!((&*weight.name, &*weight.form), ("w", "uint8, float32"));
    assert_eq!(weight.bytes_before, numbers * 4);
    assert_eq!(weight.bytes_after, numbers / 2 + numbers / 32 * 4);
    assert_eq!(one.1.float.len(), 1);
    // Each report tells of its own run.
    let half = numbers * 4;
    for (outcome, read) in [(one.1, 2 * half), (other.1, half)] {
        let line = format!("bytes_read: {read}");
        assert!(outcome.report.contains(&line), "{}", outcome.report);
    }

    let other = Settings {
        float: vec!["one".into()],
        ..settings()
    };
    second.plan(&other, 1 << 30).unwrap();
    let error = second.resume(&journal).unwrap_err();
    assert_eq!(error.kind().name(), "journal");
    assert!(error.to_string().contains("other settings"), "{error}");
}

#[test]
fn calls_out_of_order_and_unusable_files_are_errors_with_their_kind() {
    let kind = |error: Error| error.kind().name();
    let file = file();
    let mut model = StreamedModel::open(identity("m.onnx", file.len()));
    assert_eq!(kind(model.attach(Vec::new()).unwrap_err()), "order");
    assert_eq!(kind(model.plan(&settings(), 1).unwrap_err()), "order");
    assert_eq!(kind(model.step().unwrap_err()), "order");
    assert_eq!(kind(model.feed(b"<!doctype html>").unwrap_err()), "model");
    assert_eq!(
        kind(
            StreamedModel::open(identity("m.onnx", 0))
                .end_graph()
                .unwrap_err()
        ),
        "model"
    );

    let mut model = opened(&file);
    assert_eq!(kind(model.step().unwrap_err()), "order");
    let static_one = Settings::default();
    assert_eq!(
        kind(model.plan(&static_one, 1 << 30).unwrap_err()),
        "quantize"
    );
    model.plan(&settings(), 1 << 30).unwrap();
    let ConversionStep::Read(stretch) = model.step().unwrap() else {
        panic!("the first step is a read");
    };
    let short = vec![0; stretch.length as usize - 1];
    let error = model.feed_conversion(&short).unwrap_err();
    assert!(
        error.to_string().contains("m.onnx ended 1 bytes early"),
        "{error}"
    );
    assert_eq!(kind(error), "read");
}

#[test]
fn a_missing_file_of_weights_is_named_and_can_be_given_afterwards() {
    let mut with_data = onnx::read(file().into()).unwrap();
    let graph = with_data.graph.as_mut().unwrap();
    let weight = &mut graph.initializer[0];
    let data = weight.raw_data.take().unwrap();
    weight.data_location = Some(onnx::schema::DataLocation::External as i32);
    let entry = |key: &str, value: &str| onnx::schema::StringStringEntryProto {
        key: Some(key.into()),
        value: Some(value.into()),
    };
    weight.external_data = vec![entry("location", "w.bin")];
    let file = onnx::write(&with_data).unwrap().to_vec();
    let mut model = StreamedModel::open(identity("m.onnx", file.len()));
    read_wanted(&mut model, &file);
    assert_eq!(model.end_graph().unwrap(), ["w.bin"]);
    for (files, words) in [
        (Vec::new(), "w.bin, which is missing"),
        (vec![identity("w.bin", 9)], "w.bin, which has only 9"),
    ] {
        let error = model.attach(files).unwrap_err();
        assert_eq!(error.kind().name(), "external");
        assert!(error.to_string().contains(words), "{error}");
    }
    model.attach(vec![identity("w.bin", data.len())]).unwrap();
    assert_eq!(
        model.end_constants().unwrap().data_files[0].bytes,
        data.len() as u64
    );
}
