//! Small valid models of one to three operators of all kinds.

use octet_onnx::schema::*;

use crate::{RandomChoice, constant, node, typed_value};

/// The value of an attribute.
#[derive(Clone, Copy)]
pub enum AttributeChoice {
    /// An integer.
    Int(i64),
    /// A list of integers.
    Ints(&'static [i64]),
    /// A float.
    Float(f32),
    /// A text.
    Text(&'static str),
}
use AttributeChoice::{Float, Int, Ints, Text};

type Attributes = &'static [(&'static str, AttributeChoice)];

/// Operators with their inputs; `v` has four channels of 6×6.
pub const OPERATORS: &[(&str, &[&str], Attributes)] = &[
    (
        "Conv",
        &["v", "w", "b"],
        &[("pads", Ints(&[1, 1, 1, 1])), ("strides", Ints(&[2, 1]))],
    ),
    (
        "Conv",
        &["v", "d"],
        &[
            ("group", Int(4)),
            ("dilations", Ints(&[1, 1])),
            ("kernel_shape", Ints(&[3, 3])),
        ],
    ),
    (
        "ConvTranspose",
        &["v", "w", "b"],
        &[
            ("strides", Ints(&[2, 2])),
            ("output_padding", Ints(&[1, 1])),
            ("pads", Ints(&[1, 1, 1, 1])),
        ],
    ),
    ("MatMul", &["v", "m"], &[]),
    ("MatMul", &["v", "v"], &[]),
    (
        "Gemm",
        &["m", "m", "six"],
        &[("alpha", Float(0.5)), ("transB", Int(1))],
    ),
    ("Relu", &["v"], &[]),
    ("Clip", &["v", "low", "high"], &[]),
    ("LeakyRelu", &["v"], &[("alpha", Float(0.1))]),
    ("PRelu", &["v", "channels"], &[]),
    ("HardSigmoid", &["v"], &[("alpha", Float(0.2))]),
    ("Softmax", &["v"], &[("axis", Int(1))]),
    ("ArgMax", &["v"], &[("axis", Int(1)), ("keepdims", Int(0))]),
    ("TopK", &["v", "one"], &[("axis", Int(1))]),
    ("CumSum", &["v", "number"], &[]),
    ("Add", &["v", "channels"], &[]),
    ("Mul", &["v", "v"], &[]),
    ("Div", &["v", "high"], &[]),
    ("Pow", &["v", "high"], &[]),
    ("Where", &["yes", "v", "channels"], &[]),
    ("Concat", &["v", "v"], &[("axis", Int(1))]),
    (
        "MaxPool",
        &["v"],
        &[
            ("kernel_shape", Ints(&[2, 2])),
            ("strides", Ints(&[2, 2])),
            ("ceil_mode", Int(1)),
        ],
    ),
    (
        "AveragePool",
        &["v"],
        &[
            ("kernel_shape", Ints(&[3, 3])),
            ("pads", Ints(&[1, 1, 1, 1])),
            ("count_include_pad", Int(1)),
        ],
    ),
    ("GlobalAveragePool", &["v"], &[]),
    (
        "ReduceMean",
        &["v"],
        &[("axes", Ints(&[2, 3])), ("keepdims", Int(0))],
    ),
    ("ReduceSum", &["v", "axes"], &[]),
    ("Reshape", &["v", "shape"], &[("allowzero", Int(0))]),
    ("Flatten", &["v"], &[("axis", Int(2))]),
    ("Transpose", &["v"], &[("perm", Ints(&[0, 2, 3, 1]))]),
    ("Squeeze", &["v", "none"], &[]),
    ("Unsqueeze", &["v", "axes"], &[]),
    ("Expand", &["v", "size"], &[]),
    ("Tile", &["v", "size"], &[]),
    ("Slice", &["v", "one", "three", "axes", "one"], &[]),
    ("Split", &["v", "halves"], &[("axis", Int(1))]),
    ("Gather", &["v", "axes"], &[("axis", Int(1))]),
    ("Pad", &["v", "pads", "low"], &[("mode", Text("constant"))]),
    ("Pad", &["v", "pads"], &[("mode", Text("reflect"))]),
    (
        "Resize",
        &["v", "", "scales"],
        &[("mode", Text("nearest")), ("nearest_mode", Text("floor"))],
    ),
    (
        "Resize",
        &["v", "", "", "size"],
        &[("mode", Text("linear"))],
    ),
    (
        "DepthToSpace",
        &["v"],
        &[("blocksize", Int(2)), ("mode", Text("CRD"))],
    ),
    ("SpaceToDepth", &["v"], &[("blocksize", Int(2))]),
    (
        "BatchNormalization",
        &["v", "b", "b", "b", "b"],
        &[("epsilon", Float(1e-5))],
    ),
    (
        "InstanceNormalization",
        &["v", "b", "b"],
        &[("epsilon", Float(1e-5))],
    ),
    (
        "LayerNormalization",
        &["v", "six", "six"],
        &[("axis", Int(-1))],
    ),
    (
        "LpNormalization",
        &["v"],
        &[("axis", Int(-1)), ("p", Int(2))],
    ),
    ("LRN", &["v"], &[("size", Int(3))]),
    ("Shape", &["v"], &[("start", Int(1))]),
    ("Cast", &["v"], &[("to", Int(7))]),
    (
        "Einsum",
        &["v", "m"],
        &[("equation", Text("abij,jk->abik"))],
    ),
    (
        "LSTM",
        &["m3", "lstm", "lstm_r"],
        &[("hidden_size", Int(3)), ("direction", Text("forward"))],
    ),
    (
        "GRU",
        &["m3", "gru", "gru_r"],
        &[("hidden_size", Int(3)), ("linear_before_reset", Int(1))],
    ),
    (
        "QuantizeLinear",
        &["v", "high", "byte"],
        &[("axis", Int(1))],
    ),
    (
        "DequantizeLinear",
        &["bytes", "b", "zeros"],
        &[("axis", Int(0))],
    ),
    (
        "ScatterElements",
        &["v", "places", "v"],
        &[("axis", Int(1))],
    ),
    ("GatherElements", &["v", "places"], &[("axis", Int(1))]),
    ("GatherND", &["v", "axes"], &[("batch_dims", Int(0))]),
    ("OneHot", &["axes", "number", "range"], &[("axis", Int(-1))]),
    ("Range", &["number", "number", "number"], &[]),
    ("ConstantOfShape", &["size"], &[]),
    ("NonZero", &["v"], &[]),
    ("Trilu", &["v"], &[("upper", Int(0))]),
    ("Gelu", &["v"], &[("approximate", Text("tanh"))]),
];

