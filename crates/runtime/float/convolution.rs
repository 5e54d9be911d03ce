//! A convolution on our float kernels that reads its weights from the model's bytes.

use std::sync::Arc;

use bytes::Bytes;
use octet_kernels::float::{self, Geometry};
use tract_onnx::tract_core::ops::Cost;
use tract_onnx::tract_core::ops::cnn::{Conv, KernelFormat};
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_core::ops::nn::DataFormat;
use tract_onnx::tract_core::{as_op, op_as_typed_op, op_out_of_plan};
use tract_onnx::tract_hir::internal::*;

use super::clamp::Clamp;
use crate::weights;

/// Replaces tract's convolution.
#[derive(Clone, Debug)]
pub(crate) struct FloatConvolution {
    kernel: Arc<float::Convolution<Bytes>>,
    clamp: Clamp,
    /// Shape of the output, with batch and channels.
    shape: TVec<usize>,
}

impl FloatConvolution {
    /// Replaces a convolution that our kernels support: float, two-dimensional, channels first,
    /// with known sizes and constant weights.
    pub(super) fn from_tract(
        conv: &Conv,
        model: &TypedModel,
        node: &TypedNode,
    ) -> TractResult<Option<FloatConvolution>> {
        let fact = model.outlet_fact(node.inputs[0])?;
        let pool = &conv.pool_spec;
        if fact.datum_type != f32::datum_type()
            || conv.q_params.is_some()
            || pool.data_format != DataFormat::NCHW
            || conv.kernel_fmt != KernelFormat::OIHW
            || pool.rank() != 2
        {
            return Ok(None);
        }
        let (Some(input), Some(weights), Some(bias)) = (
            fact.shape.as_concrete(),
            weights(model, node.inputs[1])?,
            constant(model, node.inputs[2])?,
        ) else {
            return Ok(None);
        };
        let shape = pool.output_shape(input)?.shape;
        let padding = pool.computed_padding(&input[2..]);
        let pair = |of: &dyn Fn(usize) -> usize| [of(0), of(1)];
        let geometry = Geometry {
            input_channels: conv.input_channels(),
            output_channels: conv.output_channels(),
            groups: conv.group,
            input: pair(&|axis| input[2 + axis]),
            output: pair(&|axis| shape[2 + axis]),
            kernel: pair(&|axis| pool.kernel_shape[axis]),
            stride: pair(&|axis| pool.stride(axis)),
            dilation: pair(&|axis| pool.dilation(axis)),
            pad: pair(&|axis| padding[axis].pad_before),
        };
        let bias = bias.try_as_plain_ram()?.as_slice::<f32>()?;
        let bias = match bias {
            [all] => vec![*all; conv.output_channels()],
            each => each.to_vec(),
        };
        // tract runs a convolution that our kernels don't support.
        let kernel = float::Convolution::new(geometry, weights, bias).ok();
        Ok(kernel.map(|kernel| FloatConvolution {
            kernel: Arc::new(kernel),
            clamp: Clamp::new(f32::NEG_INFINITY, f32::INFINITY),
            shape,
        }))
    }

    /// Appends a clamp.
    pub(super) fn clamped(&self, clamp: Clamp) -> FloatConvolution {
        FloatConvolution {
            clamp: self.clamp.then(clamp),
            ..self.clone()
        }
    }
}

/// Products of an output: a sum over the window and the channels of its group.
fn window_products(geometry: &Geometry) -> usize {
    geometry.input_channels / geometry.groups * geometry.kernel[0] * geometry.kernel[1]
}

/// The bytes of a weight: in the file, or of a computed constant.
fn weights(model: &TypedModel, outlet: OutletId) -> TractResult<Option<Bytes>> {
    if let Some(bytes) = weights::in_file(model, outlet)? {
        return Ok(Some(bytes));
    }
    let Some(value) = constant(model, outlet)? else {
        return Ok(None);
    };
    let floats = value.try_as_plain_ram()?.as_slice::<f32>()?.iter();
    Ok(Some(floats.flat_map(|float| float.to_le_bytes()).collect()))
}

/// The value of an outlet that doesn't depend on the inputs. (tract keeps only small results of
/// constants.)
fn constant(model: &TypedModel, outlet: OutletId) -> TractResult<Option<Arc<Tensor>>> {
    if let Some(known) = &model.outlet_fact(outlet)?.konst {
        return Ok(Some(known.clone()));
    }
    let node = model.node(outlet.node);
    if let Some(constant) = node.op_as::<Const>() {
        return Ok(Some(constant.val().clone()));
    }
    if node.inputs.is_empty() {
        return Ok(None);
    }
    let mut inputs = tvec!();
    for &input in &node.inputs {
        let Some(value) = constant(model, input)? else {
            return Ok(None);
        };
        inputs.push(value.into_tvalue());
    }
    let outputs = node.op.eval_out_of_plan(inputs)?;
    Ok(outputs.map(|outputs| outputs[outlet.slot].clone().into_arc_tensor()))
}

impl PartialEq for FloatConvolution {
    fn eq(&self, other: &FloatConvolution) -> bool {
        Arc::ptr_eq(&self.kernel, &other.kernel) && self.clamp == other.clamp
    }
}

impl Eq for FloatConvolution {}

impl std::hash::Hash for FloatConvolution {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.kernel), self.clamp).hash(state);
    }
}

impl Op for FloatConvolution {
    fn name(&self) -> StaticName {
        "Convolution".into()
    }

    fn info(&self) -> TractResult<Vec<String>> {
        Ok(vec![format!("{:?}", self.kernel.geometry())])
    }

    op_as_typed_op!();
}

impl EvalOp for FloatConvolution {
    op_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let input = args_1!(inputs);
        // SAFETY: every float is written below, or the error drops the tensor unread; floats need
        // no drop.
        let mut output = unsafe { Tensor::uninitialized::<f32>(&self.shape)? };
        let geometry = self.kernel.geometry();
        let values = input.try_as_plain_ram()?.as_slice::<f32>()?;
        let pictures = values.chunks_exact(geometry.input_len());
        let mut plain = output.try_as_plain_ram_mut()?;
        let outputs = plain.as_slice_mut::<f32>()?;
        // A product of a depthwise convolution takes several times as long as one of a matrix.
        let weight = match geometry.groups == geometry.input_channels && geometry.groups > 1 {
            true => 4,
            false => 1,
        };
        let products = geometry.output_len() * window_products(geometry) * weight;
        // A thread of the pool runs one of several samples, so it has no others to share with.
        let most = match octet_int8::is_worker() {
            true => 1,
            false => octet_int8::pieces(octet_int8::cost_of_product(products)),
        };
        let bounds = (self.clamp.low, self.clamp.high);
        for (input, output) in pictures.zip(outputs.chunks_exact_mut(geometry.output_len())) {
            self.kernel
                .run_in_parts(input, output, bounds, most, &octet_int8::run_pieces)?;
        }
        Ok(tvec!(output.into_tvalue()))
    }
}

impl TypedOp for FloatConvolution {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(inputs[0].datum_type.fact(&self.shape)))
    }

    fn cost(&self, _inputs: &[&TypedFact]) -> TractResult<TVec<(Cost, TDim)>> {
        let each = window_products(self.kernel.geometry());
        let products = self.shape.iter().product::<usize>() * each;
        Ok(tvec!((Cost::FMA(f32::datum_type()), products.to_dim())))
    }

    as_op!();
}
