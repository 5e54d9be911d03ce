use super::*;
use crate::ShapeMismatch;
use octet_graph::TensorType;
use octet_onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, StringStringEntryProto,
    TensorProto, ValueInfoProto,
};

type Shape<'a> = &'a [i64];

fn port(name: &str, element: DataType, shape: Shape<'_>) -> ValueInfoProto {
    let dim = |&size: &i64| match usize::try_from(size) {
        Ok(size) => Dim::Known(size),
        Err(_) => Dim::Unknown,
    };
    let shape = Some(shape.iter().map(dim).collect());
    ValueInfoProto::new(name, &TensorType { element, shape })
}

fn model(graph: GraphProto, metadata: &[(&str, &str)]) -> Model {
    let mut header = ModelProto::from_graph(graph, 13);
    header.metadata_props = metadata
        .iter()
        .map(|(key, value)| StringStringEntryProto {
            key: Some(key.to_string()),
            value: Some(value.to_string()),
        })
        .collect();
    Model::from_proto(header).unwrap()
}

/// A graph of one node with these input and output shapes, for hints that are names.
fn plain(input: (&str, DataType, Shape<'_>), output: Shape<'_>) -> GraphProto {
    GraphProto {
        node: vec![NodeProto::new("Frob", "f", &[input.0], &["out"])],
        input: vec![port(input.0, input.1, input.2)],
        output: vec![port("out", DataType::Float, output)],
        ..GraphProto::default()
    }
}

fn proposed(file: &str, model: &Model) -> Option<Proposal> {
    let input = &model.graph.inputs[0];
    let declared = octet_graph::tensor_type_of(input).unwrap();
    let spec = InputSpec {
        name: input.name.clone().unwrap(),
        element: declared.element,
        shape: declared.shape.unwrap_or_default(),
    };
    Proposal::new(file, model, &[spec])
}

fn reason_for(proposal: &Proposal, part: ProposalPart) -> &Reason {
    proposal
        .reasons
        .iter()
        .find(|reason| reason.of == part)
        .unwrap()
}

const OPEN: Shape<'static> = &[-1, 3, -1, -1];

/// Halves an image five times and joins two scales, as detectors do. Height and width must be
/// multiples of 32.
pub(crate) fn pyramid() -> GraphProto {
    let halve = |at: usize, from: &str| {
        let name = format!("c{at}");
        NodeProto::new("Conv", &name, &[from, "w"], &[&name])
            .with(AttributeProto::ints("strides", &[2, 2]))
            .with(AttributeProto::ints("pads", &[1, 1, 1, 1]))
    };
    let mut nodes = vec![halve(1, "images")];
    nodes.extend((2..=5).map(|at| halve(at, &format!("c{}", at - 1))));
    nodes.push(
        NodeProto::new("Resize", "up", &["c5", "", "twice"], &["u"])
            .with(AttributeProto::text("mode", "nearest")),
    );
    nodes.push(
        NodeProto::new("Concat", "join", &["u", "c4"], &["out"])
            .with(AttributeProto::int("axis", 1)),
    );
    GraphProto {
        node: nodes,
        input: vec![port("images", DataType::Float, OPEN)],
        output: vec![port("out", DataType::Float, &[-1, 6, -1, -1])],
        initializer: vec![
            TensorProto::from_f32("w", &[3, 3, 3, 3], &[0.1; 81]),
            TensorProto::from_f32("twice", &[4], &[1.0, 1.0, 2.0, 2.0]),
        ],
        ..GraphProto::default()
    }
}

#[test]
fn metadata_of_an_ultralytics_export_decide() {
    let graph = plain(("images", DataType::Float, OPEN), &[-1, 84, -1]);
    let metadata = [
        ("author", "Ultralytics"),
        ("imgsz", "[480, 640]"),
        ("stride", "32"),
        ("task", "detect"),
        ("names", "{0: 'a'}"),
    ];
    let proposal = proposed("best.onnx", &model(graph.clone(), &metadata)).unwrap();
    assert_eq!(
        (proposal.preset, proposal.multiple, proposal.open),
        ("unit", 32, true)
    );
    assert_eq!(proposal.image.resize, ResizeMode::Letterbox);
    assert_eq!(
        (proposal.image.height, proposal.image.width),
        (Some(480), Some(640))
    );
    assert_eq!(proposal.image.pad, 114);
    assert!(
        proposal
            .reasons
            .iter()
            .all(|reason| reason.certainty == Certainty::Sure)
    );
    let classify = [
        ("author", "Ultralytics"),
        ("imgsz", "[224, 224]"),
        ("task", "classify"),
    ];
    let proposal = proposed("best.onnx", &model(graph, &classify)).unwrap();
    assert_eq!(proposal.image.resize, ResizeMode::Shorter);
    assert_eq!(proposal.image.shorter_side, Some(224));
}

#[test]
fn a_detector_without_metadata_is_known_by_its_output() {
    for output in [&[-1, 84, 8400][..], &[1, 25200, 85], &[-1, 84, -1]] {
        let graph = plain(("images", DataType::Float, OPEN), output);
        let proposal = proposed("best.onnx", &model(graph, &[])).unwrap();
        assert_eq!(
            (proposal.preset, proposal.image.resize),
            ("unit", ResizeMode::Letterbox)
        );
        assert_eq!(
            (proposal.image.height, proposal.image.width),
            (Some(640), Some(640))
        );
        assert_eq!(
            reason_for(&proposal, ProposalPart::Size).certainty,
            Certainty::Likely
        );
    }
}

#[test]
fn a_detector_with_a_pyramid_of_outputs_takes_stretched_photos() {
    let sized = ("image", DataType::Float, &[1, 3, 416, 416][..]);
    let mut graph = plain(sized, &[1, 2704, 80]);
    for (at, cells) in [2704, 2704, 676, 676, 169, 169]
        .into_iter()
        .enumerate()
        .skip(1)
    {
        let shape = [1, cells, [80, 32][at % 2]];
        let name = format!("f{at}");
        graph
            .node
            .push(NodeProto::new("Frob", &name, &["image"], &[&name]));
        graph.output.push(port(&name, DataType::Float, &shape));
    }
    let proposal = proposed("best.onnx", &model(graph, &[])).unwrap();
    assert_eq!(
        (proposal.preset, proposal.image.resize),
        ("imagenet", ResizeMode::Exact)
    );
}

#[test]
fn hidden_states_are_not_boxes() {
    let graph = plain(("pixel_values", DataType::Float, OPEN), &[-1, 197, 768]);
    let proposal = proposed("model.onnx", &model(graph, &[])).unwrap();
    assert_eq!(
        (proposal.preset, proposal.image.height),
        ("imagenet", Some(224))
    );
    assert_eq!(
        reason_for(&proposal, ProposalPart::Values).certainty,
        Certainty::Guess
    );
}

#[test]
fn names_show_family_and_size() {
    let classes = &[-1, 1000][..];
    for (file, preset, resize, size) in [
        (
            "vit_base_patch16_384.onnx",
            "signed",
            ResizeMode::Exact,
            384,
        ),
        ("resnet50.onnx", "imagenet", ResizeMode::Shorter, 224),
        ("efficientnet_lite0.onnx", "lite", ResizeMode::Shorter, 224),
        ("yolov8n.onnx", "unit", ResizeMode::Letterbox, 640),
        ("yolox_s.onnx", "raw", ResizeMode::Letterbox, 640),
        ("rt-detr-l.onnx", "unit", ResizeMode::Exact, 640),
        ("clip-vit-b32-visual.onnx", "clip", ResizeMode::Shorter, 224),
        // Words that only begin like a family's.
        ("sample.onnx", "imagenet", ResizeMode::Shorter, 224),
        ("vitals.onnx", "imagenet", ResizeMode::Shorter, 224),
    ] {
        let graph = plain(("input", DataType::Float, OPEN), classes);
        let proposal = proposed(file, &model(graph, &[])).unwrap();
        let image = &proposal.image;
        assert_eq!((proposal.preset, image.resize), (preset, resize), "{file}");
        assert_eq!(
            (image.height, image.width),
            (Some(size), Some(size)),
            "{file}"
        );
    }
    let bgr = plain(("images", DataType::Float, OPEN), classes);
    let proposal = proposed("yolox_s.onnx", &model(bgr, &[])).unwrap();
    assert_eq!(proposal.image.order, ChannelOrder::Bgr);
}

#[test]
fn a_fixed_size_needs_no_setting() {
    let graph = plain(("x", DataType::Float, &[1, 3, 320, 256]), &[1, 10]);
    let proposal = proposed("m.onnx", &model(graph, &[])).unwrap();
    assert!(!proposal.open);
    assert_eq!((proposal.image.height, proposal.image.width), (None, None));
    assert_eq!(
        reason_for(&proposal, ProposalPart::Size).certainty,
        Certainty::Sure
    );
}

#[test]
fn inputs_that_take_no_images_have_no_proposal() {
    for (element, shape) in [
        (DataType::Float, &[1, 16][..]),
        (DataType::Int64, &[-1, -1]),
        (DataType::Float, &[4, 3, 8, 8]),
        (DataType::Float, &[1, 7, 8, 8]),
        (DataType::Bool, &[1, 3, 8, 8]),
    ] {
        let graph = plain(("x", element, shape), &[1, 10]);
        assert_eq!(proposed("m.onnx", &model(graph, &[])), None, "{shape:?}");
    }
}

#[test]
fn byte_inputs_stay_raw_and_nhwc_is_recognized() {
    let graph = plain(("x", DataType::Uint8, &[1, -1, -1, 3]), &[1, 10]);
    let proposal = proposed("m.onnx", &model(graph, &[])).unwrap();
    assert_eq!(
        (
            proposal.preset,
            reason_for(&proposal, ProposalPart::Values).certainty
        ),
        ("raw", Certainty::Sure)
    );
    assert_eq!(proposal.image.layout, None);
    let open = plain(("x", DataType::Float, &[-1, -1, -1, -1]), &[1, 10]);
    let proposal = proposed("m.onnx", &model(open, &[])).unwrap();
    assert_eq!(proposal.image.layout, Some(ImageLayout::Nchw));
    assert_eq!(
        reason_for(&proposal, ProposalPart::Layout).certainty,
        Certainty::Guess
    );
}

#[test]
fn a_model_that_divides_by_255_takes_pixels() {
    for (operator, constant, preset) in [
        ("Div", 255.0, "raw"),
        ("Mul", 0.003_921_6, "raw"),
        ("Sub", 127.5, "raw"),
        ("Sub", 0.449, "unit"),
        ("Mul", 2.0, "imagenet"),
    ] {
        let mut graph = plain(("x", DataType::Float, &[1, 3, 8, 8]), &[1, 10]);
        graph.node[0] = NodeProto::new(operator, "first", &["x", "k"], &["out"]);
        graph.initializer = vec![TensorProto::from_f32("k", &[], &[constant])];
        let proposal = proposed("m.onnx", &model(graph, &[])).unwrap();
        assert_eq!(proposal.preset, preset, "{operator} {constant}");
    }
}

#[test]
fn sides_are_multiples_of_the_total_stride() {
    let graph = model(pyramid(), &[]).graph;
    assert_eq!(ShapeMismatch::find(&graph, &[&[1, 3, 96, 160]]), None);
    let refusal = ShapeMismatch::find(&graph, &[&[1, 3, 427, 640]]).unwrap();
    assert_eq!(
        (refusal.operator.as_str(), refusal.node.as_str()),
        ("Concat", "join")
    );
    assert_eq!(refusal.shapes, [vec![1, 3, 28, 40], vec![1, 3, 27, 40]]);
    let proposal = proposed("m.onnx", &model(pyramid(), &[])).unwrap();
    assert_eq!(proposal.multiple, 32);
    // A size in a name is raised to the next multiple.
    let proposal = proposed("m_360.onnx", &model(pyramid(), &[])).unwrap();
    assert_eq!(proposal.image.height, Some(384));
}

#[test]
fn the_only_accepted_size_is_proposed() {
    // Patches of 16 x 16 are added to a table of 24 x 24 positions.
    let conv = NodeProto::new("Conv", "patch", &["pixel_values", "w"], &["p"])
        .with(AttributeProto::ints("strides", &[16, 16]));
    let graph = GraphProto {
        node: vec![
            conv,
            NodeProto::new("Add", "add", &["p", "table"], &["out"]),
        ],
        input: vec![port("pixel_values", DataType::Float, OPEN)],
        output: vec![port("out", DataType::Float, &[-1, 2, 24, 24])],
        initializer: vec![
            TensorProto::from_f32("w", &[2, 3, 16, 16], &[0.1; 1536]),
            TensorProto::from_f32("table", &[1, 2, 24, 24], &[0.1; 1152]),
        ],
        ..GraphProto::default()
    };
    let proposal = proposed("m.onnx", &model(graph, &[])).unwrap();
    assert_eq!(
        (proposal.image.height, proposal.image.width),
        (Some(384), Some(384))
    );
    assert_eq!(
        reason_for(&proposal, ProposalPart::Size).certainty,
        Certainty::Sure
    );
}

#[test]
fn letters_are_not_boxes_and_audio_is_not_an_image() {
    let reader = plain(("image", DataType::Float, &[-1, 3, 60, 160]), &[40, -1, 37]);
    let proposal = proposed("reader.onnx", &model(reader, &[])).unwrap();
    assert_ne!(proposal.image.resize, ResizeMode::Letterbox);
    let sound = plain(("x", DataType::Float, &[-1, 43_844, 1]), &[-1, 172, 88]);
    assert_eq!(proposed("sound.onnx", &model(sound, &[])), None);
}

#[test]
fn a_family_may_be_named_by_two_words() {
    let line = plain(("x", DataType::Float, &[-1, 3, -1, -1]), &[-1, 2]);
    let proposal = proposed("ch_ppocr_mobile_v2.0_cls.onnx", &model(line, &[])).unwrap();
    let image = &proposal.image;
    assert_eq!((image.height, image.width), (Some(48), Some(192)));
    let text = plain(("x", DataType::Float, &[-1, 3, 48, -1]), &[-1, -1, 97]);
    let proposal = proposed("ppocr_rec.onnx", &model(text, &[])).unwrap();
    assert_eq!(
        (proposal.preset, proposal.image.width),
        ("signed", Some(320))
    );
    assert!(
        reason_for(&proposal, ProposalPart::Values)
            .why
            .contains("ppocr+rec"),
        "{:?}",
        proposal.reasons
    );
}

#[test]
fn a_line_of_text_stays_a_line() {
    let graph = plain(("x", DataType::Float, &[-1, 3, 48, -1]), &[-1, -1, 97]);
    let proposal = proposed("reader.onnx", &model(graph, &[])).unwrap();
    assert_eq!(
        (proposal.image.height, proposal.image.width),
        (Some(48), Some(320))
    );
}

#[test]
fn a_proposal_is_described_in_a_sentence() {
    let graph = plain(("images", DataType::Float, OPEN), &[-1, 84, -1]);
    let metadata = [
        ("author", "Ultralytics"),
        ("imgsz", "[640, 640]"),
        ("task", "detect"),
    ];
    let proposal = proposed("best.onnx", &model(graph, &metadata)).unwrap();
    let text = proposal.describe(&proposal.image);
    assert!(
        text.contains("640 high and 640 wide")
            && text.contains("imgsz")
            && text.contains("grey 114"),
        "{text}"
    );
    let own = ImageSettings {
        resize: ResizeMode::None,
        ..proposal.image.clone()
    };
    assert!(
        proposal
            .describe(&own)
            .contains("stay as large as they are")
    );
}
