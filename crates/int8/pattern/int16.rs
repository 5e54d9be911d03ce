//! 16-bit tensors inside a region.
//!
//! If one QuantizeLinear writes such a tensor and only DequantizeLinear nodes with the same
//! parameters read it, the region stores its reals under the integers' name. No other node can
//! observe the difference.

use super::super::quantization::Int16Quantization;
use super::destination::Destination;
use super::ir::{ElementKind, IrValue, Operand, Operation};
use super::reader::{Reader, Reason};
use super::{Matcher, weighted_products};
use octet_onnx::schema::{DataType, NodeProto};

impl Reader<'_> {
    /// Quantization of a 16-bit tensor whose only accesses are a QuantizeLinear and
    /// DequantizeLinear nodes with equal parameters.
    fn hidden_int16(&self, integers: &str) -> Result<Int16Quantization, Reason> {
        let open = |why: &str| Err(format!("its 16-bit integers {integers} {why}"));
        let Some(maker) = self.uses.producer(integers) else {
            return open("are inputs of the graph");
        };
        let quantizer = &self.graph.nodes[maker];
        if !quantizer.is("QuantizeLinear") {
            return open(&format!("come from {}", quantizer.title()));
        }
        if self.refused.contains(&maker) {
            return open("failed to compile in a region");
        }
        let real = weighted_products::slot(quantizer, 0)?;
        if self.element(real) != Some(DataType::Float) {
            return open("are not quantized from float32");
        }
        self.shape(real)?;
        let int16 = self.int16_parameters(quantizer)?;
        if self.is_observed(integers) {
            return open("are watched or an output of the graph");
        }
        for &(reader, slot) in self.uses.consumers(integers) {
            let node = &self.graph.nodes[reader];
            let same = slot == 0
                && node.is("DequantizeLinear")
                && !self.refused.contains(&reader)
                && self.int16_parameters(node)? == int16;
            if !same {
                return open(&format!("are read by {}", node.title()));
            }
        }
        Ok(int16)
    }

    /// The 16-bit operand behind a real value.
    pub(super) fn int16_operand(&self, real: &str) -> Result<Operand, Reason> {
        let node = self
            .dequantizer(real)
            .ok_or_else(|| format!("its input {real} is not quantized"))?;
        let integers = weighted_products::slot(node, 0)?;
        Ok(Operand::Int16(
            integers.to_owned(),
            self.hidden_int16(integers)?,
        ))
    }

    /// The eight-bit or 16-bit operand behind a real value. On failure, the reason refers to eight
    /// bits.
    pub(super) fn operand_or_int16(&self, real: &str) -> Result<Operand, Reason> {
        self.operand(real)
            .or_else(|reason| self.int16_operand(real).map_err(|_| reason))
    }

    /// The quantized operand behind a real value, or the reals of a constant.
    pub(super) fn operand_or_reals(&self, real: &str) -> Result<Operand, Reason> {
        self.operand_or_int16(real).or_else(|reason| {
            let (shape, values) = self.reals(real).ok_or(reason)?;
            Ok(Operand::Reals(shape, values))
        })
    }
}

impl Matcher<'_> {
    /// A 16-bit destination of a real value, past a Relu or Clip.
    pub(super) fn int16_destination(&self, real: &str) -> Option<Destination> {
        if let Some(end) = self.int16_quantizer(real) {
            return Some(end);
        }
        let (clamp, [low, high]) = self.clamp_behind(real)?;
        let next = self.node(clamp).output.first()?;
        match self.int16_quantizer(next)? {
            Destination::Int16 {
                output,
                int16,
                mut nodes,
            } => {
                nodes.push(clamp);
                let int16 = int16.between(low, high);
                Some(Destination::Int16 {
                    output,
                    int16,
                    nodes,
                })
            }
            _ => None,
        }
    }

    fn int16_quantizer(&self, real: &str) -> Option<Destination> {
        let reader = self.reader.only_reader(real)?;
        let node = self.node(reader);
        let output = node.output.first().filter(|_| node.is("QuantizeLinear"))?;
        Some(Destination::Int16 {
            output: output.clone(),
            int16: self.reader.hidden_int16(output).ok()?,
            nodes: vec![reader],
        })
    }

    /// Matches a remaining 16-bit QuantizeLinear or DequantizeLinear with floats on its other side.
    pub(super) fn int16_conversion(
        &mut self,
        index: usize,
        node: &NodeProto,
        quantizes: bool,
    ) -> Result<(), Reason> {
        let (input, output) = (
            weighted_products::slot(node, 0)?,
            weighted_products::slot_out(node)?,
        );
        let integers = if quantizes { output } else { input };
        let int16 = self.reader.hidden_int16(integers)?;
        let shape = self.reader.shape(input)?;
        for name in [input, output] {
            let value = IrValue {
                shape: shape.clone(),
                kind: ElementKind::Float,
            };
            self.ir.values.insert(name.to_owned(), value);
        }
        let (operation, operand) = match quantizes {
            true => (Operation::RoundToInt16, Operand::Floats(input.to_owned())),
            false => (
                Operation::Int16ToFloats,
                Operand::Int16(input.to_owned(), int16),
            ),
        };
        let step = self.step(vec![index], operation, vec![operand], output);
        step.int16 = quantizes.then_some(int16);
        Ok(())
    }
}
