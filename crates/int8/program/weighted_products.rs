//! Lowers products with weights: packs the weights and combines the scales.

use octet_kernels::int8::{
    BlockOrder, ConvShape, ConvWeights, DepthwiseWeights, Error, Layout as MatrixLayout, Plane,
    Target, TransposedWeights, Way, Weights as Packed, Window,
};

use super::compiler::{Compiler, MISSING, ratio, target};
use super::instruction::{
    BufferElement, CombinedOutput, ConvolutionBatch, InputSource, Int16Product, PackedConvolution,
    ProductEpilogue, WeightedProduct, Work,
};
use super::layout::{MemoryLayout, coincide};
use super::lower::plane_of;
use crate::pattern::{Operand, Operation, Step, Weights};

impl<'a> Compiler<'a> {
    pub(super) fn product(
        &mut self,
        step: &'a Step,
        shape: &'a [usize],
        output: &'a [usize],
    ) -> Result<(), Error> {
        let Operation::Product {
            weights,
            transposed,
            columns_first,
            bias,
            factor,
        } = &step.operation
        else {
            return Err(MISSING);
        };
        let first = step.inputs.first().ok_or(MISSING)?;
        let (layout, columns) = match columns_first {
            true => (MatrixLayout::ColumnAfterColumn, weights.shape[0]),
            false => (MatrixLayout::DepthFirst, weights.shape[1]),
        };
        let weighted = self.rows(weights, layout, shape)?;
        let factors = AccumulatorScales {
            scales: &weights.scales,
            other: *factor,
            columns,
        };
        let factor_planes = self.byte_planes(first, MemoryLayout::Plain, *transposed)?;
        let result =
            self.product_of_planes(step, factor_planes, output, (bias, factors), weighted)?;
        self.put(step, MemoryLayout::Plain, result);
        Ok(())
    }

    /// Rows of a value of this shape times a matrix.
    pub(super) fn rows(
        &self,
        weights: &Weights,
        layout: MatrixLayout,
        shape: &[usize],
    ) -> Result<WeightedProduct, Error> {
        let [first, second] = [weights.shape[0], weights.shape[1]];
        let [depth, columns] = match layout {
            MatrixLayout::ColumnAfterColumn => [second, first],
            MatrixLayout::DepthFirst => [first, second],
        };
        let (values, zeros) = (&weights.integers, &weights.zero_points);
        let packed = Packed::pack(self.form, values, layout, [depth, columns], zeros)?;
        let count = shape.iter().product::<usize>() / depth.max(1);
        Ok(WeightedProduct::Rows(count, packed))
    }

    /// A convolution of a batch of images.
    pub(super) fn images(
        &mut self,
        weights: &Weights,
        (window, groups, transposed): (&Window, usize, bool),
        [shape, output]: [&[usize]; 2],
    ) -> Result<WeightedProduct, Error> {
        let (inputs, outputs) = (shape[1], output[1]);
        let of = ConvShape {
            inputs,
            outputs,
            kernel: window.kernel,
            groups,
        };
        let (values, zeros) = (&weights.integers, &weights.zero_points);
        if !transposed && groups == 1 && *window == Window::PIXEL {
            // A 1×1 convolution is a matrix product with one row per pixel of all images.
            let rows = output[0] * output[2..].iter().product::<usize>();
            let layout = MatrixLayout::ColumnAfterColumn;
            let packed = Packed::pack(self.form, values, layout, [inputs, outputs], zeros)?;
            return Ok(WeightedProduct::Rows(rows, packed));
        }
        let kernel = if transposed {
            PackedConvolution::Transposed(TransposedWeights::pack(
                self.form, values, of, window, zeros,
            )?)
        } else if groups > 1 && groups == inputs && groups == outputs {
            let packed = DepthwiseWeights::pack(self.form, values, outputs, window.kernel, zeros)?;
            PackedConvolution::Depthwise(packed)
        } else {
            let to = plane_of(output);
            let best = Way::best(self.form, &of, window, [to.height, to.width]);
            let way = self.winograd_budget.way(best, values.len());
            PackedConvolution::Dense(ConvWeights::pack((self.form, way), values, of, zeros)?)
        };
        Ok(WeightedProduct::Convolution(Box::new(ConvolutionBatch {
            kernel,
            window: window.clone(),
            images: output[0],
            from: plane_of(shape),
            to: plane_of(output),
        })))
    }

