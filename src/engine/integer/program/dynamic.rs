//! Lowers dynamic quantization: DynamicQuantizeLinear and products with scales known only during
//! the run.

use std::sync::Arc;

use octet_kernels::int8::{Error, Layout as MatrixLayout};

use super::compile::{Compiler, MISSING};
use super::instruction::{By, Element, Measured, PARTS, Work};
use super::layout::Layout;
use crate::engine::integer::pattern::{Multiplier, Step, Sums};

impl<'a> Compiler<'a> {
    /// Lowers a DynamicQuantizeLinear, with scale and zero point as further outputs.
    pub(super) fn measure(&mut self, step: &'a Step, wish: Layout) -> Result<(), Error> {
        let [first] = &step.inputs[..] else {
            return Err(MISSING);
        };
        let [scale, zero_point] = &step.beside[..] else {
            return Err(MISSING);
        };
        let lies = self.lies(first, Layout::Plain);
        let floats = self.operand(first, lies)?;
        let ends = self.add(
            Work::Ends,
            vec![floats.clone()],
            Element::Float,
            &[2 * PARTS],
        );
        let of_scale = self.add(Work::ScaleOfEnds, vec![ends.clone()], Element::Float, &[]);
        let of_zero = self.bytes(Work::ZeroOfEnds, vec![ends], &[]);
        self.places.insert((scale, Layout::Plain), of_scale.clone());
        self.places
            .insert((zero_point, Layout::Plain), of_zero.clone());
        self.quantize(step, None, (lies, vec![floats, of_scale, of_zero]), wish)
    }

    /// Lowers an integer product with scales or zero points known only during the run.
    pub(super) fn sums(
        &mut self,
        step: &'a Step,
        sums: &'a Sums,
        output: &'a [usize],
    ) -> Result<(), Error> {
        let (first, others) = step.inputs.split_first().ok_or(MISSING)?;
        let shape = self.shape_of(first)?;
        let (by, layout) = match &sums.by {
            Multiplier::Image(weights, window, groups) => {
                let weighted = self.images(weights, (window, *groups, false), [shape, output])?;
                (By::Weights(weighted), Layout::ChannelsLast)
            }
            Multiplier::Matrix(weights) => {
                let weighted = self.rows(weights, MatrixLayout::DepthFirst, shape)?;
                (By::Weights(weighted), Layout::Plain)
            }
            Multiplier::Bytes(stacks, zero) => (By::Bytes(stacks.clone(), *zero), Layout::Plain),
        };
        let mut sources = vec![self.operand(first, layout)?];
        for operand in others {
            sources.push(self.operand(operand, Layout::Plain)?);
        }
        let reals = sums.reals.as_ref();
        let bias = reals.map(|reals| &reals.bias[..]).unwrap_or_default();
        let measured = Measured {
            by,
            zero_point: sums.zero_point,
            scales: reals.map_or(0, |reals| reals.scales.len()),
            factors: reals.map(|reals| reals.factors.clone()).unwrap_or_default(),
            bias: (!bias.is_empty()).then(|| Arc::from(bias)),
        };
        let element = match reals {
            Some(_) => Element::Float,
            None => Element::Sum,
        };
        let mut made = self.add(Work::Measured(Box::new(measured)), sources, element, output);
        if let Some(bounds) = reals.and_then(|reals| reals.bounds) {
            made = self.add(Work::Clamp(bounds), vec![made], element, output);
        }
        // Accumulators leave the region in ONNX's layout. Floats keep theirs, because they may be
        // quantized again.
        let layout = match element {
            Element::Sum if layout == Layout::ChannelsLast => {
                made = self.to_first(made, element, output)?;
                Layout::Plain
            }
            _ => layout,
        };
        self.put(step, layout, made);
        Ok(())
    }
}
