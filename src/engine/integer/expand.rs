//! Integer operators written out as pairs: QLinearConv and its kin become DequantizeLinear, the float operator
//! and QuantizeLinear.
//!
//! So there is one form to match, and one that runs in float where nothing matches. Operators that move bytes
//! whose scale is known (a MaxPool between two QLinearConv) get pairs around them as well.

use std::collections::HashMap;

use crate::graph::{Model, Names};
use crate::onnx::schema::{AttributeProto, DataType, NodeProto, TensorProto};

use super::{MICROSOFT, recurrent};

/// Names of a scale and a zero point.
type Parameters = (String, String);

/// Rewrites every operator it knows; the others stay. Returns how many were rewritten.
pub(super) fn expand(model: &mut Model) -> usize {
    let names = model.graph.names();
    let nodes = std::mem::take(&mut model.graph.nodes);
    let mut writer = Writer {
        names,
        nodes: Vec::with_capacity(nodes.len()),
        constants: Vec::new(),
        known: HashMap::new(),
        written: 0,
    };
    for node in nodes {
        if node.is("QuantizeLinear") {
            writer.remember(&node);
        }
        if writer.rewrite(&node, model).is_none() {
            writer.nodes.push(node);
        }
    }
    let Writer {
        nodes,
        constants,
        written,
        ..
    } = writer;
    model.graph.nodes = nodes;
    constants
        .into_iter()
        .for_each(|tensor| model.graph.initializers.insert(tensor));
    written
}

struct Writer {
    names: Names,
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    /// Integer values whose scale and zero point are known.
    known: HashMap<String, Parameters>,
    written: usize,
}

/// Operators that give the bytes back as they are, in another place.
const MOVING: [&str; 16] = [
    "MaxPool",
    "Reshape",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "Flatten",
    "Slice",
    "Split",
    "Resize",
    "Pad",
    "DepthToSpace",
    "SpaceToDepth",
    "Identity",
    "Gather",
    "GatherElements",
    "Concat",
];

