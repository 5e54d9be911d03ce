//! QDQ propagation: copies QuantizeLinear/DequantizeLinear pairs across nodes that only move data.
//!
//! A product runs on integers if a DequantizeLinear precedes it and a QuantizeLinear follows. Many
//! tools omit pairs around data-movement nodes, where they change nothing. Before matching, pairs
//! are therefore copied forwards (`forward`) and backwards (`backward`) across such nodes. Weights
//! that are moved after their DequantizeLinear become new constants (`weights`). Results are
//! unchanged.

mod backward;
mod forward;
mod weights;

use std::collections::HashSet;

use octet_graph::{Graph, Model, Steps};
use octet_onnx::schema::{DataType, NodeProto};

/// Propagates pairs through the model; watched values keep their meaning.
pub(super) fn propagate(model: &mut Model, watched: &[String]) {
    weights::fold_moved(&mut model.graph);
    forward::propagate(&mut model.graph);
    backward::propagate(&mut model.graph, watched);
}

/// Integer types of propagated pairs.
const INTEGERS: [DataType; 4] = [
    DataType::Uint8,
    DataType::Int8,
    DataType::Uint16,
    DataType::Int16,
];

/// Names of the scale and zero point of a pair.
#[derive(Clone, Debug)]
struct PairParameters {
    scale: String,
    zero_point: String,
}

impl PairParameters {
    /// Parameters of a QuantizeLinear or DequantizeLinear with explicit zero point. Without one,
    /// another node fixes the integer type.
    fn from_node(graph: &Graph, node: &NodeProto) -> Option<PairParameters> {
        let one = |slot: usize, types: &[DataType]| {
            let name = node.input_at(slot)?;
            let tensor = graph.initializers.get(name)?;
            let fits = tensor.element_count() == Ok(1);
            (fits && types.contains(&tensor.element().ok()?)).then(|| name.to_owned())
        };
        Some(PairParameters {
            scale: one(1, &[DataType::Float])?,
            zero_point: one(2, &INTEGERS)?,
        })
        .filter(|_| node.int("block_size").unwrap_or(0) == 0)
    }

    /// True if both have the same values.
    fn is_equal(&self, other: &PairParameters, graph: &Graph) -> bool {
        let content = |name: &str| {
            let tensor = graph.initializers.get(name)?;
            Some((tensor.element().ok()?, tensor.to_f32().ok()?))
        };
        let same = |one: &str, other: &str| one == other || content(one) == content(other);
        same(&self.scale, &other.scale) && same(&self.zero_point, &other.zero_point)
    }

    /// Writes both nodes, from one real value to another.
    fn write(&self, from: &str, to: &str, steps: &mut Steps) {
        let integers = steps.names.fresh(&format!("{from}_QuantizeLinear_Output"));
        for (operator, input, output) in [
            ("QuantizeLinear", from, integers.as_str()),
            ("DequantizeLinear", integers.as_str(), to),
        ] {
            let name = steps.names.fresh(&format!("{from}_{operator}"));
            let inputs = [input, &self.scale, &self.zero_point];
            steps
                .nodes
                .push(NodeProto::new(operator, &name, &inputs, &[output]));
        }
    }
}

/// True for nodes that keep all or some values of their first input. Rounding before or behind them
/// is the same.
fn is_data_movement(node: &NodeProto) -> bool {
    let others = ["DepthToSpace", "SpaceToDepth", "Slice"];
    weights::is_data_movement(node) || others.iter().any(|operator| node.is(operator))
}

/// Nodes around each row Softmax that together form one over several axes (`operators/softmax.rs`).
/// They need no pairs.
fn around_softmax(graph: &Graph) -> HashSet<usize> {
    let uses = graph.uses();
    let mut around = HashSet::new();
    for node in graph.nodes.iter().filter(|node| node.is("Softmax")) {
        let before = node.input_at(0).and_then(|name| uses.producer(name));
        let behind = node.output.first().map(|name| uses.consumers(name));
        if let (Some(before), Some(&[(behind, 0)])) = (before, behind)
            && graph.nodes[before].is("Flatten")
            && graph.nodes[behind].is("Reshape")
        {
            around.extend([before, behind]);
        }
    }
    around
}

/// True for nodes that return a maximum or minimum, but not its index. Rounding is monotonic.
fn is_min_max(node: &NodeProto) -> bool {
    ["GlobalMaxPool", "ReduceMax", "ReduceMin"]
        .iter()
        .any(|operator| node.is(operator))
        || node.is("MaxPool") && node.output.get(1).is_none_or(String::is_empty)
}