    /// Transposes a channels-last result to ONNX's layout.
    #[expect(
        clippy::wrong_self_convention,
        reason = "NCHW is the target layout of the value, not a conversion of self"
    )]
    pub(super) fn to_nchw(
        &mut self,
        result: InputSource,
        element: BufferElement,
        output: &[usize],
    ) -> Result<InputSource, Error> {
        if coincide(output) {
            return Ok(result);
        }
        let size = [output[1], output[2..].iter().product()];
        let work = match element {
            BufferElement::Byte => Work::ToNchw(size),
            BufferElement::Float => Work::FloatsToNchw(size),
            BufferElement::Accumulator => Work::AccumulatorsToNchw(size),
        };
        Ok(self.add(work, vec![result], element, output))
    }

    /// Bytes of a factor: one plane for eight-bit integers; for 16 bits the high and the low bytes,
    /// in this order.
    pub(super) fn byte_planes(
        &mut self,
        operand: &'a Operand,
        layout: MemoryLayout,
        transposed: bool,
    ) -> Result<Vec<BytePlane>, Error> {
        let bytes = |source, zero_point, weight| BytePlane {
            source,
            zero_point,
            weight,
            scale: operand.scale(),
        };
        let mut factor_planes = match operand {
            Operand::Int16(_, int16) => {
                let planes = [Plane::High, Plane::Low].into_iter();
                let sources = planes.zip(self.planes(operand, layout)?);
                sources
                    .map(|(plane, source)| bytes(source, int16.grid.zero_of(plane), plane.weight()))
                    .collect()
            }
            _ => {
                let zero_point = operand.quantization().ok_or(MISSING)?.zero_point;
                vec![bytes(self.operand(operand, layout)?, zero_point, 1.0)]
            }
        };
        if transposed {
            let shape = self.shape_of(operand)?;
            for BytePlane { source, .. } in &mut factor_planes {
                let work = Work::Permute {
                    sizes: shape.to_vec(),
                    order: vec![1, 0],
                };
                *source = self.bytes(work, vec![source.clone()], shape);
            }
        }
        Ok(factor_planes)
    }

    /// A product with weights, of eight-bit or 16-bit values.
    fn product_of_planes(
        &mut self,
        step: &'a Step,
        factor_planes: Vec<BytePlane>,
        output: &[usize],
        (bias, factors): (&[i32], AccumulatorScales),
        weighted: WeightedProduct,
    ) -> Result<InputSource, Error> {
        let bias = (!bias.is_empty()).then(|| bias.to_vec());
        let to = step.quantization.map(|to| target(to, step.bounds));
        let work = match &factor_planes[..] {
            [high, low] => {
                let each = [high, low];
                Work::Int16Product(Box::new(Int16Product {
                    weighted,
                    bias,
                    zero_points: each.map(|one| one.zero_point),
                    epilogues: each
                        .map(|one| factors.epilogue(step, &[one.scale, one.weight], None)),
                    to: match to {
                        Some(to) => CombinedOutput::Bytes(to),
                        None => CombinedOutput::Reals(step.int16.map(|int16| int16.grid)),
                    },
                }))
            }
            [only] => Work::Product {
                weighted,
                bias,
                zero_point: only.zero_point,
                epilogue: ProductEpilogue {
                    rounding: step.int16.map(|int16| int16.grid),
                    ..factors.epilogue(step, &[only.scale], to)
                },
            },
            _ => return Err(MISSING),
        };
        let sources = factor_planes.into_iter().map(|one| one.source).collect();
        Ok(self.add(work, sources, output_element(step), output))
    }

    pub(super) fn convolution(
        &mut self,
        step: &'a Step,
        shape: &'a [usize],
        output: &'a [usize],
    ) -> Result<(), Error> {
        let Operation::Convolution {
            weights,
            bias,
            window,
            groups,
            transposed,
        } = &step.operation
        else {
            return Err(MISSING);
        };
        let first = step.inputs.first().ok_or(MISSING)?;
        if *transposed
            && *groups == 1
            && step.quantization.is_some()
            && let Some(block) = block_size(window, shape, output)
        {
            return self.blocks(step, (weights, bias), block, [shape, output]);
        }
        let weighted = self.images(weights, (window, *groups, *transposed), [shape, output])?;
        let factors = AccumulatorScales {
            scales: &weights.scales,
            other: 1.0,
            columns: output[1],
        };
        let lying = MemoryLayout::ChannelsLast;
        let factor_planes = self.byte_planes(first, lying, false)?;
        let mut result =
            self.product_of_planes(step, factor_planes, output, (bias, factors), weighted)?;
        let mut layout = lying;
        if step.quantization.is_none() && step.int16.is_none() {
            // Floats leave in ONNX's layout.
            result = self.to_nchw(result, BufferElement::Float, output)?;
            layout = MemoryLayout::Plain;
        }
        self.put(step, layout, result);
        Ok(())
    }

    /// A transposed convolution with a window as large as its stride. It is a 1×1 convolution with
    /// one output channel per position of the block, followed by DepthToSpace.
    fn blocks(
        &mut self,
        step: &'a Step,
        (weights, bias): (&Weights, &[i32]),
        block: usize,
        [shape, output]: [&'a [usize]; 2],
    ) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let (inputs, outputs) = (shape[1], output[1]);
        let area = block * block;
        // [in, out, position] becomes [position, out, in].
        let integer = |at: usize| {
            let (column, input) = (at / inputs.max(1), at % inputs.max(1));
            let (place, channel) = (column / outputs, column % outputs);
            weights.integers[(input * outputs + channel) * area + place]
        };
        let each = weights.scales.len() > 1;
        let of_pixels = Weights {
            shape: vec![area * outputs, inputs, 1, 1],
            integers: (0..weights.integers.len()).map(integer).collect(),
            scales: weights.scales.repeat(if each { area } else { 1 }),
            zero_points: weights.zero_points.repeat(area),
        };
        let result = [shape[0], area * outputs, shape[2], shape[3]];
        let weighted = self.images(&of_pixels, (&Window::PIXEL, 1, false), [shape, &result])?;
        let factors = AccumulatorScales {
            scales: &of_pixels.scales,
            other: 1.0,
            columns: area * outputs,
        };
        let lying = MemoryLayout::ChannelsLast;
        let bias = bias.repeat(area);
        let factor_planes = self.byte_planes(first, lying, false)?;
        let channels =
            self.product_of_planes(step, factor_planes, &result, (&bias, factors), weighted)?;
        let work = Work::Blocks {
            images: output[0],
            from: plane_of(&result),
            block,
            to_space: Some(BlockOrder::BlockFirst),
        };
        let result = self.bytes(work, vec![channels], output);
        self.put(step, lying, result);
        Ok(())
    }
}