impl Writer {
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
            "QLinearMatMul" if own => self.of_two(node, "MatMul", &[0, 3], 6, Some(1))?,
            "QuantizeLinear" | "DequantizeLinear" if theirs => {
                let mut plain = node.clone();
                plain.domain = None;
                if operator == "QuantizeLinear" {
                    self.remember(&plain);
                }
                self.nodes.push(plain);
            }
            "QGemm" if theirs => self.gemm(node, model)?,
            "QLinearAdd" | "QLinearMul" if theirs => {
                self.of_two(node, &operator[7..], &[0, 3], 6, None)?;
            }
            "QLinearSigmoid" | "QLinearLeakyRelu" | "QLinearReduceMean" if theirs => {
                self.of_two(node, &operator[7..], &[0], 3, None)?;
            }
            "QLinearAveragePool" | "QLinearGlobalAveragePool"
                if theirs && node.int("channels_last").unwrap_or(0) == 0 =>
            {
                self.of_two(node, &operator[7..], &[0], 3, None)?;
            }
            "QLinearSoftmax" if theirs && node.int("opset").unwrap_or(13) >= 13 => {
                self.of_two(node, "Softmax", &[0], 3, None)?;
            }
            "DynamicQuantizeMatMul" | "MatMulIntegerToFloat" if theirs => self.measured(node)?,
            recurrent::OPERATOR if theirs => {
                let names = [1, 2].map(|slot| {
                    let of = node.input_at(slot).unwrap_or_default();
                    self.names.fresh(&format!("{of}_as_floats"))
                });
                let (lstm, weights) = recurrent::expanded(node, &model.graph, names)?;
                self.nodes.push(lstm);
                self.constants.extend(weights);
            }
            "QLinearConcat" if theirs => self.concat(node)?,
            "QLinearWhere" if theirs => self.choice(node)?,
            _ if own && MOVING.contains(&operator) => self.moved(node)?,
            _ => return None,
        }
        self.written += 1;
        Some(())
    }

    /// A DequantizeLinear of integers; the name of what it makes.
    fn dequantized(&mut self, integers: &str, scale: &str, zero_point: &str, axis: i64) -> String {
        let real = self
            .names
            .fresh(&format!("{integers}_DequantizeLinear_Output"));
        let name = self.names.fresh(&format!("{integers}_DequantizeLinear"));
        let inputs: &[&str] = match zero_point {
            "" => &[integers, scale],
            _ => &[integers, scale, zero_point],
        };
        let node = NodeProto::new("DequantizeLinear", &name, inputs, &[&real])
            .with(AttributeProto::int("axis", axis));
        self.nodes.push(node);
        real
    }

    /// The float operator, and a QuantizeLinear for its first output.
    fn pushed(
        &mut self,
        node: &NodeProto,
        operator: &str,
        inputs: Vec<String>,
        (scale, zero_point): (&str, &str),
    ) -> Option<()> {
        let integers = node.output.first()?.clone();
        let real = self
            .names
            .fresh(&format!("{integers}_QuantizeLinear_Input"));
        let float = NodeProto {
            op_type: Some(operator.to_owned()),
            domain: None,
            input: inputs,
            output: vec![real.clone()],
            ..node.clone()
        };
        self.nodes.push(float);
        self.quantized(&real, &integers, scale, zero_point);
        Some(())
    }

    fn quantized(&mut self, real: &str, integers: &str, scale: &str, zero_point: &str) {
        let name = self.names.fresh(&format!("{integers}_QuantizeLinear"));
        let inputs: &[&str] = match zero_point {
            "" => &[real, scale],
            _ => &[real, scale, zero_point],
        };
        self.nodes
            .push(NodeProto::new("QuantizeLinear", &name, inputs, &[integers]));
        let parameters = (scale.to_owned(), zero_point.to_owned());
        self.known.insert(integers.to_owned(), parameters);
    }

    /// Operators whose inputs come as integers, scale and zero point at each of `slots`, and whose output's
    /// scale and zero point begin at `result`.
    fn of_two(
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
        self.pushed(&plain, operator, inputs, (&scale, &zero_point))
    }

    fn convolution(&mut self, node: &NodeProto, model: &Model) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let (scale, zero_point) = (slot(6)?, slot(7).unwrap_or_default());
        let (of_input, of_weight) = (slot(1)?, slot(4)?);
        let bias = match slot(8) {
            None => None,
            Some(bias) => Some((bias, self.accumulator(of_input, of_weight, 1.0, model)?)),
        };
        let input = self.dequantized(slot(0)?, of_input, slot(2).unwrap_or_default(), 1);
        let weight = self.dequantized(slot(3)?, of_weight, slot(5).unwrap_or_default(), 0);
        let mut inputs = vec![input, weight];
        if let Some((bias, scale)) = bias {
            inputs.push(self.dequantized(bias, &scale, "", 0));
        }
        self.pushed(node, "Conv", inputs, (scale, zero_point))
    }

    /// The scale of a product's sums, as a constant.
    fn accumulator(
        &mut self,
        input: &str,
        weight: &str,
        factor: f32,
        model: &Model,
    ) -> Option<String> {
        let scales = |name: &str| model.graph.initializers.get(name)?.to_f32().ok();
        let input = *scales(input)?.first()?;
        let made: Vec<f32> = scales(weight)?.iter().map(|w| input * w * factor).collect();
        let name = self.names.fresh(&format!("{weight}_of_sums"));
        let shape: &[usize] = if made.len() == 1 { &[] } else { &[made.len()] };
        self.constants
            .push(TensorProto::from_f32(&name, shape, &made));
        Some(name)
    }

    /// Its bias is added before the factor alpha is taken, Gemm's after.
    fn gemm(&mut self, node: &NodeProto, model: &Model) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let (of_input, of_weight) = (slot(1)?, slot(4)?);
        let alpha = node.float("alpha").unwrap_or(1.0);
        let bias = match slot(6) {
            None => None,
            Some(bias) => Some((bias, self.accumulator(of_input, of_weight, alpha, model)?)),
        };
        let turned = node.int("transB").unwrap_or(0) != 0;
        let input = self.dequantized(slot(0)?, of_input, slot(2).unwrap_or_default(), 1);
        let zero_point = slot(5).unwrap_or_default();
        let weight = self.dequantized(slot(3)?, of_weight, zero_point, i64::from(!turned));
        let mut inputs = vec![input, weight];
        if let Some((bias, scale)) = bias {
            inputs.push(self.dequantized(bias, &scale, "", 0));
        }
        if let Some(scale) = slot(7) {
            return self.pushed(node, "Gemm", inputs, (scale, slot(8).unwrap_or_default()));
        }
        self.nodes.push(NodeProto {
            op_type: Some("Gemm".into()),
            domain: None,
            input: inputs,
            ..node.clone()
        });
        Some(())
    }

    /// What ONNX Runtime's optimizer makes of a dynamic product, taken apart again: MatMulInteger, with DynamicQuantizeLinear in
    /// front of it or not, its sums scaled, a bias added.
    fn measured(&mut self, node: &NodeProto) -> Option<()> {
        let slot = |at: usize| node.input_at(at).unwrap_or_default().to_owned();
        let (title, output) = (node.title().to_owned(), node.output.first()?.clone());
        let measures = node.op_type.as_deref() == Some("DynamicQuantizeMatMul");
        let (integers, scale, zero_point, behind) = match measures {
            true => {
                let made = ["integers", "scale", "zero_point"]
                    .map(|word| self.names.fresh(&format!("{output}_{word}")));
                let [integers, scale, zero_point] = made.each_ref().map(String::as_str);
                let name = self.names.fresh(&format!("{title}_DynamicQuantizeLinear"));
                self.nodes.push(NodeProto::new(
                    "DynamicQuantizeLinear",
                    &name,
                    &[node.input_at(0)?],
                    &[integers, scale, zero_point],
                ));
                let [integers, scale, zero_point] = made;
                (integers, scale, zero_point, [slot(2), slot(3), slot(4)])
            }
            false => (slot(0), slot(2), slot(4), [slot(3), slot(5), slot(6)]),
        };
        let [weight_scale, weight_zero, bias] = behind;
        let mut inputs = vec![integers, slot(1), zero_point, weight_zero];
        while inputs.last().is_some_and(String::is_empty) {
            inputs.pop();
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let value = |names: &mut Names, word: &str| names.fresh(&format!("{output}_{word}"));
        let [sums, reals, factor] =
            ["sums", "reals", "factor"].map(|word| value(&mut self.names, word));
        let unbiased = match bias.as_str() {
            "" => output.clone(),
            _ => value(&mut self.names, "unbiased"),
        };
        let cast = NodeProto::new("Cast", &reals, &[&sums], &[&reals]);
        self.nodes.extend([
            NodeProto::new("MatMulInteger", &title, &inputs, &[&sums]),
            cast.with(AttributeProto::int("to", DataType::Float as i64)),
            NodeProto::new("Mul", &factor, &[&scale, &weight_scale], &[&factor]),
            NodeProto::new("Mul", &unbiased, &[&reals, &factor], &[&unbiased]),
        ]);
        if !bias.is_empty() {
            let name = self.names.fresh(&format!("{title}_Add"));
            self.nodes.push(NodeProto::new(
                "Add",
                &name,
                &[&unbiased, &bias],
                &[&output],
            ));
        }
        Some(())
    }

    fn concat(&mut self, node: &NodeProto) -> Option<()> {
        let (scale, zero_point) = (node.input_at(0)?, node.input_at(1)?);
        let parts = node.input.get(2..)?;
        if parts.len() % 3 != 0 || parts.iter().any(String::is_empty) {
            return None;
        }
        let inputs = parts
            .chunks_exact(3)
            .map(|part| self.dequantized(&part[0], &part[1], &part[2], 1))
            .collect();
        self.pushed(node, "Concat", inputs, (scale, zero_point))
    }

    fn choice(&mut self, node: &NodeProto) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let (scale, zero_point) = (slot(7)?, slot(8)?);
        let (x, y) = (
            [slot(1)?, slot(2)?, slot(3)?],
            [slot(4)?, slot(5)?, slot(6)?],
        );
        let mut inputs = vec![slot(0)?.to_owned()];
        for [integers, scale, zero_point] in [x, y] {
            inputs.push(self.dequantized(integers, scale, zero_point, 1));
        }
        self.pushed(node, "Where", inputs, (scale, zero_point))
    }

    fn moved(&mut self, node: &NodeProto) -> Option<()> {
        let (scale, zero_point) = self.known.get(node.input_at(0)?)?.clone();
        let all = node.is("Concat");
        let many = node.input.iter().filter(|_| all).skip(1);
        if many
            .clone()
            .any(|name| self.known.get(name) != Some(&(scale.clone(), zero_point.clone())))
        {
            return None;
        }
        // Of these only the first output holds moved bytes.
        if node.is("MaxPool") && node.output.len() > 1 {
            return None;
        }
        // A filling would be an integer.
        if node.is("Pad") && node.input_at(2).is_some() {
            return None;
        }
        let mut float = node.clone();
        let slots = if all { node.input.len() } else { 1 };
        for slot in 0..slots {
            float.input[slot] = self.dequantized(&node.input[slot], &scale, &zero_point, 1);
        }
        let integers: Vec<String> = node.output.clone();
        for output in float.output.iter_mut().filter(|name| !name.is_empty()) {
            *output = self.names.fresh(&format!("{output}_QuantizeLinear_Input"));
        }
        let reals = float.output.clone();
        self.nodes.push(float);
        for (real, integers) in reals
            .iter()
            .zip(&integers)
            .filter(|(real, _)| !real.is_empty())
        {
            self.quantized(real, integers, &scale, &zero_point);
        }
        Some(())
    }
}

/// Whether a model has operators or pairs that integer regions are made of.
pub(super) fn has_integers(model: &Model) -> bool {
    model.graph.nodes.iter().any(|node| {
        let operator = node.op_type.as_deref().unwrap_or_default();
        matches!(
            operator,
            "QuantizeLinear" | "DequantizeLinear" | "QGemm" | "MatMulNBits" | recurrent::OPERATOR
        ) || operator.starts_with("QLinear")
    })
}
