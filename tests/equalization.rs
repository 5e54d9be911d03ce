//! Sessions with equalization.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use octet::onnx::schema::{DataType, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use octet::prepare::equalize::ChannelFactors;
use octet::quantize::{Format, Scheme, Settings};
use octet::samples::{self, Encoded};
use octet::session::{
    Error, ErrorKind, ModelFile, OrderError, QuantizationResult, Session, compare_sample,
};
use octet::stats::{Method, Range};

use octet::graph::{Dim, Model, TensorType};
use octet_test_models::equalizable::{SHAPE, conv, conv_constants};
use octet_test_models::{node, npy, numbers};

const SAMPLES: u64 = 9;

/// Three convolutions with nodes between them.
fn file(between: &str) -> Vec<u8> {
    let typed = |name: &str, shape: &[usize]| {
        let found = TensorType {
            element: DataType::Float,
            shape: Some(shape.iter().copied().map(Dim::Known).collect()),
        };
        ValueInfoProto::new(name, &found)
    };
    let nodes: Vec<NodeProto> = vec![
        conv("x", "first", "a"),
        node(between, &["a"], "b"),
        conv("b", "second", "c"),
        node(between, &["c"], "d"),
        conv("d", "last", "y"),
    ];
    let constants: Vec<TensorProto> = [
        conv_constants("first", &[6, 4, 3, 3]),
        conv_constants("second", &[8, 6, 1, 1]),
        conv_constants("last", &[3, 8, 1, 1]),
    ]
    .concat();
    let graph = octet::onnx::schema::GraphProto {
        name: Some("graph".into()),
        node: nodes,
        initializer: constants,
        input: vec![typed("x", &SHAPE)],
        output: vec![typed("y", &[1, 3, 4, 4])],
        ..Default::default()
    };
    octet::onnx::write(&ModelProto::from_graph(graph, 17)).unwrap()
}

fn session(between: &str) -> Session {
    Session::open(ModelFile::new("model.onnx", file(between).into())).unwrap()
}

fn sample(index: u64) -> Encoded {
    let values = numbers(50 + index, SHAPE.iter().product());
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    Encoded {
        name: format!("sample {index}"),
        parts: vec![("x.npy".into(), npy("<f4", "(1, 4, 6, 6)", &bytes).into())],
    }
}

/// Feeds all samples in portions of this size.
fn feed(session: &mut Session, portion: usize) {
    let all: Vec<Encoded> = (0..SAMPLES).map(sample).collect();
    for some in all.chunks(portion) {
        session.feed(some.to_vec(), &()).unwrap();
    }
}

/// Calibrates with as many passes as needed. Returns their number.
fn calibrate(session: &mut Session, equalize: Option<f32>, portion: usize) -> usize {
    session.equalize(equalize);
    session
        .begin_calibration(samples::SampleSettings::default())
        .unwrap();
    feed(session, portion);
    let mut passes = 1;
    while session.begin_extra_pass(Method::MinMax, false).unwrap() {
        feed(session, portion);
        passes += 1;
    }
    session.finish_calibration(Method::MinMax).unwrap();
    passes
}

fn settings(equalize: Option<f32>) -> Settings {
    Settings {
        equalize,
        ..Settings::default()
    }
}

fn bytes(outcome: &QuantizationResult) -> Vec<u8> {
    outcome.model.as_slice().concat()
}

fn factors(file: Vec<u8>) -> ChannelFactors {
    let model = Model::from_proto(octet::onnx::read(file.into()).unwrap()).unwrap();
    ChannelFactors::from_metadata(&model).unwrap()
}

#[test]
fn channels_are_made_alike_between_two_passes_and_the_file_remembers_it() {
    let mut session = session("Relu");
    assert_eq!(calibrate(&mut session, Some(0.5), 4), 2);
    let outcome = session.quantize(&settings(Some(0.5))).unwrap();
    let (values, least, greatest) = factors(bytes(&outcome)).extent();
    assert!(
        values == 2 && least < 1.0 && greatest > 1.0,
        "{values} {least} {greatest}"
    );
    let note = outcome.summary.notes.last().unwrap();
    assert!(
        note.contains("equalization scaled the output channels of 2 layers"),
        "{note}"
    );
    let prepared = session.prepared().unwrap().as_slice().concat();
    assert_eq!(factors(prepared), factors(bytes(&outcome)));
    assert!(session.report().contains("equalize: 0.5"));
    // No setting but `equalize` needs a new calibration.
    let qoperator = Settings {
        format: Format::QOperator,
        ..settings(Some(0.5))
    };
    session.quantize(&qoperator).unwrap();
    for other in [None, Some(0.7)] {
        let refused = session.quantize(&settings(other)).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Order);
        assert!(matches!(
            refused,
            Error::Order(OrderError::OtherEqualization { .. })
        ));
        assert!(
            refused
                .to_string()
                .contains("calibrate again with these settings"),
            "{refused}"
        );
    }
    assert_eq!(calibrate(&mut session, None, 4), 1);
    assert_eq!(
        factors(bytes(&session.quantize(&settings(None)).unwrap()))
            .extent()
            .0,
        0
    );
    assert!(session.quantize(&settings(Some(0.5))).is_err());
}

