//! Small networks of common kinds, as exporters write them.

mod control;
mod detectors;
mod transformers;

use octet_graph::{Dim, TensorType};
use octet_onnx::schema::*;

pub use control::{choices, counted, loops};
pub use detectors::{anchors, selection};
pub use transformers::{encoder, patches};

use crate::constant;

/// A graph under construction.
#[derive(Default)]
pub struct Network {
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    inputs: Vec<ValueInfoProto>,
    outputs: Vec<ValueInfoProto>,
}

/// Starts a graph with a float input `x` of these dimensions; an empty text is an unknown
/// dimension.
pub fn network(sizes: &[&str]) -> Network {
    let mut network = Network::default();
    network.input("x", DataType::Float, sizes);
    network
}

impl Network {
    /// Declares an input of this type and these dimensions.
    pub fn input(&mut self, name: &str, element: DataType, sizes: &[&str]) {
        self.inputs.push(declared_value(name, element, sizes));
    }

    /// Adds a node with attributes, named after its first output.
    pub fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: Vec<AttributeProto>,
    ) {
        let node = NodeProto::new(operator, outputs[0], inputs, outputs);
        let node = attributes.into_iter().fold(node, NodeProto::with);
        self.nodes.push(node);
    }

    /// Adds a node with one output and no attributes.
    pub fn plain(&mut self, operator: &str, inputs: &[&str], output: &str) {
        self.node(operator, inputs, &[output], Vec::new());
    }

    /// Adds a convolution with weight and bias; its padding keeps the size at stride 1.
    pub fn conv(&mut self, input: &str, output: &str, weight: [usize; 4], stride: i64, group: i64) {
        let [channels, _, side, _] = weight;
        let [kernel, bias] = [format!("{output}.w"), format!("{output}.b")];
        self.weight(&kernel, &weight);
        self.weight(&bias, &[channels]);
        let pad = (side / 2) as i64;
        let attributes = vec![
            AttributeProto::ints("pads", &[pad; 4]),
            AttributeProto::ints("strides", &[stride; 2]),
            AttributeProto::int("group", group),
        ];
        self.node("Conv", &[input, &kernel, &bias], &[output], attributes);
    }

    /// Adds a MatMul with a constant matrix.
    pub fn linear(&mut self, input: &str, output: &str, depth: usize, width: usize) {
        let matrix = format!("{output}.w");
        self.weight(&matrix, &[depth, width]);
        self.plain("MatMul", &[input, &matrix], output);
    }

    /// Adds a float constant.
    pub fn weight(&mut self, name: &str, sizes: &[usize]) {
        self.constants.push(constant(name, sizes));
    }

    /// Adds a constant list of integers.
    pub fn list(&mut self, name: &str, values: &[i64]) {
        let list = TensorProto::from_i64(name, &[values.len()], values);
        self.constants.push(list);
    }

    /// Adds a constant integer.
    pub fn place(&mut self, name: &str, value: i64) {
        self.constants
            .push(TensorProto::from_i64(name, &[], &[value]));
    }

    /// Adds a constant float.
    pub fn number(&mut self, name: &str, value: f32) {
        self.constants
            .push(TensorProto::from_f32(name, &[], &[value]));
    }

    /// Adds a constant.
    pub fn constant(&mut self, tensor: TensorProto) {
        self.constants.push(tensor);
    }

    /// Declares an output.
    pub fn output(&mut self, name: &str) {
        self.outputs.push(ValueInfoProto {
            name: Some(name.into()),
            ..Default::default()
        });
    }

    /// Reads a dimension of `value` as a one-element tensor, as exporters do: Shape, Gather,
    /// Unsqueeze.
    pub fn size(&mut self, value: &str, axis: i64, output: &str) {
        let [shape, place, number, front] =
            ["shape", "place", "number", "front"].map(|word| format!("{output}.{word}"));
        self.place(&place, axis);
        self.list(&front, &[0]);
        self.plain("Shape", &[value], &shape);
        self.node(
            "Gather",
            &[&shape, &place],
            &[&number],
            vec![AttributeProto::int("axis", 0)],
        );
        self.plain("Unsqueeze", &[&number, &front], output);
    }

    /// Concatenates tensors.
    pub fn concat(&mut self, inputs: &[&str], output: &str, axis: i64) {
        let attributes = vec![AttributeProto::int("axis", axis)];
        self.node("Concat", inputs, &[output], attributes);
    }

    /// The graph.
    pub fn graph(self) -> GraphProto {
        GraphProto {
            name: Some("graph".into()),
            node: self.nodes,
            initializer: self.constants,
            input: self.inputs,
            output: self.outputs,
            ..Default::default()
        }
    }

    /// The graph as a model of opset 17.
    pub fn model(self) -> ModelProto {
        ModelProto::from_graph(self.graph(), 17)
    }
}

