//! 16-bit tensors inside a region.
//!
//! If one QuantizeLinear writes such a tensor and only DequantizeLinear nodes with the same
//! parameters read it, the region stores its reals under the integers' name. No other node can
//! observe the difference.

use octet_onnx::schema::DataType;

use super::attributes::slot;
use super::destination::Destination;
use super::matcher::Matcher;
use super::reader::Reader;
use crate::float_reason::FloatReason;
use crate::quantization::Int16Quantization;
use crate::values::IrOperand;

impl Reader<'_> {
    /// Quantization of a 16-bit tensor whose only accesses are a QuantizeLinear and
    /// DequantizeLinear nodes with equal parameters.
    pub(crate) fn hidden_int16(&self, integers: &str) -> Result<Int16Quantization, FloatReason> {
        let name = || integers.to_owned();
        let Some(maker) = self.graph.producer(integers) else {
            return Err(FloatReason::InputsOf16Bits(name()));
        };
        let quantizer = &self.graph.nodes()[maker];
        if !quantizer.is("QuantizeLinear") {
            let title = quantizer.title().to_owned();
            return Err(FloatReason::Source16Bits(name(), title));
        }
        if self.refused.contains(&maker) {
            return Err(FloatReason::Refused16Bits(name()));
        }
        let real = slot(quantizer, 0)?;
        if self.element(real) != Some(DataType::Float) {
            return Err(FloatReason::NotFromFloat32(name()));
        }
        self.shape(real)?;
        let int16 = self.int16_parameters(quantizer)?;
        if self.is_observed(integers) {
            return Err(FloatReason::Observed16Bits(name()));
        }
        for reader in self.graph.consumers(integers) {
            let node = &self.graph.nodes()[reader.node];
            let same = reader.is_input(0)
                && node.is("DequantizeLinear")
                && !self.refused.contains(&reader.node)
                && self.int16_parameters(node)? == int16;
            if !same {
                let title = node.title().to_owned();
                return Err(FloatReason::Reader16Bits(name(), title));
            }
        }
        Ok(int16)
    }

    /// The 16-bit operand behind a real value.
    pub(crate) fn int16_operand(&self, real: &str) -> Result<IrOperand, FloatReason> {
        let node = self
            .dequantizer(real)
            .ok_or_else(|| FloatReason::NotQuantized(real.to_owned()))?;
        let integers = slot(node, 0)?;
        Ok(IrOperand::Int16(
            integers.to_owned(),
            self.hidden_int16(integers)?,
        ))
    }

    /// The eight-bit or 16-bit operand behind a real value. On failure, the reason refers to eight
    /// bits.
    pub(crate) fn operand_or_int16(&self, real: &str) -> Result<IrOperand, FloatReason> {
        self.operand(real)
            .or_else(|reason| self.int16_operand(real).map_err(|_| reason))
    }

    /// The quantized operand behind a real value, or the reals of a constant.
    pub(crate) fn operand_or_reals(&self, real: &str) -> Result<IrOperand, FloatReason> {
        self.operand_or_int16(real).or_else(|reason| {
            let (shape, values) = self.reals(real).ok_or(reason)?;
            Ok(IrOperand::Reals(shape, values))
        })
    }
}

impl Matcher<'_> {
    /// A 16-bit destination of a real value, past a Relu or Clip.
    pub(crate) fn int16_destination(&self, real: &str) -> Option<Destination> {
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
}
