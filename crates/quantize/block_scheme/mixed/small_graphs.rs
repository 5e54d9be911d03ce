//! Small language models, whose names say nothing.

use octet_graph::Model;
use octet_onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
};
use octet_onnx::{Dim, TensorType};

/// The model's width, that of a feed-forward part, of keys and values, and the vocabulary.
pub(super) const WIDTH: usize = 64;
pub(super) const INNER: usize = 128;
pub(super) const KV: usize = 32;
pub(super) const WORDS: usize = 96;

#[derive(Default)]
pub(super) struct SmallGraph {
    pub(super) nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    outputs: Vec<String>,
}

impl SmallGraph {
    fn op(&mut self, operator: &str, inputs: &[&str]) -> String {
        self.node(NodeProto::new(operator, "", inputs, &[]))
    }

    pub(super) fn theirs(&mut self, operator: &str, inputs: &[&str]) -> String {
        let node = NodeProto::new(operator, "", inputs, &[]);
        self.node(NodeProto {
            domain: Some("com.microsoft".into()),
            ..node
        })
    }

    fn node(&mut self, mut node: NodeProto) -> String {
        let output = format!("t{}", self.nodes.len());
        node.output = vec![output.clone()];
        self.nodes.push(node);
        output
    }

    fn constant(&mut self, shape: &[usize]) -> String {
        let name = format!("c{}", self.constants.len());
        let count: usize = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
        self.constants
            .push(TensorProto::from_f32(&name, shape, &values));
        name
    }

    /// A product with a new weight of `rows` and `columns`.
    pub(super) fn product(&mut self, input: &str, rows: usize, columns: usize) -> String {
        let weight = self.constant(&[rows, columns]);
        self.op("MatMul", &[input, &weight])
    }

    pub(super) fn norm(&mut self, input: &str) -> String {
        let scale = self.constant(&[WIDTH]);
        self.op("LayerNormalization", &[input, &scale])
    }

    /// A gated feed-forward part.
    fn gated(&mut self, input: &str) -> String {
        let gate = self.product(input, WIDTH, INNER);
        let up = self.product(input, WIDTH, INNER);
        let sigmoid = self.op("Sigmoid", &[&gate]);
        let swish = self.op("Mul", &[&gate, &sigmoid]);
        let inner = self.op("Mul", &[&swish, &up]);
        self.product(&inner, INNER, WIDTH)
    }

    /// A feed-forward part with biases and a GELU in parts.
    fn gelu(&mut self, input: &str) -> String {
        let (bias, two, one) = (
            self.constant(&[INNER]),
            self.constant(&[1]),
            self.constant(&[1]),
        );
        let up = self.product(input, WIDTH, INNER);
        let up = self.op("Add", &[&up, &bias]);
        let part = self.op("Div", &[&up, &two]);
        let part = self.op("Erf", &[&part]);
        let part = self.op("Add", &[&part, &one]);
        let inner = self.op("Mul", &[&up, &part]);
        let (weight, bias) = (self.constant(&[WIDTH, INNER]), self.constant(&[WIDTH]));
        let gemm = NodeProto::new("Gemm", "", &[&inner, &weight, &bias], &[]);
        self.node(gemm.with(AttributeProto::int("transB", 1)))
    }

    pub(super) fn finish(mut self, end: &str) -> Model {
        self.outputs.insert(0, end.to_owned());
        let kind = TensorType {
            element: DataType::Float,
            shape: Some(vec![Dim::Known(7), Dim::Known(WIDTH)]),
        };
        let ids = TensorType {
            element: DataType::Int64,
            shape: Some(vec![Dim::Known(7)]),
        };
        let outputs = self.outputs.iter();
        let graph = GraphProto {
            name: Some("g".into()),
            output: outputs
                .map(|name| ValueInfoProto::new(name, &kind))
                .collect(),
            node: self.nodes,
            initializer: self.constants,
            input: vec![
                ValueInfoProto::new("x", &kind),
                ValueInfoProto::new("past", &kind),
                ValueInfoProto::new("ids", &ids),
            ],
            ..GraphProto::default()
        };
        Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
    }
}

/// Layers with GroupQueryAttention, whose query, key and value are packed in every second layer, and
/// an output projection that is longer than wide.
pub(super) fn grouped(layers: usize) -> Model {
    let mut graph = SmallGraph::default();
    let table = graph.constant(&[WORDS, WIDTH]);
    let mut x = graph.op("Gather", &[&table, "ids"]);
    for layer in 0..layers {
        let normed = graph.norm(&x);
        let attention = if layer % 2 == 0 {
            let q = graph.product(&normed, WIDTH, INNER);
            let k = graph.product(&normed, WIDTH, KV);
            let v = graph.product(&normed, WIDTH, KV);
            graph.theirs("GroupQueryAttention", &[&q, &k, &v, "past"])
        } else {
            let packed = graph.product(&normed, WIDTH, INNER + 2 * KV);
            graph.theirs("GroupQueryAttention", &[&packed, "", "", "past"])
        };
        let attention = graph.product(&attention, INNER, WIDTH);
        let sum = graph.op("Add", &[&x, &attention]);
        let normed = graph.norm(&sum);
        let down = graph.gated(&normed);
        x = graph.op("Add", &[&sum, &down]);
    }
    let last = graph.norm(&x);
    let turned = graph.op("Transpose", &[&table]);
    let logits = graph.op("MatMul", &[&last, &turned]);
    let end = graph.op("Cast", &[&logits]);
    graph.finish(&end)
}

/// Layers with an attention of plain operators, whose keys and values are outputs too.
pub(super) fn plain(layers: usize) -> Model {
    let mut graph = SmallGraph::default();
    let shape = graph.constant(&[4]);
    let mut x = "x".to_owned();
    for _ in 0..layers {
        let normed = graph.norm(&x);
        let heads = [WIDTH, WIDTH, WIDTH].map(|columns| {
            let bias = graph.constant(&[columns]);
            let one = graph.product(&normed, WIDTH, columns);
            let one = graph.op("Add", &[&bias, &one]);
            let one = graph.op("Reshape", &[&one, &shape]);
            graph.op("Transpose", &[&one])
        });
        graph.outputs.extend(heads[1..].to_vec());
        let k = graph.op("Concat", &["past", &heads[1]]);
        let v = graph.op("Concat", &["past", &heads[2]]);
        let k = graph.op("Transpose", &[&k]);
        let scale = graph.constant(&[1]);
        let scores = graph.op("MatMul", &[&heads[0], &k]);
        let scores = graph.op("Div", &[&scores, &scale]);
        let chances = graph.op("Softmax", &[&scores]);
        let chances = graph.op("Cast", &[&chances]);
        let attention = graph.op("MatMul", &[&chances, &v]);
        let attention = graph.op("Transpose", &[&attention]);
        let attention = graph.op("Reshape", &[&attention, &shape]);
        let attention = graph.product(&attention, WIDTH, WIDTH);
        let sum = graph.op("Add", &[&x, &attention]);
        let normed = graph.norm(&sum);
        let down = graph.gelu(&normed);
        x = graph.op("Add", &[&sum, &down]);
    }
    let last = graph.norm(&x);
    let logits = graph.product(&last, WIDTH, WORDS);
    graph.finish(&logits)
}
