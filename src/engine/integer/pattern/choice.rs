//! The Where operator on two quantized values. The condition comes from outside the region or is a
//! constant.

use super::Matcher;
use super::elementwise::spreads;
use super::end::End;
use super::network::{Operand, Operation};
use super::reader::{Reader, Reason};
use super::weighted::{Found, slot, slot_out};
use crate::engine::integer::quantization::Quantization;
use crate::onnx::schema::{DataType, NodeProto};

/// Parameters of a condition's bytes: identity.
const TRUTH: Quantization = Quantization {
    scale: 1.0,
    zero_point: 0,
    signed: false,
};

impl Matcher<'_> {
    pub(super) fn choice(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let output = slot_out(node)?;
        let end = match self.end(output) {
            End::Floats(reason) => self.wide_end(output).ok_or(reason)?,
            end => end,
        };
        let (operation, inputs) = of_three(node, end.quantization(), &self.reader)?;
        self.push(index, operation, inputs, output, end)
    }
}

/// The condition and both values. Selection and rounding commute.
fn of_three(node: &NodeProto, to: Option<Quantization>, reader: &Reader) -> Found {
    let output = reader.shape(slot_out(node)?)?;
    let name = slot(node, 0)?;
    let condition = match reader.constant(name) {
        Some(tensor) => Operand::Constant(reader.quantized(name, tensor, TRUTH)?),
        None if reader.element(name) == Some(DataType::Bool) => Operand::Bytes(name.to_owned()),
        None => return Err(format!("its condition {name} is not known to be Boolean")),
    };
    let mut operands = vec![condition];
    for at in [1, 2] {
        let name = slot(node, at)?;
        let rounded = to.and_then(|to| reader.rounded(name, to));
        operands.push(match rounded {
            Some(constant) => constant,
            None => reader.operand_or_reals(name)?,
        });
    }
    let endless = |value: &f32| !value.is_finite();
    for (name, operand) in node.input.iter().zip(&operands) {
        spreads(name, &reader.shape(name)?, &output)?;
        if let Operand::Reals(_, values) = operand
            && values.iter().any(endless)
        {
            return Err(format!("{name} holds what no integer stands for"));
        }
    }
    if operands[1..]
        .iter()
        .all(|operand| operand.value().is_none())
    {
        return Err("both of its values are constants".into());
    }
    Ok((Operation::Choice, operands))
}
