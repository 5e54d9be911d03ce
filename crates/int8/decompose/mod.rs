//! Decomposes integer operators into QDQ form: QLinearConv and its kin become DequantizeLinear, the
//! float operator and QuantizeLinear.
//!
//! ONNX Runtime's own compound operators become several ONNX operators. The matcher therefore
//! handles one form only, and this form also runs in float without a match. Operators that move
//! integers with known parameters, such as a MaxPool between two QLinearConv, get pairs around them
//! too.

mod channels_last;
mod conversions;
mod data_movement;
mod elementwise;
mod embedding;
mod products;
mod recurrent;
mod softmax;

use std::collections::HashMap;

use crate::operators::MATMUL_NBITS;
use crate::sub_byte::TABLE;

use octet_graph::operators::{Operator, Property};
use octet_graph::{Attribute, Model, Node, Steps};

/// Rewrites the nodes of some operators.
struct Decomposition {
    /// Operators, with their domain if it is not ONNX's own.
    operators: &'static [&'static str],
    /// Writes other nodes in place of a node; `None` if the node stays.
    rewrite: fn(&mut Decomposer, &Node, &Model) -> Option<()>,
}

/// All decompositions.
const ALL: [&[Decomposition]; 8] = [
    channels_last::DECOMPOSITIONS,
    conversions::DECOMPOSITIONS,
    data_movement::DECOMPOSITIONS,
    elementwise::DECOMPOSITIONS,
    embedding::DECOMPOSITIONS,
    products::DECOMPOSITIONS,
    recurrent::DECOMPOSITIONS,
    softmax::DECOMPOSITIONS,
];

/// Names of a scale and a zero point.
type ParameterNames = (String, String);

/// Rewrites all known operators and returns their number; the others stay.
pub(super) fn decompose(model: &mut Model) -> usize {
    let names = model.graph.names();
    let nodes = model.graph.take_nodes();
    let mut writer = Decomposer {
        steps: Steps::new(names),
        known: HashMap::new(),
        written: 0,
    };
    for node in nodes {
        if node.is("QuantizeLinear") {
            writer.remember(&node);
        }
        if writer.rewrite(&node, model).is_none() {
            writer.steps.nodes.push(node);
        }
    }
    let Decomposer { steps, written, .. } = writer;
    steps.into_graph(&mut model.graph);
    written
}

struct Decomposer {
    steps: Steps,
    /// Integer values with known scale and zero point.
    known: HashMap<String, ParameterNames>,
    written: usize,
}

impl Decomposer {
    fn remember(&mut self, node: &Node) {
        if let (Some(scale), Some(zero_point), Some(output)) =
            (node.input_at(1), node.input_at(2), node.output.first())
        {
            let parameters = (scale.to_owned(), zero_point.to_owned());
            self.known.insert(output.clone(), parameters);
        }
    }

    fn rewrite(&mut self, node: &Node, model: &Model) -> Option<()> {
        let operator = node.operator();
        let mut all = ALL.iter().copied().flatten();
        match all.find(|one| one.operators.contains(&operator.as_str())) {
            Some(decomposition) => (decomposition.rewrite)(self, node, model)?,
            None if Operator::of(node).has(Property::CarriesIntegers) => {
                self.data_movement(node)?
            }
            None => return None,
        }
        self.written += 1;
        Some(())
    }

    /// Writes a DequantizeLinear and returns the name of its output.
    fn dequantized(&mut self, integers: &str, scale: &str, zero_point: &str, axis: i64) -> String {
        let real = self
            .steps
            .names
            .fresh(&format!("{integers}_DequantizeLinear_Output"));
        let name = self
            .steps
            .names
            .fresh(&format!("{integers}_DequantizeLinear"));
        let inputs: &[&str] = match zero_point {
            "" => &[integers, scale],
            _ => &[integers, scale, zero_point],
        };
        let node = Node::new("DequantizeLinear", &name, inputs, &[&real])
            .with(Attribute::int("axis", axis));
        self.steps.nodes.push(node);
        real
    }

    /// Writes the float operator, and a QuantizeLinear for its first output.
    fn push_quantized(
        &mut self,
        node: &Node,
        operator: &str,
        inputs: Vec<String>,
        (scale, zero_point): (&str, &str),
    ) -> Option<()> {
        let integers = node.output.first()?.clone();
        let real = self
            .steps
            .names
            .fresh(&format!("{integers}_QuantizeLinear_Input"));
        let float = Node {
            op_type: operator.to_owned(),
            domain: None,
            input: inputs,
            output: vec![real.clone()],
            ..node.clone()
        };
        self.steps.nodes.push(float);
        self.quantized(&real, &integers, scale, zero_point);
        Some(())
    }

    fn quantized(&mut self, real: &str, integers: &str, scale: &str, zero_point: &str) {
        let name = self
            .steps
            .names
            .fresh(&format!("{integers}_QuantizeLinear"));
        let inputs: &[&str] = match zero_point {
            "" => &[real, scale],
            _ => &[real, scale, zero_point],
        };
        self.steps
            .nodes
            .push(Node::new("QuantizeLinear", &name, inputs, &[integers]));
        let parameters = (scale.to_owned(), zero_point.to_owned());
        self.known.insert(integers.to_owned(), parameters);
    }

