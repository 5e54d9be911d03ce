//! Simulates the quantized model in float arithmetic, with operators that every engine has.
//!
//! QuantizeLinear followed by DequantizeLinear turns x into `(clamp(round(x/s) + z, low, high) -
//! z)·s`. Integers of at most 16 bits are exact in float32, so this equals `clamp(round(x/s), low -
//! z, high - z)·s`. Div, Round (half to even, as QuantizeLinear), Max, Min and Mul compute the same
//! bits.

use std::collections::HashMap;

use crate::graph::Model;
use crate::onnx::schema::{DataType, NodeProto, TensorProto};
use crate::quantize;

/// Rounding of a value to its quantization grid.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FakeQuantization {
    pub(super) scale: f32,
    /// Smallest and largest integer, minus the zero point.
    low: f32,
    high: f32,
}

impl FakeQuantization {
    /// The range of reals that the integers represent.
    pub(super) fn range(&self) -> (f32, f32) {
        (self.low * self.scale, self.high * self.scale)
    }

    /// Nodes that round `input` into `output`. Adds their constants to the model.
    pub(super) fn nodes(&self, model: &mut Model, input: &str, output: &str) -> Vec<NodeProto> {
        let mut constant = |word: &str, value: f32| {
            let name = format!("{output}/{word}");
            let tensor = TensorProto::from_f32(&name, &[], &[value]);
            model.graph.initializers.insert(tensor);
            name
        };
        let (scale, low, high) = (
            constant("scale", self.scale),
            constant("low", self.low),
            constant("high", self.high),
        );
        let step = |word: &str| format!("{output}/{word}");
        let (steps, whole, above, inside) =
            (step("steps"), step("whole"), step("above"), step("inside"));
        vec![
            NodeProto::new("Div", &steps, &[input, &scale], &[&steps]),
            NodeProto::new("Round", &whole, &[&steps], &[&whole]),
            NodeProto::new("Max", &above, &[&whole, &low], &[&above]),
            NodeProto::new("Min", &inside, &[&above, &high], &[&inside]),
            NodeProto::new("Mul", output, &[&inside, &scale], &[output]),
        ]
    }
}

/// A quantized model in float: constants are dequantized, and Q/DQ pairs are replaced by a record
/// of the rounding.
pub(super) struct Simulated {
    /// The model without the Q/DQ pairs.
    pub(super) model: Model,
    /// By output of a pair: the value that it rounds, and the rounding.
    pub(super) rounded: HashMap<String, (String, FakeQuantization)>,
    /// The first rounded form of a value.
    pub(super) first_rounded: HashMap<String, String>,
    /// Constants that were integers.
    pub(super) constants: Vec<String>,
}

/// Simulates a model. Only Q/DQ pairs are replaced; all other nodes stay.
pub(super) fn simulate(quantized: &Model) -> Simulated {
    let mut model = quantized.clone();
    let uses = quantized.graph.uses();
    let mut simulated = Simulated {
        model: quantized.clone(),
        rounded: HashMap::new(),
        first_rounded: HashMap::new(),
        constants: Vec::new(),
    };
    let is = |node: &NodeProto, operator: &str| node.op_type.as_deref() == Some(operator);
    let mut nodes = Vec::new();
    for node in std::mem::take(&mut model.graph.nodes) {
        if !is(&node, "DequantizeLinear") {
            nodes.push(node);
            continue;
        }
        if let Some(constant) = quantize::dequantized(&node, quantized) {
            simulated.constants.push(node.output[0].clone());
            model.graph.initializers.insert(constant);
            continue;
        }
        let maker = node.input_at(0).and_then(|value| uses.producer(value));
        let quantizer = maker.map(|maker| &quantized.graph.nodes[maker]);
        let pair = quantizer.filter(|q| is(q, "QuantizeLinear")).and_then(|q| {
            let rounding = rounding(quantized, q)
                .filter(|r| Some(r) == rounding(quantized, &node).as_ref())?;
            Some((q.input_at(0)?.to_string(), rounding))
        });
        match pair {
            Some((source, rounding)) => {
                let output = node.output[0].clone();
                simulated
                    .first_rounded
                    .entry(source.clone())
                    .or_insert(output.clone());
                simulated.rounded.insert(output, (source, rounding));
            }
            None => nodes.push(node),
        }
    }
    model.graph.nodes = nodes;
    simulated.model = model;
    simulated
}

/// The rounding of a QuantizeLinear or DequantizeLinear with a single scale and at most 16 bits.
fn rounding(model: &Model, node: &NodeProto) -> Option<FakeQuantization> {
    let constant = |slot| model.graph.initializers.get(node.input_at(slot)?);
    let scale = constant(1)?.to_f32().ok()?;
    let (element, zero_point) = match constant(2) {
        Some(tensor) => (tensor.element().ok()?, tensor.to_i64().ok()?),
        None => (DataType::Uint8, vec![0]),
    };
    let (low, high) = match element {
        DataType::Uint8 => (0, 255),
        DataType::Int8 => (-128, 127),
        DataType::Uint16 => (0, 65_535),
        DataType::Int16 => (-32_768, 32_767),
        _ => return None,
    };
    let ([scale], [zero_point]) = (scale.as_slice(), zero_point.as_slice()) else {
        return None;
    };
    Some(FakeQuantization {
        scale: *scale,
        low: (low - zero_point) as f32,
        high: (high - zero_point) as f32,
    })
}
