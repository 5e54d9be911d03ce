//! Pairs of QuantizeLinear and DequantizeLinear where a file has none, and the numbers are the same with them.
//!
//! A product is computed on integers where a DequantizeLinear stands before it and a QuantizeLinear behind. Many tools leave out
//! pairs that change nothing: around what only moves numbers. So before anything is matched, weights that are moved become
//! constants of their own (`weights`), a pair before a Reshape stands behind it as well (`ahead`), and one behind it also before
//! it (`back`).

mod ahead;
mod back;
mod weights;

use std::collections::HashSet;

use crate::graph::{Graph, Model, Steps};
use crate::onnx::schema::{DataType, NodeProto};

/// Writes them into a model; values that somebody wants to see stay what they are.
pub(super) fn spread(model: &mut Model, watched: &[String]) {
    weights::moved(&mut model.graph);
    ahead::spread(&mut model.graph);
    back::spread(&mut model.graph, watched);
}

/// The types of integers that pairs are spread for.
const INTEGERS: [DataType; 4] = [
    DataType::Uint8,
    DataType::Int8,
    DataType::Uint16,
    DataType::Int16,
];

/// One scale and zero point, by their names.
#[derive(Clone, Debug)]
struct Pair {
    scale: String,
    zero_point: String,
}

impl Pair {
    /// That of a QuantizeLinear or DequantizeLinear. (Without a zero point the type of the integers stands elsewhere.)
    fn of(graph: &Graph, node: &NodeProto) -> Option<Pair> {
        let one = |slot: usize, types: &[DataType]| {
            let name = node.input_at(slot)?;
            let tensor = graph.initializers.get(name)?;
            let fits = tensor.element_count() == Ok(1);
            (fits && types.contains(&tensor.element().ok()?)).then(|| name.to_owned())
        };
        Some(Pair {
            scale: one(1, &[DataType::Float])?,
            zero_point: one(2, &INTEGERS)?,
        })
        .filter(|_| node.int("block_size").unwrap_or(0) == 0)
    }

    /// Whether both mean the same.
    fn is_like(&self, other: &Pair, graph: &Graph) -> bool {
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

/// What keeps its first input's numbers as they are, all or some: what is rounded before it or behind it is the same.
fn moves(node: &NodeProto) -> bool {
    let others = ["DepthToSpace", "SpaceToDepth", "Slice"];
    weights::moves(node) || others.iter().any(|operator| node.is(operator))
}

/// The nodes around each Softmax of rows that is one over several axes with them (`pattern/softmax.rs`): they need no pairs.
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

/// Whether it gives the greatest of some numbers, or the least, and not also where they stand: rounding keeps order.
fn picks_extreme(node: &NodeProto) -> bool {
    ["GlobalMaxPool", "ReduceMax", "ReduceMin"]
        .iter()
        .any(|operator| node.is(operator))
        || node.is("MaxPool") && node.output.get(1).is_none_or(String::is_empty)
}
