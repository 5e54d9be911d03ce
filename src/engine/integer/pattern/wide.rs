//! 16-bit tensors inside a region.
//!
//! If one QuantizeLinear writes such a tensor and only DequantizeLinear nodes with the same
//! parameters read it, the region stores its reals under the integers' name. No other node can
//! observe the difference.

use super::super::quantization::Wide;
use super::end::End;
use super::network::{Kind, Operand, Operation, Value};
use super::reader::{Reader, Reason};
use super::{Matcher, weighted};
use crate::onnx::schema::{DataType, NodeProto};

impl Reader<'_> {
    /// Quantization of a 16-bit tensor whose only accesses are a QuantizeLinear and
    /// DequantizeLinear nodes with equal parameters.
    fn closed(&self, integers: &str) -> Result<Wide, Reason> {
        let open = |why: &str| Err(format!("its 16-bit integers {integers} {why}"));
        let Some(maker) = self.uses.producer(integers) else {
            return open("come from outside");
        };
        let quantizer = &self.graph.nodes[maker];
        if !quantizer.is("QuantizeLinear") {
            return open(&format!("come from {}", quantizer.title()));
        }
        if self.refused.contains(&maker) {
            return open("are not kept in a region");
        }
        let real = weighted::slot(quantizer, 0)?;
        if self.element(real) != Some(DataType::Float) {
            return open("are made of other than 32-bit floats");
        }
        self.shape(real)?;
        let wide = self.wide_numbers(quantizer)?;
        if self.is_kept(integers) {
            return open("are seen outside");
        }
        for &(reader, slot) in self.uses.consumers(integers) {
            let node = &self.graph.nodes[reader];
            let same = slot == 0
                && node.is("DequantizeLinear")
                && !self.refused.contains(&reader)
                && self.wide_numbers(node)? == wide;
            if !same {
                return open(&format!("are read by {}", node.title()));
            }
        }
        Ok(wide)
    }

    /// The 16-bit operand behind a real value.
    pub(super) fn wide(&self, real: &str) -> Result<Operand, Reason> {
        let node = self
            .dequantizer(real)
            .ok_or_else(|| format!("its input {real} is not quantized"))?;
        let integers = weighted::slot(node, 0)?;
        Ok(Operand::Wide(integers.to_owned(), self.closed(integers)?))
    }

    /// The eight-bit or 16-bit operand behind a real value. On failure, the reason refers to eight
    /// bits.
    pub(super) fn operand_or_wide(&self, real: &str) -> Result<Operand, Reason> {
        self.operand(real)
            .or_else(|reason| self.wide(real).map_err(|_| reason))
    }

    /// The quantized operand behind a real value, or the reals of a constant.
    pub(super) fn operand_or_reals(&self, real: &str) -> Result<Operand, Reason> {
        self.operand_or_wide(real).or_else(|reason| {
            let (shape, values) = self.reals(real).ok_or(reason)?;
            Ok(Operand::Reals(shape, values))
        })
    }
}

impl Matcher<'_> {
    /// A 16-bit destination of a real value, past a Relu or Clip.
    pub(super) fn wide_end(&self, real: &str) -> Option<End> {
        if let Some(end) = self.wide_quantizer(real) {
            return Some(end);
        }
        let (clamp, [low, high]) = self.clamp_behind(real)?;
        let next = self.node(clamp).output.first()?;
        match self.wide_quantizer(next)? {
            End::Wide {
                output,
                wide,
                mut nodes,
            } => {
                nodes.push(clamp);
                let wide = wide.between(low, high);
                Some(End::Wide {
                    output,
                    wide,
                    nodes,
                })
            }
            _ => None,
        }
    }

    fn wide_quantizer(&self, real: &str) -> Option<End> {
        let reader = self.reader.only_reader(real)?;
        let node = self.node(reader);
        let output = node.output.first().filter(|_| node.is("QuantizeLinear"))?;
        Some(End::Wide {
            output: output.clone(),
            wide: self.reader.closed(output).ok()?,
            nodes: vec![reader],
        })
    }

    /// Matches a remaining 16-bit QuantizeLinear or DequantizeLinear with floats on its other side.
    pub(super) fn wide_conversion(
        &mut self,
        index: usize,
        node: &NodeProto,
        quantizes: bool,
    ) -> Result<(), Reason> {
        let (input, output) = (weighted::slot(node, 0)?, weighted::slot_out(node)?);
        let integers = if quantizes { output } else { input };
        let wide = self.reader.closed(integers)?;
        let shape = self.reader.shape(input)?;
        for name in [input, output] {
            let value = Value {
                shape: shape.clone(),
                kind: Kind::Float,
            };
            self.network.values.insert(name.to_owned(), value);
        }
        let (operation, operand) = match quantizes {
            true => (Operation::Snap, Operand::Floats(input.to_owned())),
            false => (Operation::Unsnap, Operand::Wide(input.to_owned(), wide)),
        };
        let step = self.step(vec![index], operation, vec![operand], output);
        step.wide = quantizes.then_some(wide);
        Ok(())
    }
}
