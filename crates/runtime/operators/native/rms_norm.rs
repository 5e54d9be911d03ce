//! Normalizations by the root of the mean of squares: RMSNormalization, and ONNX Runtime's
//! SimplifiedLayerNormalization and SkipSimplifiedLayerNormalization.

use octet_graph::prepare::count;
use tract_onnx::tract_hir::internal::*;

use super::{NativeCall, NativeKernel};
use crate::operator_inputs::axis_of;

pub(super) static KERNELS: &[NativeKernel] = &[
    NativeKernel::several("RMSNormalization", |call, made| {
        normalize_one(call, made, 1e-5)
    }),
    NativeKernel::several("SimplifiedLayerNormalization", |call, made| {
        normalize_one(call, made, 1e-5)
    }),
    NativeKernel::several("SkipSimplifiedLayerNormalization", normalize_sum),
];

/// Divides a vector by the root of its mean square plus epsilon, and multiplies it by the scale,
/// which is repeated. Returns the reciprocal of the root.
pub(super) fn normalize(vector: &mut [f32], scale: &[f32], epsilon: f32) -> f32 {
    let squares = octet_kernels::sum_of_squares(vector) / vector.len().max(1) as f64;
    let by = (1.0 / (squares + f64::from(epsilon)).sqrt()) as f32;
    for part in vector.chunks_mut(scale.len().max(1)) {
        for (value, scale) in part.iter_mut().zip(scale) {
            *value *= by * scale;
        }
    }
    by
}

fn normalize_one(call: &NativeCall, made: &mut [Tensor], usual: f32) -> TractResult<()> {
    let shape = call.tensor(0)?.shape();
    let axis = axis_of(call.node.int("axis").unwrap_or(-1), shape.len())?;
    let (width, scale) = (count(&shape[axis..]), call.tensor(1)?);
    let leading = scale.shape().iter().take_while(|&&size| size == 1).count();
    let own = &scale.shape()[leading..];
    ensure!(
        own.is_empty() || shape[axis..].ends_with(own),
        "its scale of shape {:?} must end like its input of shape {shape:?}",
        scale.shape()
    );
    let epsilon = call.node.float("epsilon").unwrap_or(usual);
    let (scale, input) = (call.floats(1)?, call.floats(0)?);
    let mut inverse = Vec::new();
    let mut normal = input.to_vec();
    if width > 0 {
        let each = normal.chunks_exact_mut(width);
        inverse.extend(each.map(|vector| normalize(vector, scale, epsilon)));
    }
    call.fill(made, 0, &normal)?;
    call.fill(made, 1, &inverse)
}

fn normalize_sum(call: &NativeCall, made: &mut [Tensor]) -> TractResult<()> {
    let (one, other, scale) = (call.floats(0)?, call.floats(1)?, call.floats(2)?);
    let bias = call.optional_floats(3)?;
    let shape = call.tensor(0)?.shape();
    let width = shape.last().copied().unwrap_or(0);
    let fits = |list: &[f32]| list.len() == width;
    ensure!(
        fits(scale) && bias.is_none_or(fits),
        "its scale and bias must have {width} numbers each"
    );
    let repeats =
        !other.is_empty() && one.len() % other.len() == 0 && other.len() % width.max(1) == 0;
    ensure!(
        repeats || one.is_empty(),
        "its second input of shape {:?} must end like its input of shape {shape:?}",
        call.tensor(1)?.shape()
    );
    let mut sum = one.to_vec();
    for part in sum.chunks_mut(other.len().max(1)) {
        for (sum, other) in part.iter_mut().zip(other) {
            *sum += other;
        }
    }
    if let Some(bias) = bias {
        for vector in sum.chunks_exact_mut(width.max(1)) {
            for (sum, bias) in vector.iter_mut().zip(bias) {
                *sum += bias;
            }
        }
    }
    call.fill(made, 3, &sum)?;
    let epsilon = call.node.float("epsilon").unwrap_or(1e-12);
    for vector in sum.chunks_exact_mut(width.max(1)) {
        normalize(vector, scale, epsilon);
    }
    call.fill(made, 0, &sum)
}
