//! Products with weights or of two values, and their destinations: a fused bias, integers or
//! floats.

use super::destination::Destination;
use super::reader::Reason;
use super::{Matcher, Operand, Operation, overflow, weighted_products};

impl Matcher<'_> {
    /// Conv, ConvTranspose, Gemm and MatMul. The result may stay float.
    pub(super) fn product(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let (mut operation, inputs) = match node.is("MatMul") {
            true => weighted_products::product(node, &self.reader)?,
            false if node.is("Gemm") => weighted_products::gemm(node, &self.reader)?,
            false => weighted_products::convolution(node, &self.reader)?,
        };
        let mut output = weighted_products::slot_out(node)?;
        let mut end = match self.destination(output) {
            Destination::Floats(reason) => self
                .int16_destination(output)
                .unwrap_or(Destination::Floats(reason)),
            end => end,
        };
        overflow::fit_bias(&mut operation, &inputs, &end)?;
        let mut added = None;
        if matches!(end, Destination::Floats(_)) {
            added = self.fused_bias(output, &mut operation, &inputs);
        }
        if let Some(add) = added {
            output = weighted_products::slot_out(self.node(add))?;
            end = self.destination(output);
        }
        self.push(index, operation, inputs, output, end)?;
        if let (Some(add), Some(step)) = (added, self.ir.steps.last_mut()) {
            step.nodes.push(add);
            self.owned.insert(add);
        }
        Ok(())
    }

    /// True if a value is the float output of an integer product.
    pub(super) fn is_product(&self, name: &str) -> bool {
        let mut steps = self.ir.steps.iter();
        steps.any(|step| {
            let product = matches!(
                step.operation,
                Operation::Convolution { .. }
                    | Operation::Product { .. }
                    | Operation::BatchedProduct { .. }
            );
            product && step.output == name && step.quantization.is_none() && step.int16.is_none()
        })
    }

    /// Fuses the Add of a per-column constant as the product's bias. The Add must be the only
    /// reader of the product, and its sum must be quantized.
    fn fused_bias(
        &self,
        real: &str,
        operation: &mut Operation,
        inputs: &[Operand],
    ) -> Option<usize> {
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
        // The output of a product with a vector ends in the row axis.
        if shape[columns] != weights.shape[usize::from(!*columns_first)] {
            return None;
        }
        self.reader.per_channel(other, &shape, columns)?;
        let sum = self.node(add).output.first()?;
        if self.reader.shape(sum).ok()? != shape
            || matches!(self.destination(sum), Destination::Floats(_))
        {
            return None;
        }
        let operand = inputs.first()?;
        let found = weighted_products::bias(
            other,
            &self.reader,
            operand,
            &weights.scales,
            shape[columns],
            1.0,
        )
        .ok()?;
        overflow::check_weights(operand, weights, usize::from(!*columns_first), 1, &found).ok()?;
        *bias = found;
        Some(add)
    }
}
