//! Simulates the quantized model in float arithmetic, with operators that every engine has.
//!
//! A QuantizeLinear followed by a DequantizeLinear is a [`FakeQuantization`].

use std::collections::HashMap;

use super::fake_quantization::FakeQuantization;
use crate::graph::{Model, Node};
use crate::quantize;

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
    let mut simulated = Simulated {
        model: quantized.clone(),
        rounded: HashMap::new(),
        first_rounded: HashMap::new(),
        constants: Vec::new(),
    };
    let is = |node: &Node, operator: &str| node.op_type == operator;
    let mut nodes = Vec::new();
    for node in model.graph.take_nodes() {
        if !is(&node, "DequantizeLinear") {
            nodes.push(node);
            continue;
        }
        if let Some(constant) = quantize::dequantized(&node, quantized) {
            simulated.constants.push(node.output[0].clone());
            model.graph.initializers.insert(constant);
            continue;
        }
        let maker = node
            .input_at(0)
            .and_then(|value| quantized.graph.producer(value));
        let quantizer = maker.map(|maker| &quantized.graph.nodes()[maker]);
        let pair = quantizer.filter(|q| is(q, "QuantizeLinear")).and_then(|q| {
            let rounding = FakeQuantization::from_node(quantized, q)?;
            let back = FakeQuantization::from_node(quantized, &node)?;
            (rounding == back).then_some(())?;
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
    model.graph.replace_nodes(nodes);
    simulated.model = model;
    simulated
}
