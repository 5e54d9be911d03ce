//! ONNX Runtime's channels-last operators as ONNX operators between two transposes.
//!
//! A region stores images in channels-last layout, so neither transpose moves data there.

use super::{Decomposer, Decomposition};
use octet_graph::{Attribute, Model, Node, tensor_type_of};

pub(super) const DECOMPOSITIONS: &[Decomposition] = &[
    Decomposition {
        operators: &[
            "com.microsoft::QLinearAveragePool",
            "com.microsoft::QLinearGlobalAveragePool",
        ],
        rewrite: |to, node, model| match is_channels_last(node) {
            true => to.channels_last(node, model),
            false => to.of_one(node),
        },
    },
    Decomposition {
        operators: &["com.microsoft::NhwcMaxPool"],
        rewrite: Decomposer::channels_last,
    },
];

/// True if an operator of ONNX Runtime's domain has channels-last layout.
pub(super) fn is_channels_last(node: &Node) -> bool {
    node.op_type == "NhwcMaxPool" || node.int("channels_last").unwrap_or(0) != 0
}

/// Converts a node to channels-first images.
pub(super) fn channels_first(node: &Node) -> Node {
    let mut first = node.clone();
    first.take("channels_last");
    if first.op_type == "NhwcMaxPool" {
        (first.op_type, first.domain) = ("MaxPool".into(), None);
    }
    first
}

impl Decomposer {
    pub(super) fn channels_last(&mut self, node: &Node, model: &Model) -> Option<()> {
        let (input, output) = (node.input_at(0)?, node.output.first()?);
        let rank = rank(node, model)?;
        // Except for MaxPool, the operator names the quantization parameters of its input.
        if let Some(scale) = node.input_at(1) {
            let zero_point = node.input_at(2).unwrap_or_default();
            let parameters = (scale.to_owned(), zero_point.to_owned());
            self.known.entry(input.to_owned()).or_insert(parameters);
        }
        let [transposed, result] =
            [input, output].map(|name| self.steps.names.fresh(&format!("{name}_channels_first")));
        let mut first = channels_first(node);
        (first.input[0], first.output[0]) = (transposed.clone(), result.clone());
        let channel = rank - 1;
        let to_first: Vec<i64> = [0, channel].into_iter().chain(1..channel).collect();
        let to_last: Vec<i64> = [0].into_iter().chain(2..rank).chain([1]).collect();
        self.transpose(input, &transposed, &to_first, model);
        self.rewrite_or_keep(first, model);
        self.transpose(&result, output, &to_last, model);
        Some(())
    }

    fn transpose(&mut self, from: &str, to: &str, order: &[i64], model: &Model) {
        let name = self.steps.names.fresh(&format!("{to}_Transpose"));
        let node = Node::new("Transpose", &name, &[from], &[to]);
        self.rewrite_or_keep(node.with(Attribute::ints("perm", order)), model);
    }

    fn rewrite_or_keep(&mut self, node: Node, model: &Model) {
        if self.rewrite(&node, model).is_none() {
            self.steps.nodes.push(node);
        }
    }
}

/// Rank of a node's image: from its window or weight, else from the model, else 4.
fn rank(node: &Node, model: &Model) -> Option<i64> {
    if let Some(kernel) = node.ints("kernel_shape") {
        return i64::try_from(kernel.len() + 2).ok();
    }
    if node.op_type == "QLinearConv" {
        let weight = model.graph.initializers.get(node.input_at(3)?)?;
        return i64::try_from(weight.dims.len())
            .ok()
            .filter(|&rank| rank > 2);
    }
    let input = node.input_at(0)?;
    let declared = model
        .graph
        .inputs
        .iter()
        .find(|value| value.name.as_deref() == Some(input));
    let shape = declared
        .and_then(tensor_type_of)
        .and_then(|found| found.shape);
    let rank = shape.map_or(4, |shape| shape.len());
    i64::try_from(rank).ok().filter(|&rank| rank > 2)
}
