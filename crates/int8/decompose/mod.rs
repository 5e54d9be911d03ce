//! Decomposes integer operators into QDQ form: QLinearConv and its kin become DequantizeLinear, the
//! float operator and QuantizeLinear.
//!
//! ONNX Runtime's own compound operators become several ONNX operators. The matcher therefore
//! handles one form only, and this form also runs in float without a match. Operators that move
//! integers with known parameters, such as a MaxPool between two QLinearConv, get pairs around them
//! too.

mod channels_last;
mod data_movement;
mod embedding;
mod products;
mod recurrent;

use std::collections::HashMap;

use super::MICROSOFT;
use data_movement::DATA_MOVEMENT;
use octet_graph::{Model, Steps};
use octet_onnx::schema::{AttributeProto, NodeProto};

/// Names of a scale and a zero point.
type ParameterNames = (String, String);

/// Rewrites all known operators and returns their number; the others stay.
pub(super) fn decompose(model: &mut Model) -> usize {
    let names = model.graph.names();
    let nodes = std::mem::take(&mut model.graph.nodes);
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
    fn remember(&mut self, node: &NodeProto) {
        if let (Some(scale), Some(zero_point), Some(output)) =
            (node.input_at(1), node.input_at(2), node.output.first())
        {
            let parameters = (scale.to_owned(), zero_point.to_owned());
            self.known.insert(output.clone(), parameters);
        }
    }

    fn rewrite(&mut self, node: &NodeProto, model: &Model) -> Option<()> {
        let operator = node.op_type.as_deref()?;
        let own = matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
        let theirs = node.domain.as_deref() == Some(MICROSOFT);
        match operator {
            "QLinearConv" if own => self.convolution(node, model)?,
            "QLinearMatMul" if own => {
                self.quantized_operator(node, "MatMul", &[0, 3], 6, Some(1))?
            }
            "QuantizeLinear" | "DequantizeLinear" if theirs => {
                let mut plain = node.clone();
                plain.domain = None;
                if operator == "QuantizeLinear" {
                    self.remember(&plain);
                }
                self.steps.nodes.push(plain);
            }
            "QGemm" if theirs => self.gemm(node, model)?,
            "QLinearAdd" | "QLinearMul" if theirs => {
                self.quantized_operator(node, &operator[7..], &[0, 3], 6, None)?;
            }
            "QLinearSigmoid" | "QLinearLeakyRelu" | "QLinearReduceMean" if theirs => {
                self.quantized_operator(node, &operator[7..], &[0], 3, None)?;
            }
            "QLinearConv" | "QLinearAveragePool" | "QLinearGlobalAveragePool" | "NhwcMaxPool"
                if theirs && channels_last::is_channels_last(node) =>
            {
                self.channels_last(node, model)?;
            }
            "QLinearConv" if theirs => {
                self.convolution(&channels_last::channels_first(node), model)?
            }
            "QLinearAveragePool" | "QLinearGlobalAveragePool" if theirs => {
                self.quantized_operator(node, &operator[7..], &[0], 3, None)?;
            }
            "QLinearSoftmax" if theirs => self.softmax(node)?,
            "DynamicQuantizeMatMul" | "MatMulIntegerToFloat" if theirs => {
                self.dynamic_product(node)?
            }
            recurrent::OPERATOR if theirs => {
                let names = [1, 2].map(|slot| {
                    let of = node.input_at(slot).unwrap_or_default();
                    self.steps.names.fresh(&format!("{of}_as_floats"))
                });
                let (lstm, weights) = recurrent::lstm_node(node, &model.graph, names)?;
                self.steps.nodes.push(lstm);
                self.steps.constants.extend(weights);
            }
            embedding::OPERATOR if theirs => self.embedding(node)?,
            embedding::QUANTIZED if theirs => self.quantized_embedding(node)?,
            "QLinearConcat" if theirs => self.concat(node)?,
            "QLinearWhere" if theirs => self.conditional(node)?,
            _ if own && DATA_MOVEMENT.contains(&operator) => self.data_movement(node)?,
            _ => return None,
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
        let node = NodeProto::new("DequantizeLinear", &name, inputs, &[&real])
            .with(AttributeProto::int("axis", axis));
        self.steps.nodes.push(node);
        real
    }

    /// Writes the float operator, and a QuantizeLinear for its first output.
    fn push_quantized(
        &mut self,
        node: &NodeProto,
        operator: &str,
        inputs: Vec<String>,
        (scale, zero_point): (&str, &str),
    ) -> Option<()> {
        let integers = node.output.first()?.clone();
        let real = self
            .steps
            .names
            .fresh(&format!("{integers}_QuantizeLinear_Input"));
        let float = NodeProto {
            op_type: Some(operator.to_owned()),
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
            .push(NodeProto::new("QuantizeLinear", &name, inputs, &[integers]));
        let parameters = (scale.to_owned(), zero_point.to_owned());
        self.known.insert(integers.to_owned(), parameters);
    }

    /// Decomposes an operator that has integers, scale and zero point at each of `slots`. The scale
    /// and zero point of its output begin at slot `result`.
    fn quantized_operator(
        &mut self,
        node: &NodeProto,
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
    model.graph.nodes.iter().any(|node| {
        let operator = node.op_type.as_deref().unwrap_or_default();
        matches!(
            operator,
            "QuantizeLinear"
                | "DequantizeLinear"
                | "QGemm"
                | "MatMulNBits"
                | recurrent::OPERATOR
                | embedding::QUANTIZED
        ) || operator.starts_with("QLinear")
    })
}
