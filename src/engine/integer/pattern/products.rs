//! Products with weights or of two values, and where they end: with a constant added, in integers, or in floats.

use super::end::End;
use super::reader::Reason;
use super::{Matcher, Operand, Operation, room, weighted};

impl Matcher<'_> {
    /// A product may end in floats.
    pub(super) fn product(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let (mut operation, inputs) = match node.is("MatMul") {
            true => weighted::product(node, &self.reader)?,
            false if node.is("Gemm") => weighted::gemm(node, &self.reader)?,
            false => weighted::convolution(node, &self.reader)?,
        };
        let mut output = weighted::slot_out(node)?;
        let mut end = match self.end(output) {
            End::Floats(reason) => self.wide_end(output).unwrap_or(End::Floats(reason)),
            end => end,
        };
        room::fit(&mut operation, &inputs, &end)?;
        let mut added = None;
        if matches!(end, End::Floats(_)) {
            added = self.added(output, &mut operation, &inputs);
        }
        if let Some(add) = added {
            output = weighted::slot_out(self.node(add))?;
            end = self.end(output);
        }
        self.push(index, operation, inputs, output, end)?;
        if let (Some(add), Some(step)) = (added, self.network.steps.last_mut()) {
            step.nodes.push(add);
            self.owned.insert(add);
        }
        Ok(())
    }

    /// Whether a value is what a product of integers makes in floats.
    pub(super) fn is_product(&self, name: &str) -> bool {
        let mut steps = self.network.steps.iter();
        steps.any(|step| {
            let product = matches!(
                step.operation,
                Operation::Convolution { .. } | Operation::Product { .. } | Operation::Pair { .. }
            );
            product && step.output == name && step.quantization.is_none() && step.wide.is_none()
        })
    }

    /// The Add of one constant a column that alone reads a product and is quantized, if it can be the product's bias, which it
    /// becomes.
    fn added(&self, real: &str, operation: &mut Operation, inputs: &[Operand]) -> Option<usize> {
        let Operation::Product {
            weights,
            bias,
            columns_first,
            ..
        } = operation
        else {
            return None;
        };
        let (add, other) = self.partner(real, "Add").filter(|_| bias.is_empty())?;
        let shape = self.reader.shape(real).ok()?;
        let columns = shape.len().checked_sub(1)?;
        // Behind a product with a vector the last axis is that of the rows.
        if shape[columns] != weights.shape[usize::from(!*columns_first)] {
            return None;
        }
        self.reader.beside(other, &shape, columns)?;
        let sum = self.node(add).output.first()?;
        if self.reader.shape(sum).ok()? != shape || matches!(self.end(sum), End::Floats(_)) {
            return None;
        }
        let operand = inputs.first()?;
        let found = weighted::bias(
            other,
            &self.reader,
            operand,
            &weights.scales,
            shape[columns],
            1.0,
        )
        .ok()?;
        room::of_weights(operand, weights, usize::from(!*columns_first), 1, &found).ok()?;
        *bias = found;
        Some(add)
    }
}