#[test]
fn other_schemes_are_of_the_model_as_it_came() {
    let dynamic = Settings {
        scheme: Scheme::Dynamic,
        ..settings(None)
    };
    let plain = bytes(&session("Relu").quantize(&dynamic).unwrap());
    let mut after = session("Relu");
    calibrate(&mut after, Some(0.5), 9);
    assert!(bytes(&after.quantize(&dynamic).unwrap()) == plain);
    // The setting has no effect there, and a note says so.
    let said = Settings {
        equalize: Some(0.5),
        ..dynamic
    };
    let outcome = after.quantize(&said).unwrap();
    assert!(bytes(&outcome) == plain);
    assert!(
        outcome
            .summary
            .notes
            .iter()
            .any(|note| note.contains("`equalize`")),
        "{:?}",
        outcome.summary.notes
    );
}

#[test]
fn any_portions_and_any_number_of_threads_give_the_same_file() {
    let file = |threads, portion| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut session = session("Relu");
            calibrate(&mut session, Some(0.5), portion);
            bytes(&session.quantize(&settings(Some(0.5))).unwrap())
        })
    };
    let wanted = file(1, 9);
    for (threads, portion) in [(1, 2), (2, 3), (4, 9)] {
        assert!(
            file(threads, portion) == wanted,
            "{threads} threads, portions of {portion}"
        );
    }
}

#[test]
fn a_pass_that_is_left_out_or_of_other_samples_is_refused_and_nothing_is_lost() {
    let mut session = session("Relu");
    session.equalize(Some(0.5));
    session
        .begin_calibration(samples::SampleSettings::default())
        .unwrap();
    assert!(matches!(
        session.begin_extra_pass(Method::MinMax, false),
        Err(Error::NoSamples)
    ));
    feed(&mut session, 9);
    let refused = session.finish_calibration(Method::MinMax).unwrap_err();
    assert!(
        matches!(refused, Error::Order(OrderError::EqualizationPending)),
        "{refused}"
    );
    assert!(session.begin_extra_pass(Method::MinMax, false).unwrap());
    session.feed(vec![sample(0)], &()).unwrap();
    let refused = session.finish_calibration(Method::MinMax).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("completed 1 samples and the first 9"),
        "{refused}"
    );
    assert_eq!(calibrate(&mut session, Some(0.5), 9), 2);
    // Ranges from outside belong to the model without factors.
    let ranges =
        ["x", "a", "b", "c", "d", "y"].map(|name| (name.to_string(), Range::new(-4.0, 4.0)));
    session.set_ranges(BTreeMap::from(ranges)).unwrap();
    assert!(session.quantize(&settings(None)).is_ok());
    assert!(matches!(
        session.quantize(&settings(Some(0.5))),
        Err(Error::Order(OrderError::OtherEqualization { .. }))
    ));
}

#[test]
fn where_no_channels_can_be_made_alike_it_is_said_and_no_pass_is_wasted() {
    let mut session = session("Sigmoid");
    assert_eq!(calibrate(&mut session, Some(0.5), 9), 1);
    let outcome = session.quantize(&settings(Some(0.5))).unwrap();
    let note = outcome.summary.notes.last().unwrap();
    assert!(note.starts_with("equalization changed nothing"), "{note}");
    calibrate(&mut session, None, 9);
    assert!(bytes(&session.quantize(&settings(None)).unwrap()) == bytes(&outcome));
}

#[test]
fn layers_are_compared_with_those_of_the_float_model_of_the_same_channels() {
    let mut made = session("Relu");
    calibrate(&mut made, Some(0.5), 9);
    let quantized = bytes(&made.quantize(&settings(Some(0.5))).unwrap());
    let prepared = made.prepared().unwrap().as_slice().concat();
    let runner = Session::open(ModelFile::new("quantized", quantized.into()))
        .unwrap()
        .runner()
        .unwrap();
    // Float side: the session that quantized, one of the source file, and one of the prepared
    // model.
    let prepared = Session::open(ModelFile::new("prepared", prepared.into())).unwrap();
    for mut float in [made, session("Relu"), prepared] {
        let mut comparing = float.begin_comparison(&runner).unwrap();
        let inputs = float
            .decode(&sample(0), &samples::SampleSettings::default())
            .unwrap();
        compare_sample(&mut comparing, &inputs, None, &()).unwrap();
        let found = comparing.finish();
        assert!(found.layers.len() == 3);
        for layer in &found.layers {
            assert!(
                layer.accumulated.sqnr > 20.0,
                "{}: {}",
                layer.layer,
                layer.accumulated.sqnr
            );
        }
    }
    // The factors of another model don't fit this one.
    let mut other = session("Sigmoid");
    let refused = other.begin_comparison(&runner).err().unwrap();
    assert!(
        refused
            .to_string()
            .contains("use the float model that it was made from"),
        "{refused}"
    );
}
