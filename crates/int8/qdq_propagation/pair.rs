//! A pair of QuantizeLinear and DequantizeLinear, by its constants.

use octet_graph::{Graph, Node, Steps};
use octet_onnx::schema::DataType;

/// Integer types of propagated pairs.
const INTEGERS: [DataType; 4] = [
    DataType::Uint8,
    DataType::Int8,
    DataType::Uint16,
    DataType::Int16,
];

/// Names of the scale and zero point of a pair.
#[derive(Clone, Debug)]
pub(super) struct PairParameters {
    scale: String,
    zero_point: String,
}

impl PairParameters {
    /// Parameters of a QuantizeLinear or DequantizeLinear with explicit zero point. Without one,
    /// another node fixes the integer type.
    pub(super) fn from_node(graph: &Graph, node: &Node) -> Option<PairParameters> {
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
    pub(super) fn is_equal(&self, other: &PairParameters, graph: &Graph) -> bool {
        let content = |name: &str| {
            let tensor = graph.initializers.get(name)?;
            Some((tensor.element().ok()?, tensor.to_f32().ok()?))
        };
        let same = |one: &str, other: &str| one == other || content(one) == content(other);
        same(&self.scale, &other.scale) && same(&self.zero_point, &other.zero_point)
    }

    /// Writes both nodes, from one real value to another.
    pub(super) fn write(&self, from: &str, to: &str, steps: &mut Steps) {
        let integers = steps.names.fresh(&format!("{from}_QuantizeLinear_Output"));
        for (operator, input, output) in [
            ("QuantizeLinear", from, integers.as_str()),
            ("DequantizeLinear", integers.as_str(), to),
        ] {
            let name = steps.names.fresh(&format!("{from}_{operator}"));
            let inputs = [input, &self.scale, &self.zero_point];
            steps
                .nodes
                .push(Node::new(operator, &name, &inputs, &[output]));
        }
    }
}
