//! The Where operator on two quantized values. The condition comes from outside the region or is a
//! constant.

use super::Matcher;
use super::destination::Destination;
use super::elementwise::check_broadcast;
use super::ir::{Operand, Operation};
use super::reader::{Reader, Reason};
use super::weighted_products::{Matched, slot, slot_out};
use crate::quantization::Int8Quantization;
use octet_onnx::schema::{DataType, NodeProto};

/// Parameters of a condition's bytes: identity.
const TRUTH: Int8Quantization = Int8Quantization {
    scale: 1.0,
    zero_point: 0,
    signed: false,
};

impl Matcher<'_> {
    pub(super) fn conditional(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let output = slot_out(node)?;
        let end = match self.destination(output) {
            Destination::Floats(reason) => self.int16_destination(output).ok_or(reason)?,
            end => end,
        };
        let (operation, inputs) = conditional_operands(node, end.quantization(), &self.reader)?;
        self.push(index, operation, inputs, output, end)
    }
}

/// The condition and both values. Selection and rounding commute.
fn conditional_operands(
    node: &NodeProto,
    to: Option<Int8Quantization>,
    reader: &Reader,
) -> Matched {
    let output = reader.shape(slot_out(node)?)?;
    let name = slot(node, 0)?;
    let condition = match reader.constant(name) {
        Some(tensor) => Operand::Constant(reader.quantized(name, tensor, TRUTH)?),
        None if reader.element(name) == Some(DataType::Bool) => Operand::Bytes(name.to_owned()),
        None => {
            return Err(format!(
                "the type of its condition {name} is not Boolean or not known"
            ));
        }
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
        check_broadcast(name, &reader.shape(name)?, &output)?;
        if let Operand::Reals(_, values) = operand
            && values.iter().any(endless)
        {
            return Err(format!("its constant {name} has infinite or NaN values"));
        }
    }
    if operands[1..]
        .iter()
        .all(|operand| operand.value().is_none())
    {
        return Err("both of its values are constant".into());
    }
    Ok((Operation::Where, operands))
}