/// Bytes of a factor, with their zero point, their weight in the integer, and the scale of the
/// operand.
pub(super) struct BytePlane {
    pub(super) source: InputSource,
    pub(super) zero_point: u8,
    pub(super) weight: f32,
    pub(super) scale: f32,
}

/// Scales of a product's accumulator that do not depend on its left factor.
#[derive(Clone, Copy)]
pub(super) struct AccumulatorScales<'w> {
    /// Weight scales: one, or one per column.
    pub(super) scales: &'w [f32],
    pub(super) other: f32,
    pub(super) columns: usize,
}

impl AccumulatorScales<'_> {
    /// Epilogue factors per column: product of all scales over the output's scale.
    pub(super) fn epilogue(
        &self,
        step: &Step,
        others: &[f32],
        to: Option<Target>,
    ) -> ProductEpilogue {
        let below = step.quantization.map_or(1.0, |to| to.scale);
        let factor = |column: usize| {
            let own = self.scales[if self.scales.len() == 1 { 0 } else { column }];
            ratio(&[others, &[self.other, own]].concat(), below)
        };
        ProductEpilogue {
            factors: (0..self.columns).map(factor).collect(),
            bias: None,
            to,
            rounding: None,
        }
    }
}

/// Bytes left for Winograd weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct WinogradBudget(usize);

impl WinogradBudget {
    /// Budget of a region, out of the 4 GiB of a page; VGG needs less.
    pub(super) const FULL: WinogradBudget = WinogradBudget(1 << 28);

    /// The algorithm `best`, if its weights fit into the rest of the budget.
    fn way(&mut self, best: Way, weights: usize) -> Way {
        let bytes = weights.saturating_mul(best.bytes_a_weight());
        match (best, self.0.checked_sub(bytes)) {
            (Way::Winograd, Some(rest)) => {
                self.0 = rest;
                best
            }
            _ => Way::Gathered,
        }
    }
}

/// Block size of a transposed convolution whose window equals its stride.
fn block_size(window: &Window, shape: &[usize], output: &[usize]) -> Option<usize> {
    let [block, width] = window.kernel;
    let whole = block == width
        && window.strides == window.kernel
        && window.dilations == [1, 1]
        && window.pads == [0; 4]
        && shape.len() == 4
        && output[2..] == [shape[2] * block, shape[3] * block];
    (whole && block > 1 && shape[1] > 0 && output[1] > 0).then_some(block)
}

pub(super) fn output_element(step: &Step) -> BufferElement {
    match step.quantization {
        Some(_) => BufferElement::Byte,
        None => BufferElement::Float,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_packed_for_winograd_within_the_budget() {
        let mut budget = WinogradBudget(8 * 100);
        assert_eq!(budget.way(Way::Winograd, 60), Way::Winograd);
        // Gathered convolutions use nothing of the budget.
        assert_eq!(budget.way(Way::Gathered, 1000), Way::Gathered);
        assert_eq!(budget.way(Way::Winograd, 41), Way::Gathered);
        assert_eq!(budget.way(Way::Winograd, 40), Way::Winograd);
        assert_eq!(budget.way(Way::Winograd, usize::MAX), Way::Gathered);
    }
}
