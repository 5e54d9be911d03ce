//! Tests of the tasks of models, by shapes, names and metadata.

use super::*;
use octet_graph::{Dim, TensorType};
use octet_onnx::schema::{
    DataType, GraphProto, ModelProto, NodeProto, StringStringEntryProto, ValueInfoProto,
};

type Port<'a> = (&'a str, DataType, &'a [i64]);
const F: DataType = DataType::Float;
const I: DataType = DataType::Int64;

fn spec(&(name, element, shape): &Port<'_>) -> InputSpec {
    let dim = |&size: &i64| match usize::try_from(size) {
        Ok(size) => Dim::Known(size),
        Err(_) => Dim::Unknown,
    };
    InputSpec {
        name: name.into(),
        element,
        shape: shape.iter().map(dim).collect(),
    }
}

fn guessed(
    file: &str,
    inputs: &[Port<'_>],
    outputs: &[Port<'_>],
    operator: &str,
    metadata: &[(&str, &str)],
) -> TaskGuess {
    let specs: Vec<InputSpec> = inputs.iter().map(spec).collect();
    let ports = |all: &[Port<'_>]| -> Vec<ValueInfoProto> {
        let one = |port| {
            let InputSpec {
                name,
                element,
                shape,
            } = spec(port);
            let shape = Some(shape);
            ValueInfoProto::new(&name, &TensorType { element, shape })
        };
        all.iter().map(one).collect()
    };
    let all: Vec<&str> = inputs.iter().map(|input| input.0).collect();
    let made: Vec<&str> = outputs.iter().map(|output| output.0).collect();
    let graph = GraphProto {
        node: vec![NodeProto::new(operator, "f", &all, &made)],
        input: ports(inputs),
        output: ports(outputs),
        ..GraphProto::default()
    };
    let mut header = ModelProto::from_graph(graph, 13);
    let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
        key: Some((*key).to_owned()),
        value: Some((*value).to_owned()),
    };
    header.metadata_props = metadata.iter().map(entry).collect();
    TaskGuess::new(file, &Model::from_proto(header).unwrap(), &specs)
}

#[test]
fn tasks_follow_from_shapes_names_and_operators() {
    use ModelTask::*;
    let image: Port<'_> = ("x", F, &[1, 3, 224, 224]);
    let ids: Port<'_> = ("input_ids", I, &[-1, -1]);
    let table: &[(&str, &[Port<'_>], Port<'_>, &str, ModelTask, &str)] = &[
        (
            "m.onnx",
            &[image],
            ("y", F, &[1, 1000]),
            "Frob",
            Classifier,
            "scores classes",
        ),
        (
            "m.onnx",
            &[image],
            ("image_embeds", F, &[1, 512]),
            "Frob",
            ImageEncoder,
            "vector",
        ),
        (
            "m.onnx",
            &[image],
            ("y", F, &[1, 84, 8400]),
            "Frob",
            Detector,
            "many boxes",
        ),
        (
            "m.onnx",
            &[image],
            ("y", F, &[-1, 6]),
            "NonMaxSuppression",
            Detector,
            "NonMaxSuppression",
        ),
        (
            "ssd_12.onnx",
            &[image],
            ("y", F, &[1, 9, 9, 9, 4]),
            "Frob",
            Detector,
            "\"ssd\"",
        ),
        (
            "m.onnx",
            &[image],
            ("bboxes", F, &[1, -1, 4]),
            "Frob",
            Detector,
            "\"bboxes\"",
        ),
        (
            "u2net.onnx",
            &[image],
            ("y", F, &[1, 1, 224, 224]),
            "Frob",
            Segmenter,
            "\"u2net\"",
        ),
        (
            "m.onnx",
            &[image],
            ("y", F, &[1, 21, 224, 224]),
            "Frob",
            Segmenter,
            "21 channels",
        ),
        (
            "m.onnx",
            &[image],
            ("y", F, &[1, 3, 448, 448]),
            "Frob",
            ImageToImage,
            "image",
        ),
        (
            "m.onnx",
            &[ids],
            ("last_hidden_state", F, &[-1, -1, 384]),
            "Frob",
            TextEncoder,
            "tokens",
        ),
        (
            "m.onnx",
            &[ids],
            ("logits", F, &[-1, 2]),
            "Frob",
            TextClassifier,
            "classes",
        ),
        (
            "m.onnx",
            &[ids],
            ("logits", F, &[-1, -1, 32_000]),
            "Frob",
            LanguageModel,
            "vocabulary",
        ),
        (
            "whisper.onnx",
            &[("input_features", F, &[1, 80, 3000])],
            ("h", F, &[1, 1500, 384]),
            "Frob",
            Speech,
            "spectrogram",
        ),
        (
            "m.onnx",
            &[("input_values", F, &[-1, -1])],
            ("logits", F, &[-1, -1, 32]),
            "Frob",
            Speech,
            "letters by time",
        ),
        (
            "m.onnx",
            &[("audio", F, &[-1, -1])],
            ("y", F, &[-1, 521]),
            "Frob",
            Audio,
            "waveform",
        ),
        (
            "m.onnx",
            &[("x", F, &[-1, 4])],
            ("y", F, &[-1, 3]),
            "Frob",
            Table,
            "row of numbers",
        ),
        (
            "m.onnx",
            &[("age", F, &[-1, 1]), ("fare", F, &[-1, 1])],
            ("y", F, &[-1]),
            "Frob",
            Table,
            "2 inputs",
        ),
        (
            "m.onnx",
            &[("x", F, &[4, 5, 6])],
            ("y", F, &[4]),
            "Frob",
            Other,
            "neither",
        ),
    ];
    for (file, inputs, output, operator, task, why) in table {
        let found = guessed(file, inputs, &[*output], operator, &[]);
        assert_eq!(found.task, *task, "{file} {inputs:?} {output:?}: {found:?}");
        assert!(found.why.contains(why), "{found:?}");
    }
}

#[test]
fn what_the_metadata_state_is_sure() {
    let image: Port<'_> = ("images", F, &[1, 3, 640, 640]);
    let found = guessed(
        "m.onnx",
        &[image],
        &[("output0", F, &[1, 80])],
        "Frob",
        &[("task", "segment")],
    );
    assert_eq!(
        (found.task, found.certainty),
        (ModelTask::Segmenter, Certainty::Sure)
    );
    let unknown = guessed(
        "m.onnx",
        &[image],
        &[("output0", F, &[1, 80])],
        "Frob",
        &[("task", "win")],
    );
    assert_eq!(unknown.task, ModelTask::Classifier);
}
