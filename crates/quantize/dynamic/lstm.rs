//! LSTM: ONNX Runtime's DynamicQuantizeLSTM, whose weights are transposed.

use super::Dynamic;
use crate::integer_format::IntegerFormat;
use crate::quantized_names::QuantizedNames;
use crate::recipe::IntegersPlan;
use crate::rewrite::{ConstantWeight, NotQuantized, Rewriter};
use crate::stays_float::StaysFloat;
use crate::{ElementType, MICROSOFT};
use octet_graph::Node;

/// Inputs of an LSTM: X, W, R, B, sequence lengths, initial h and c, peepholes.
const INPUTS: usize = 8;

impl Dynamic<'_> {
    /// Rewrites an LSTM with constant weights.
    pub(super) fn lstm<'a>(
        &self,
        graph: &mut Rewriter<'a>,
        node: &'a Node,
    ) -> Result<(), NotQuantized> {
        if !graph.is_float(node.input_at(0).unwrap_or_default()) {
            return Err(StaysFloat::NotFloat32.into());
        }
        if node.int("layout").unwrap_or(0) != 0 {
            return Err(StaysFloat::LstmLayout.into());
        }
        let forward = graph.weight(node, 1)?;
        let recurrent = graph.weight(node, 2)?;
        if forward.shape.len() != 3 || recurrent.shape.len() != 3 {
            return Err(StaysFloat::NotThreeAxes.into());
        }
        let forward = self.gates(graph, &forward)?;
        let recurrent = self.gates(graph, &recurrent)?;
        let name = graph.fresh(&format!("{}_quant", node.title()));
        let mut inputs = node.input.clone();
        inputs.resize(INPUTS, String::new());
        inputs[1].clone_from(&forward.integers);
        inputs[2].clone_from(&recurrent.integers);
        for weights in [forward, recurrent] {
            inputs.extend([weights.scale, weights.zero_point]);
        }
        let mut attributes = node.attributes.clone();
        attributes.retain(|a| a.name != "layout");
        graph.push(Node {
            input: inputs,
            output: node.output.clone(),
            attributes,
            domain: Some(MICROSOFT.to_owned()),
            ..Node::new("DynamicQuantizeLSTM", &name, &[], &[])
        });
        Ok(())
    }

    /// Writes the weights of all gates: [directions, 4 · hidden, inputs] becomes integers
    /// [directions, inputs, 4 · hidden]. There is one scale per row of a gate, or one per
    /// direction.
    fn gates(
        &self,
        graph: &mut Rewriter,
        weight: &ConstantWeight,
    ) -> Result<QuantizedNames, NotQuantized> {
        let &[directions, rows, columns] = weight.shape.as_slice() else {
            return Err(StaysFloat::NotThreeAxes.into());
        };
        graph.shared(weight.name, "gates", |graph| {
            // For a scale per row, directions and rows are merged into one axis.
            let (shape, scales) = match self.settings.per_channel {
                true => (vec![directions * rows, columns], vec![directions, rows]),
                false => (weight.shape.clone(), vec![directions]),
            };
            let form = IntegerFormat {
                element: ElementType::I8,
                axis: Some(0),
                symmetric: true,
                reduce_range: self.settings.reduce_range,
            };
            let plan = IntegersPlan {
                integers: vec![directions, columns, rows],
                scales,
                transposed: Some([rows, columns]),
                ..IntegersPlan::in_order(form, &shape)
            };
            graph.plan_integers(weight, plan)
        })
    }
}
