//! Q and DQ nodes that remain at the border between integers and floats.

use super::ir::{ElementKind, IrValue, Operand, Operation};
use super::reader::Reason;
use super::{Matcher, weighted_products};
use octet_onnx::schema::NodeProto;

impl Matcher<'_> {
    /// Adds a step for each remaining QuantizeLinear of floats, and each DequantizeLinear with
    /// float readers.
    pub(super) fn convert(&mut self) {
        for index in 0..self.reader.graph.nodes.len() {
            let node = self.node(index);
            let quantizes = node.is("QuantizeLinear");
            if self.owned.contains(&index)
                || self.reader.refused.contains(&index)
                || !(quantizes || node.is("DequantizeLinear"))
            {
                continue;
            }
            if !quantizes && !self.is_read_in_float(node) {
                continue;
            }
            let done = match self.reader.int16_parameters(node) {
                Ok(_) => self.int16_conversion(index, node, quantizes),
                Err(_) => self.conversion(index, node, quantizes),
            };
            if let Err(reason) = done {
                self.reasons.insert(index, reason);
            }
        }
    }

    fn is_read_in_float(&self, node: &NodeProto) -> bool {
        let Some(real) = node.output.first() else {
            return false;
        };
        let constant = node
            .input_at(0)
            .is_some_and(|name| self.reader.constant(name).is_some());
        let mut readers = self.reader.uses.consumers(real).iter();
        !constant
            && (self.reader.is_observed(real)
                || readers.any(|(reader, _)| !self.owned.contains(reader)))
    }

    fn conversion(
        &mut self,
        index: usize,
        node: &NodeProto,
        quantizes: bool,
    ) -> Result<(), Reason> {
        let input = weighted_products::slot(node, 0)?;
        let output = weighted_products::slot_out(node)?;
        let shape = self.reader.shape(input)?;
        let integers = if quantizes { output } else { input };
        let quantization = self.reader.quantization(node, integers)?;
        let reals = if quantizes { input } else { output };
        let (output, bounds, clip) = match quantizes {
            true => self.clipped(output, quantization),
            false => (output.to_owned(), [0, 255], None),
        };
        match self.reader.element(reals) {
            Some(octet_onnx::schema::DataType::Float) => {}
            _ => return Err(format!("the type of {reals} is not float32 or not known")),
        }
        let byte = ElementKind::Byte {
            signed: quantization.signed,
        };
        let (from, to) = if quantizes {
            (ElementKind::Float, byte)
        } else {
            (byte, ElementKind::Float)
        };
        let value = |kind| IrValue {
            shape: shape.clone(),
            kind,
        };
        self.ir.values.insert(input.to_owned(), value(from));
        self.ir.values.insert(output.clone(), value(to));
        let (operation, operand) = match quantizes {
            true => (Operation::Quantize, Operand::Floats(input.to_owned())),
            false => (
                Operation::Dequantize,
                Operand::Int8(input.to_owned(), quantization),
            ),
        };
        let nodes = std::iter::once(index).chain(clip).collect();
        let step = self.step(nodes, operation, vec![operand], &output);
        step.bounds = bounds;
        step.quantization = quantizes.then_some(quantization);
        Ok(())
    }
}
