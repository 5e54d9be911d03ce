//! Softmax over several axes, as defined before opset 13.
//!
//! Newer opsets express it as Flatten, Softmax and Reshape, without quantization in between.

use super::Matcher;
use super::destination::Destination;
use super::ir::Operation;
use super::select::axis;
use octet_onnx::schema::NodeProto;

impl Matcher<'_> {
    /// Matches a Softmax of rows between a Flatten and the inverse Reshape as one step; `None`
    /// without a match.
    pub(super) fn flattened_softmax(&mut self, index: usize) -> Option<()> {
        let reader = &self.reader;
        let node = self.node(index);
        let rows = node.input_at(0)?;
        let flatten = reader.uses.producer(rows)?;
        let unflatten = reader.only_reader(node.output.first()?)?;
        let (before, behind) = (
            self.unmatched_operator(flatten, "Flatten")?,
            self.unmatched_operator(unflatten, "Reshape")?,
        );
        // The Softmax must run over the last of two axes.
        let alone = reader.only_reader(rows) == Some(index);
        if !alone || !matches!(node.int("axis"), None | Some(-1 | 1)) {
            return None;
        }
        let (input, output) = (before.input_at(0)?, behind.output.first()?.clone());
        let operand = reader.operand_or_int16(input).ok()?;
        let shape = reader.shape(operand.value()?).ok()?;
        if reader.shape(&output).ok()? != shape {
            return None;
        }
        let first = axis(before.int("axis").unwrap_or(1), shape.len()).ok()?;
        let end = match self.destination(&output) {
            Destination::Floats(_) => self.int16_destination(&output)?,
            end => end,
        };
        let mut around = vec![flatten, unflatten];
        // A Shape node that only feeds the Reshape.
        let asked = behind.input_at(1)?;
        if let Some(shape) = reader.uses.producer(asked)
            && self.unmatched_operator(shape, "Shape").is_some()
            && reader.uses.consumers(asked).len() == 1
            && !reader.is_observed(asked)
        {
            around.push(shape);
        }
        let axes = first..shape.len();
        self.push(
            index,
            Operation::Softmax { axes },
            vec![operand],
            &output,
            end,
        )
        .ok()?;
        for member in &around {
            self.reasons.remove(member);
        }
        self.owned.extend(around.iter().copied());
        self.ir.steps.last_mut()?.nodes.extend(around);
        Some(())
    }

    /// An unmatched node of this ONNX operator.
    fn unmatched_operator(&self, index: usize, operator: &str) -> Option<&NodeProto> {
        self.unmatched(index).filter(|node| node.is(operator))
    }
}
