//! Tensors of 16 bits. Where a QuantizeLinear makes them and only DequantizeLinear with the same numbers read them, a
//! region keeps the reals that the integers stand for under the integers' name: no one else sees them.

use super::super::quantization::Wide;
use super::end::End;
use super::network::{Kind, Operand, Operation, Value};
use super::reader::{Reader, Reason};
use super::{Matcher, weighted};
use crate::onnx::schema::{DataType, NodeProto};

impl Reader<'_> {
    /// The 16-bit integers that stand between one QuantizeLinear and DequantizeLinear with the same numbers.
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

    /// The reals of 16 bits behind a real value.
    pub(super) fn wide(&self, real: &str) -> Result<Operand, Reason> {
        let node = self
            .dequantizer(real)
            .ok_or_else(|| format!("its input {real} is not quantized"))?;
        let integers = weighted::slot(node, 0)?;
        Ok(Operand::Wide(integers.to_owned(), self.closed(integers)?))
    }

    /// Bytes or reals of 16 bits behind a real value. Where there are neither, the reason is why there are no bytes.
    pub(super) fn operand_or_wide(&self, real: &str) -> Result<Operand, Reason> {
        self.operand(real)
            .or_else(|reason| self.wide(real).map_err(|_| reason))
    }

    /// The same, or a constant's reals.
    pub(super) fn operand_or_reals(&self, real: &str) -> Result<Operand, Reason> {
        self.operand_or_wide(real).or_else(|reason| {
            let (shape, values) = self.reals(real).ok_or(reason)?;
            Ok(Operand::Reals(shape, values))
        })
    }
}

impl Matcher<'_> {
    /// Where a real value goes if that is 16 bits, past a Relu or Clip.
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

    /// A QuantizeLinear or DequantizeLinear of 16 bits that remains between floats and a region, or between floats.
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