/// A value of this type and these dimensions: numbers, names, or unknown.
pub(crate) fn declared_value(name: &str, element: DataType, sizes: &[&str]) -> ValueInfoProto {
    let dim = |size: &&str| match (size.parse(), size.is_empty()) {
        (Ok(size), _) => Dim::Known(size),
        (_, true) => Dim::Unknown,
        _ => Dim::Named((*size).to_owned()),
    };
    let shape = Some(sizes.iter().map(dim).collect());
    ValueInfoProto::new(name, &TensorType { element, shape })
}

/// An image classifier: convolutions, batch norm, pooling, Gemm.
pub fn classifier(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.conv("x", "c1", [8, 3, 3, 3], 1, 1);
    net.plain("Relu", &["c1"], "r1");
    let window = || {
        vec![
            AttributeProto::ints("kernel_shape", &[2, 2]),
            AttributeProto::ints("strides", &[2, 2]),
        ]
    };
    net.node("MaxPool", &["r1"], &["p1"], window());
    net.conv("p1", "c2", [8, 8, 3, 3], 1, 1);
    for name in ["gamma", "beta", "mean"] {
        net.weight(name, &[8]);
    }
    net.constant(TensorProto::from_f32("var", &[8], &[1.5; 8]));
    net.plain(
        "BatchNormalization",
        &["c2", "gamma", "beta", "mean", "var"],
        "n2",
    );
    net.number("zero", 0.0);
    net.number("six", 6.0);
    net.plain("Clip", &["n2", "zero", "six"], "k2");
    net.plain("Max", &["k2", "r1.half"], "m2");
    net.node("AveragePool", &["r1"], &["r1.half"], window());
    net.plain("GlobalAveragePool", &["m2"], "g");
    net.node("Flatten", &["g"], &["f"], vec![]);
    net.weight("fc.w", &[8, 5]);
    net.weight("fc.b", &[5]);
    net.plain("Gemm", &["f", "fc.w", "fc.b"], "logits");
    net.node(
        "Softmax",
        &["logits"],
        &["y"],
        vec![AttributeProto::int("axis", -1)],
    );
    net.output("y");
    net.model()
}

/// Mobile network blocks: depthwise convolutions, a gate, an addition, a mean.
pub fn mobile(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.conv("x", "stem", [8, 3, 3, 3], 2, 1);
    net.plain("HardSwish", &["stem"], "s");
    net.conv("s", "wide", [16, 8, 1, 1], 1, 1);
    net.plain("Relu", &["wide"], "w");
    net.conv("w", "deep", [16, 1, 3, 3], 1, 16);
    net.plain("HardSwish", &["deep"], "d");
    net.plain("GlobalAveragePool", &["d"], "squeezed");
    net.conv("squeezed", "less", [4, 16, 1, 1], 1, 1);
    net.plain("Relu", &["less"], "l");
    net.conv("l", "more", [16, 4, 1, 1], 1, 1);
    net.plain("HardSigmoid", &["more"], "gate");
    net.plain("Mul", &["d", "gate"], "gated");
    net.conv("gated", "narrow", [8, 16, 1, 1], 1, 1);
    net.plain("Add", &["narrow", "s"], "sum");
    net.node(
        "ReduceMean",
        &["sum"],
        &["mean"],
        vec![
            AttributeProto::ints("axes", &[2, 3]),
            AttributeProto::int("keepdims", 0),
        ],
    );
    net.linear("mean", "y", 8, 4);
    net.output("y");
    net.model()
}

