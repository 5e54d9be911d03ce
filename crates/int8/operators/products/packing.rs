//! Lowers products with weights: packs the weights and combines the scales.

use octet_kernels::int8::{
    ConvShape, ConvWeights, DepthwiseWeights, Error, Form, Layout as MatrixLayout, Plane, Target,
    TransposedWeights, Way, Window,
};

use super::bytes_product::BytesProduct;
use super::row_tiling::{CombinedOutput, Int16Product};
use super::weighted::{ConvolutionBatch, PackedConvolution, ProductEpilogue, WeightedProduct};
use crate::error::{CompilerBug, ProgramError};
use crate::layout::MemoryLayout;
use crate::lowering::compiler::{Compiler, ratio, target};
use crate::lowering::moves::Permute;
use crate::pattern::weights::SignedWeights;
use crate::program::image_size::ImageSize;
use crate::program::instruction::{BufferElement, InputSource, InstructionKernel};
use crate::values::{IrOperand, StepValues};

/// Rows of a value of this shape times a matrix.
pub(super) fn rows(
    compiler: &mut Compiler,
    form: Form,
    weights: &SignedWeights,
    layout: MatrixLayout,
    shape: &[usize],
) -> Result<WeightedProduct, Error> {
    let [first, second] = [weights.shape[0], weights.shape[1]];
    let [depth, columns] = match layout {
        MatrixLayout::ColumnAfterColumn => [second, first],
        MatrixLayout::DepthFirst => [first, second],
    };
    let packed = compiler
        .matrices
        .pack(form, weights, layout, [depth, columns])?;
    let count = shape.iter().product::<usize>() / depth.max(1);
    Ok(WeightedProduct::Rows(count, packed))
}

/// A convolution of a batch of images. `form` is that of dense products; depthwise and transposed ones
/// take the compiler's.
pub(super) fn images(
    compiler: &mut Compiler,
    form: Form,
    weights: &SignedWeights,
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
        let packed = compiler
            .matrices
            .pack(form, weights, layout, [inputs, outputs])?;
        return Ok(WeightedProduct::Rows(rows, packed));
    }
    let kernel = if transposed {
        PackedConvolution::Transposed(TransposedWeights::pack(
            compiler.form,
            values,
            of,
            window,
            zeros,
        )?)
    } else if groups > 1 && groups == inputs && groups == outputs {
        let packed = DepthwiseWeights::pack(compiler.form, values, outputs, window.kernel, zeros)?;
        PackedConvolution::Depthwise(packed)
    } else {
        let to = ImageSize::of(output);
        let best = Way::best(form, &of, window, [to.height, to.width]);
        let way = compiler.winograd_budget.way(best, values.len());
        PackedConvolution::Dense(ConvWeights::pack((form, way), values, of, zeros)?)
    };
    Ok(WeightedProduct::Convolution(Box::new(ConvolutionBatch {
        kernel,
        window: window.clone(),
        images: output[0],
        from: ImageSize::of(shape),
        to: ImageSize::of(output),
    })))
}

/// Bytes of a factor: one plane for eight-bit integers; for 16 bits the high and the low bytes,
/// in this order.
pub(super) fn byte_planes<'a>(
    compiler: &mut Compiler<'a>,
    operand: &'a IrOperand,
    layout: MemoryLayout,
    transposed: bool,
) -> Result<Vec<BytePlane>, ProgramError> {
    let bytes = |source, zero_point, weight| BytePlane {
        source,
        zero_point,
        weight,
        scale: operand.scale(),
    };
    let mut factor_planes = match operand {
        IrOperand::Int16(_, int16) => {
            let planes = [Plane::High, Plane::Low].into_iter();
            let sources = planes.zip(compiler.planes(operand, layout)?);
            sources
                .map(|(plane, source)| bytes(source, int16.grid.zero_of(plane), plane.weight()))
                .collect()
        }
        _ => {
            let zero_point = operand.quantized()?.zero_point;
            vec![bytes(compiler.operand(operand, layout)?, zero_point, 1.0)]
        }
    };
    if transposed {
        let shape = compiler.shape_of(operand)?;
        for BytePlane { source, .. } in &mut factor_planes {
            let kernel = Box::new(Permute {
                sizes: shape.to_vec(),
                order: vec![1, 0],
            });
            *source = compiler.bytes(kernel, vec![source.clone()], shape);
        }
    }
    Ok(factor_planes)
}

/// A product with weights, of eight-bit or 16-bit values.
pub(super) fn product_of_planes(
    compiler: &mut Compiler,
    step: &StepValues,
    factor_planes: Vec<BytePlane>,
    output: &[usize],
    (bias, factors): (&[i32], AccumulatorScales),
    weighted: WeightedProduct,
) -> Result<InputSource, CompilerBug> {
    let bias = (!bias.is_empty()).then(|| bias.to_vec());
    let to = step.quantization.map(|to| target(to, step.bounds));
    let kernel: Box<dyn InstructionKernel> = match &factor_planes[..] {
        [high, low] => {
            let each = [high, low];
            Box::new(Int16Product {
                weighted,
                bias,
                zero_points: each.map(|one| one.zero_point),
                epilogues: each.map(|one| factors.epilogue(step, &[one.scale, one.weight], None)),
                to: match to {
                    Some(to) => CombinedOutput::Bytes(to),
                    None => CombinedOutput::Reals(step.int16.map(|int16| int16.grid)),
                },
            })
        }
        [only] => Box::new(BytesProduct {
            weighted,
            bias,
            zero_point: only.zero_point,
            epilogue: ProductEpilogue {
                rounding: step.int16.map(|int16| int16.grid),
                ..factors.epilogue(step, &[only.scale], to)
            },
        }),
        _ => return Err(CompilerBug::MissingOperand),
    };
    let sources = factor_planes.into_iter().map(|one| one.source).collect();
    Ok(compiler.add(kernel, sources, output_element(step), output))
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
        step: &StepValues,
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

pub(super) fn output_element(step: &StepValues) -> BufferElement {
    match step.quantization {
        Some(_) => BufferElement::Byte,
        None => BufferElement::Float,
    }
}