    /// Decomposes an operator that has integers, scale and zero point at each of `slots`. The scale
    /// and zero point of its output begin at slot `result`.
    fn quantized_operator(
        &mut self,
        node: &Node,
        operator: &str,
        slots: &[usize],
        result: usize,
        axis: Option<i64>,
    ) -> Option<()> {
        let scale = node.input_at(result)?.to_owned();
        let zero_point = node.input_at(result + 1).unwrap_or_default().to_owned();
        let mut inputs = Vec::new();
        for &slot in slots {
            let (integers, scale) = (node.input_at(slot)?, node.input_at(slot + 1)?);
            let zero_point = node.input_at(slot + 2).unwrap_or_default();
            inputs.push(self.dequantized(integers, scale, zero_point, axis.unwrap_or(1)));
        }
        let mut plain = node.clone();
        for only_theirs in ["opset", "channels_last"] {
            plain.take(only_theirs);
        }
        self.push_quantized(&plain, operator, inputs, (&scale, &zero_point))
    }
}

/// True if the model has QDQ pairs or operators that become integer regions.
pub(super) fn has_integers(model: &Model) -> bool {
    let named = [
        "QuantizeLinear",
        "DequantizeLinear",
        "QGemm",
        MATMUL_NBITS,
        TABLE,
        recurrent::OPERATOR,
        embedding::QUANTIZED,
    ];
    let mut nodes = model.graph.nodes().iter();
    nodes.any(|node| {
        let operator = node.op_type.as_str();
        named.contains(&operator) || operator.starts_with("QLinear")
    })
}

/// True for ONNX Runtime's products that become integer operators.
pub(super) fn is_dynamic_product(operator: &str) -> bool {
    products::DYNAMIC.contains(&operator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_graph::{Dim, MICROSOFT, TensorType};
    use octet_onnx::schema::{
        AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
    };

    /// The operators that a node of bytes becomes. All names but `x` and `y` are constants.
    fn written(operator: &str, inputs: &[&str], attributes: &[(&str, i64)]) -> Vec<String> {
        let mut node = NodeProto::new(operator, "n", inputs, &["y"]);
        node.domain = Some(MICROSOFT.into());
        for &(name, value) in attributes {
            node.set(AttributeProto::int(name, value));
        }
        let port = |name: &str| {
            let of = TensorType {
                element: DataType::Uint8,
                shape: Some(vec![Dim::Known(1); 4]),
            };
            ValueInfoProto::new(name, &of)
        };
        let names: std::collections::BTreeSet<&str> = inputs.iter().copied().collect();
        let constants = names.into_iter().filter(|&name| name != "x");
        let graph = GraphProto {
            node: vec![node],
            initializer: constants
                .map(|name| TensorProto::from_f32(name, &[], &[1.0]))
                .collect(),
            input: vec![port("x")],
            output: vec![port("y")],
            ..GraphProto::default()
        };
        let mut model = Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap();
        decompose(&mut model);
        model
            .graph
            .nodes()
            .iter()
            .map(|node| node.operator())
            .collect()
    }

    #[test]
    fn a_quantized_operator_becomes_pairs_around_the_float_operator() {
        let sum = ["x", "s", "z", "c", "s", "z", "s", "z"];
        let [quantize, dequantize] = ["QuantizeLinear", "DequantizeLinear"];
        for (operator, float) in [("QLinearAdd", "Add"), ("QLinearMul", "Mul")] {
            let expected = [dequantize, dequantize, float, quantize];
            assert_eq!(written(operator, &sum, &[]), expected);
        }
        let one = ["x", "s", "z", "s", "z"];
        for (operator, float) in [
            ("QLinearSigmoid", "Sigmoid"),
            ("QLinearSoftmax", "Softmax"),
            ("QLinearAveragePool", "AveragePool"),
        ] {
            assert_eq!(written(operator, &one, &[]), [dequantize, float, quantize]);
        }
    }

    #[test]
    fn channels_last_images_are_transposed_between_pairs() {
        let one = ["x", "s", "z", "s", "z"];
        let operators = written("QLinearGlobalAveragePool", &one, &[("channels_last", 1)]);
        let floats = ["Transpose", "GlobalAveragePool", "Transpose"];
        let expected = floats.map(|float| ["DequantizeLinear", float, "QuantizeLinear"]);
        assert_eq!(operators, expected.concat());
    }

    #[test]
    fn other_operators_and_inputs_stay() {
        assert_eq!(written("Gelu", &["x"], &[]), ["com.microsoft::Gelu"]);
        let short = written("QLinearAdd", &["x", "s", "z"], &[]);
        assert_eq!(short, ["com.microsoft::QLinearAdd"]);
    }

    #[test]
    fn each_operator_is_listed_once() {
        let mut names: Vec<&str> = ALL
            .iter()
            .copied()
            .flatten()
            .flat_map(|one| one.operators)
            .copied()
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
