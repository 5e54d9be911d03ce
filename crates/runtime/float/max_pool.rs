//! Maximum pools of images on our kernel.

use std::sync::Arc;

use octet_kernels::float::{self, Geometry};
use tract_onnx::tract_core::ops::cnn::MaxPool;
use tract_onnx::tract_core::ops::nn::DataFormat;
use tract_onnx::tract_core::{as_op, op_as_typed_op, op_out_of_plan};
use tract_onnx::tract_hir::internal::*;

use crate::share_rows::share_rows;

/// Replaces tract's pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FloatMaxPool {
    kernel: Arc<float::MaxPooling>,
    /// Shape of the output.
    shape: TVec<usize>,
}

impl FloatMaxPool {
    /// Replaces a pool that our kernel supports: float, two-dimensional, channels first, with known
    /// sizes and without indices.
    pub(super) fn from_tract(
        model: &TypedModel,
        node: &TypedNode,
    ) -> TractResult<Option<FloatMaxPool>> {
        let Some(pool) = node.op_as::<MaxPool>() else {
            return Ok(None);
        };
        let fact = model.outlet_fact(node.inputs[0])?;
        let spec = &pool.pool_spec;
        let plain = fact.datum_type == f32::datum_type()
            && pool.with_index_outputs.is_none()
            && spec.data_format == DataFormat::NCHW
            && spec.rank() == 2;
        let Some(input) = fact.shape.as_concrete().filter(|_| plain) else {
            return Ok(None);
        };
        let shape = spec.output_shape(input)?.shape;
        let padding = spec.computed_padding(&input[2..]);
        let pair = |of: &dyn Fn(usize) -> usize| [of(0), of(1)];
        let geometry = Geometry {
            input_channels: 1,
            output_channels: 1,
            groups: 1,
            input: pair(&|axis| input[2 + axis]),
            output: pair(&|axis| shape[2 + axis]),
            kernel: pair(&|axis| spec.kernel_shape[axis]),
            stride: pair(&|axis| spec.stride(axis)),
            dilation: pair(&|axis| spec.dilation(axis)),
            pad: pair(&|axis| padding[axis].pad_before),
        };
        // tract runs a pool that our kernel doesn't support.
        let kernel = float::MaxPooling::new(geometry).ok();
        Ok(kernel.map(|kernel| FloatMaxPool {
            kernel: Arc::new(kernel),
            shape,
        }))
    }
}

impl Op for FloatMaxPool {
    fn name(&self) -> StaticName {
        "MaxPool".into()
    }

    op_as_typed_op!();
}

impl EvalOp for FloatMaxPool {
    op_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let input = args_1!(inputs);
        // SAFETY: every float is written below, or the error drops the tensor unread; floats need
        // no drop.
        let mut output = unsafe { Tensor::uninitialized::<f32>(&self.shape)? };
        let geometry = self.kernel.geometry();
        let (from, to) = (geometry.input_len(), geometry.output_len());
        let input = input.try_as_plain_ram()?;
        let values = input.as_slice::<f32>()?;
        let mut plain = output.try_as_plain_ram_mut()?;
        let outputs = plain.as_slice_mut::<f32>()?;
        ensure!(
            values.len() / from * to == outputs.len(),
            "the input of a pool has {} floats",
            values.len()
        );
        let cost = values.len() * geometry.kernel[0];
        let failed = std::sync::Mutex::new(None);
        share_rows(outputs, to, cost, |planes, output| {
            let input = &values[planes.start * from..planes.end * from];
            if let Err(error) = self.kernel.run(input, output) {
                let mut failed = failed
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                *failed = Some(error);
            }
        });
        match failed.into_inner() {
            Ok(None) => Ok(tvec!(output.into_tvalue())),
            Ok(Some(error)) => Err(error.into()),
            Err(_) => bail!("a part of a pool panicked"),
        }
    }
}

impl TypedOp for FloatMaxPool {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(inputs[0].datum_type.fact(&self.shape)))
    }

    as_op!();
}