/// Makes an attribute with this value.
pub fn attribute(name: &str, value: AttributeChoice) -> AttributeProto {
    match value {
        Int(value) => AttributeProto::int(name, value),
        Ints(values) => AttributeProto::ints(name, values),
        Float(value) => AttributeProto::float(name, value),
        Text(value) => AttributeProto::text(name, value),
    }
}

fn constants() -> Vec<TensorProto> {
    let ints = |name: &str, values: &[i64]| TensorProto::from_i64(name, &[values.len()], values);
    let number = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    vec![
        constant("w", &[4, 4, 3, 3]),
        constant("d", &[4, 1, 3, 3]),
        constant("b", &[4]),
        constant("channels", &[4, 1, 1]),
        constant("m", &[6, 6]),
        constant("six", &[6]),
        constant("m3", &[2, 1, 6]),
        constant("lstm", &[1, 12, 6]),
        constant("lstm_r", &[1, 12, 3]),
        constant("gru", &[1, 9, 6]),
        constant("gru_r", &[1, 9, 3]),
        number("low", -0.5),
        number("high", 2.0),
        TensorProto::from_f32("scales", &[4], &[1.0, 1.0, 2.0, 2.0]),
        TensorProto::from_f32("range", &[2], &[0.0, 1.0]),
        TensorProto::from_raw("yes", DataType::Bool, &[1], vec![1u8].into()),
        TensorProto::from_u8("byte", &[], &[128]),
        TensorProto::from_i8("bytes", &[4, 6], &[3; 24]),
        TensorProto::from_i8("zeros", &[4], &[0; 4]),
        TensorProto::from_i64("number", &[], &[2]),
        TensorProto::from_i64("places", &[1, 1, 6, 6], &[1; 36]),
        ints("one", &[1]),
        ints("none", &[0]),
        ints("three", &[3]),
        ints("axes", &[2]),
        ints("halves", &[1, 3]),
        ints("shape", &[0, -1, 9]),
        ints("size", &[1, 4, 12, 3]),
        ints("pads", &[0, 0, 1, 1, 0, 0, 1, 2]),
    ]
}

/// Makes a model of a convolution, one to three operators in a chain, and a product with a scalar.
pub fn valid_model(random: &mut RandomChoice) -> ModelProto {
    let mut nodes = vec![node("Conv", &["x", "w"], "v0")];
    nodes[0].attribute = vec![attribute("pads", Ints(&[1, 1, 1, 1]))];
    let count = 1 + random.below(3);
    for place in 0..count {
        let (operator, inputs, value) = *random.one(OPERATORS);
        let (latest, output) = (format!("v{place}"), format!("v{}", place + 1));
        let inputs: Vec<&str> = inputs
            .iter()
            .map(|&name| if name == "v" { latest.as_str() } else { name })
            .collect();
        let mut next = node(operator, &inputs, &output);
        if operator == "Split" || operator == "TopK" {
            next.output.push(format!("{output}/second"));
        }
        next.attribute = value
            .iter()
            .map(|&(name, value)| attribute(name, value))
            .collect();
        nodes.push(next);
    }
    let last = format!("v{count}");
    nodes.push(node("Mul", &[&last, "high"], "y"));
    let read: Vec<String> = nodes.iter().flat_map(|node| node.input.clone()).collect();
    let graph = GraphProto {
        name: Some("graph".into()),
        node: nodes,
        initializer: constants()
            .into_iter()
            .filter(|tensor| tensor.name.as_ref().is_some_and(|name| read.contains(name)))
            .collect(),
        input: vec![typed_value("x", DataType::Float, &[1, 4, 6, 6])],
        output: vec![ValueInfoProto {
            name: Some("y".into()),
            ..Default::default()
        }],
        ..Default::default()
    };
    ModelProto::from_graph(graph, *random.one(&[11, 13, 17, 18, 21, 23]))
}