/// Residual blocks: each adds two convolutions to its input.
pub fn residual(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.conv("x", "stem", [8, 3, 3, 3], 1, 1);
    net.plain("Relu", &["stem"], "s0");
    for block in 0..2 {
        let [before, first, active, second, sum, after] = [
            format!("s{block}"),
            format!("a{block}"),
            format!("b{block}"),
            format!("c{block}"),
            format!("d{block}"),
            format!("s{}", block + 1),
        ];
        net.conv(&before, &first, [8, 8, 3, 3], 1, 1);
        net.plain("Relu", &[&first], &active);
        net.conv(&active, &second, [8, 8, 3, 3], 1, 1);
        net.plain("Add", &[&second, &before], &sum);
        net.plain("Relu", &[&sum], &after);
    }
    net.conv("s2", "y", [6, 8, 1, 1], 1, 1);
    net.output("y");
    // Weights without a pattern, of a size that keeps that of the values.
    for constant in &mut net.constants {
        let name = constant.name.clone().unwrap_or_default();
        let Ok(sizes) = constant.shape() else {
            continue;
        };
        let count: usize = sizes.iter().product();
        let spread = (3.0 / (count / sizes[0]) as f32).sqrt();
        let seed: usize = name.bytes().map(usize::from).sum();
        let number = |i: usize| ((i * 7919 + seed * 104_729) * 31 % 2003) as f32 / 1001.0 - 1.0;
        let values: Vec<f32> = (0..count).map(|i| number(i) * spread).collect();
        *constant = TensorProto::from_f32(&name, &sizes, &values);
    }
    net.model()
}

/// Computed shapes: feature maps are resized to each other, concatenated, split, sliced and padded.
pub fn pyramid(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.conv("x", "a", [4, 3, 3, 3], 1, 1);
    net.conv("a", "b", [4, 4, 3, 3], 2, 1);
    net.plain("Sigmoid", &["b"], "s");
    net.list("two", &[2]);
    net.list("far", &[i64::MAX]);
    net.list("none", &[0]);
    net.list("one", &[1]);
    net.plain("Shape", &["a"], "a.shape");
    net.plain("Shape", &["s"], "s.shape");
    net.plain("Slice", &["a.shape", "two", "far", "none"], "space");
    net.plain("Slice", &["s.shape", "none", "two", "none"], "front");
    net.concat(&["front", "space"], "wanted", 0);
    net.node(
        "Resize",
        &["s", "", "", "wanted"],
        &["up"],
        vec![
            AttributeProto::text("mode", "linear"),
            AttributeProto::text("coordinate_transformation_mode", "asymmetric"),
        ],
    );
    net.concat(&["a", "up"], "joined", 1);
    net.list("parts", &[3, 5]);
    net.node(
        "Split",
        &["joined", "parts"],
        &["three", "five"],
        vec![AttributeProto::int("axis", 1)],
    );
    net.list("some", &[0, 2, 1]);
    net.node(
        "Gather",
        &["five", "some"],
        &["picked"],
        vec![AttributeProto::int("axis", 1)],
    );
    net.plain("Mul", &["three", "picked"], "m");
    net.list("pads", &[0, 0, 1, 0, 0, 0, 0, 1]);
    net.plain("Pad", &["m", "pads"], "padded");
    net.list("three.axis", &[3]);
    net.plain("Slice", &["padded", "one", "far", "three.axis"], "cut");
    net.node(
        "Transpose",
        &["cut"],
        &["last"],
        vec![AttributeProto::ints("perm", &[0, 2, 3, 1])],
    );
    net.linear("last", "y", 3, 6);
    net.output("y");
    net.model()
}

/// A recurrent layer between MatMuls.
pub fn recurrent(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.linear("x", "in", 5, 6);
    net.weight("w", &[1, 16, 6]);
    net.weight("r", &[1, 16, 4]);
    net.weight("b", &[1, 32]);
    net.node(
        "LSTM",
        &["in", "w", "r", "b"],
        &["h", "last"],
        vec![AttributeProto::int("hidden_size", 4)],
    );
    net.list("side", &[1]);
    net.plain("Squeeze", &["h", "side"], "flat");
    net.linear("flat", "y", 4, 3);
    net.output("y");
    net.output("last");
    net.model()
}
