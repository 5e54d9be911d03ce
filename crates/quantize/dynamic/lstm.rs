//! LSTM: ONNX Runtime's DynamicQuantizeLSTM, whose weights are transposed.

use bytes::Bytes;

use super::Dynamic;
use crate::integers::{IntegerFormat, parameters};
use crate::quantized_names::QuantizedNames;
use crate::rewrite::{ConstantWeight, NotQuantized, Rewriter};
use crate::stays_float::StaysFloat;
use crate::weights::quantized;
use crate::{ElementType, MICROSOFT};
use octet_graph::Node;
use octet_onnx::schema::TensorProto;

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
            let (dims, shape) = if self.settings.per_channel {
                let flat = vec![(directions * rows) as i64, columns as i64];
                (flat, vec![directions, rows])
            } else {
                (weight.tensor.dims.clone(), vec![directions])
            };
            let flat = TensorProto {
                dims,
                ..weight.tensor.clone()
            };
            let form = IntegerFormat {
                element: ElementType::I8,
                axis: Some(0),
                symmetric: true,
                reduce_range: self.settings.reduce_range,
            };
            let params = parameters(&flat, form)?;
            let names = graph.fresh_names(weight.name);
            let integers = quantized(&flat, weight.name, &params)?;
            let transposed: Vec<u8> = integers
                .raw_data
                .unwrap_or_default()
                .chunks_exact(rows * columns)
                .flat_map(|matrix| transposed_bytes(matrix, columns))
                .collect();
            graph.constant(TensorProto::from_raw(
                &names.integers,
                params.element,
                &[directions, columns, rows],
                Bytes::from(transposed),
            ));
            graph.write_parameters(&names, &params, &shape);
            graph.report_weight(weight.name, &params);
            Ok(names)
        })
    }
}

/// The elements of a matrix in column order.
fn transposed_bytes(matrix: &[u8], columns: usize) -> impl Iterator<Item = u8> {
    (0..columns).flat_map(move |column| matrix.iter().skip(column).step_by(columns).copied())
}
