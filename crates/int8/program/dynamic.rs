//! Lowers dynamic quantization: DynamicQuantizeLinear and products with scales known only during
//! the run.

use std::sync::Arc;

use octet_kernels::int8::{Error, Layout as MatrixLayout};

use super::compiler::{Compiler, MISSING};
use super::instruction::{BufferElement, DynamicProduct, PARTS, RightFactor, Work};
use super::layout::MemoryLayout;
use crate::pattern::{IntegerProduct, Multiplier, Step};

impl<'a> Compiler<'a> {
    /// Lowers a DynamicQuantizeLinear, with scale and zero point as further outputs.
    pub(super) fn dynamic_quantize(
        &mut self,
        step: &'a Step,
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        let [first] = &step.inputs[..] else {
            return Err(MISSING);
        };
        let [scale, zero_point] = &step.more_outputs[..] else {
            return Err(MISSING);
        };
        let current_layout = self.current_layout(first, MemoryLayout::Plain);
        let floats = self.operand(first, current_layout)?;
        let ends = self.add(
            Work::Ends,
            vec![floats.clone()],
            BufferElement::Float,
            &[2 * PARTS],
        );
        let of_scale = self.add(
            Work::ScaleOfEnds,
            vec![ends.clone()],
            BufferElement::Float,
            &[],
        );
        let of_zero = self.bytes(Work::ZeroOfEnds, vec![ends], &[]);
        self.locations
            .insert((scale, MemoryLayout::Plain), of_scale.clone());
        self.locations
            .insert((zero_point, MemoryLayout::Plain), of_zero.clone());
        self.quantize(
            step,
            None,
            (current_layout, vec![floats, of_scale, of_zero]),
            preference,
        )
    }

    /// Lowers an integer product with scales or zero points known only during the run.
    pub(super) fn integer_product(
        &mut self,
        step: &'a Step,
        sums: &'a IntegerProduct,
        output: &'a [usize],
    ) -> Result<(), Error> {
        let (first, others) = step.inputs.split_first().ok_or(MISSING)?;
        let shape = self.shape_of(first)?;
        let (by, layout) = match &sums.by {
            Multiplier::Image(weights, window, groups) => {
                let weighted = self.images(weights, (window, *groups, false), [shape, output])?;
                (RightFactor::Weights(weighted), MemoryLayout::ChannelsLast)
            }
            Multiplier::Matrix(weights) => {
                let weighted = self.rows(weights, MatrixLayout::DepthFirst, shape)?;
                (RightFactor::Weights(weighted), MemoryLayout::Plain)
            }
            Multiplier::Bytes(batch, zero) => (
                RightFactor::Bytes(batch.clone(), *zero),
                MemoryLayout::Plain,
            ),
        };
        let mut sources = vec![self.operand(first, layout)?];
        for operand in others {
            sources.push(self.operand(operand, MemoryLayout::Plain)?);
        }
        let reals = sums.reals.as_ref();
        let bias = reals.map(|reals| &reals.bias[..]).unwrap_or_default();
        let measured = DynamicProduct {
            by,
            zero_point: sums.zero_point,
            scales: reals.map_or(0, |reals| reals.scales.len()),
            factors: reals.map(|reals| reals.factors.clone()).unwrap_or_default(),
            bias: (!bias.is_empty()).then(|| Arc::from(bias)),
        };
        let element = match reals {
            Some(_) => BufferElement::Float,
            None => BufferElement::Accumulator,
        };
        let mut result = self.add(
            Work::DynamicProduct(Box::new(measured)),
            sources,
            element,
            output,
        );
        if let Some(bounds) = reals.and_then(|reals| reals.bounds) {
            result = self.add(Work::Clamp(bounds), vec![result], element, output);
        }
        // Accumulators leave the region in ONNX's layout. Floats keep theirs, because they may be
        // quantized again.
        let layout = match element {
            BufferElement::Accumulator if layout == MemoryLayout::ChannelsLast => {
                result = self.to_nchw(result, element, output)?;
                MemoryLayout::Plain
            }
            _ => layout,
        };
        self.put(step, layout, result);
        Ok(())
    }
}
