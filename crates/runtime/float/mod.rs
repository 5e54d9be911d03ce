//! Replaces tract's float convolutions, maximum pools and sums, and the clamps behind them, by our
//! kernels where those are faster.
//!
//! [`with_kernels`] rewrites a typed model before tract declutters it. A two-dimensional
//! convolution with constant weights becomes a [`FloatConvolution`], which reads its weights in
//! place. A clamp directly behind it runs where the convolution stores its accumulators. The threads
//! of a run share each operator.

mod clamp;
mod convolution;
mod max_pool;
mod sum;

use std::collections::HashMap;

use tract_onnx::prelude::*;
use tract_onnx::tract_core::model::translator::Translate;
use tract_onnx::tract_core::ops::binary::TypedBinOp;
use tract_onnx::tract_core::ops::cnn::Conv;
use tract_onnx::tract_core::ops::math::{Max, Min};

use clamp::Clamp;
pub(super) use convolution::FloatConvolution;
use max_pool::FloatMaxPool;
use sum::FloatSum;

/// The kernels for float convolutions. Both compute the same sums, in different order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatKernels {
    /// Our kernels, faster in a browser.
    Octet,
    /// tract's kernels, faster natively.
    Tract,
}

impl FloatKernels {
    /// All choices, with their names.
    pub const ALL: [(&str, FloatKernels); 2] = [
        ("octet", FloatKernels::Octet),
        ("tract", FloatKernels::Tract),
    ];
}

/// A name that no float kernels have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown float kernels `{0}`; use {names}", names = FloatKernels::ALL.map(|(known, _)| known).join(" or "))]
pub struct UnknownFloatKernels(String);

impl std::str::FromStr for FloatKernels {
    type Err = UnknownFloatKernels;

    fn from_str(name: &str) -> Result<FloatKernels, UnknownFloatKernels> {
        let listed = FloatKernels::ALL.iter().find(|(known, _)| *known == name);
        let kernels = listed.map(|(_, kernels)| *kernels);
        kernels.ok_or_else(|| UnknownFloatKernels(name.to_owned()))
    }
}

/// Rewrites a model to use our kernels.
pub(super) fn with_kernels(model: &TypedModel) -> TractResult<TypedModel> {
    Kernels.translate_model(model)
}

#[derive(Debug)]
struct Kernels;

type Wires = TVec<OutletId>;

impl Translate<TypedFact, Box<dyn TypedOp>, TypedFact, Box<dyn TypedOp>> for Kernels {
    fn translate_node(
        &self,
        source: &TypedModel,
        node: &TypedNode,
        target: &mut TypedModel,
        mapping: &HashMap<OutletId, OutletId>,
    ) -> TractResult<Wires> {
        if let Some(conv) = node.op_as::<Conv>()
            && let Some(ours) = FloatConvolution::from_tract(conv, source, node)?
        {
            return target.wire_node(&node.name, ours, &[mapping[&node.inputs[0]]]);
        }
        if let Some(ours) = FloatMaxPool::from_tract(source, node)? {
            return target.wire_node(&node.name, ours, &[mapping[&node.inputs[0]]]);
        }
        if let Some(ours) = FloatSum::from_tract(source, node)? {
            let inputs = [0, 1].map(|slot| mapping[&node.inputs[slot]]);
            return target.wire_node(&node.name, ours, &inputs);
        }
        if let Some(clamp) = bounds(source, node) {
            return clamped(clamp, source, node, target, mapping);
        }
        copied(node, target, mapping)
    }
}

/// Returns the clamp that a minimum or maximum with a constant computes.
fn bounds(model: &TypedModel, node: &TypedNode) -> Option<Clamp> {
    let operation = node.op_as::<TypedBinOp>()?;
    let fact = model.outlet_fact(node.inputs[0]).ok()?;
    // A bound with more dimensions would enlarge the result.
    if fact.datum_type != f32::datum_type() || node.outputs[0].fact.shape != fact.shape {
        return None;
    }
    let bound = model.outlet_fact(node.inputs[1]).ok()?.konst.clone()?;
    let bound = bound.as_uniform()?.cast_to_scalar::<f32>().ok()?;
    if bound.is_nan() {
        return None;
    }
    if operation.0.is::<Max>() {
        return Some(Clamp::new(bound, f32::INFINITY));
    }
    operation
        .0
        .is::<Min>()
        .then(|| Clamp::new(f32::NEG_INFINITY, bound))
}

/// Fuses a clamp into the producer of its input if it is the only reader; otherwise adds it as an
/// operator.
fn clamped(
    clamp: Clamp,
    source: &TypedModel,
    node: &TypedNode,
    target: &mut TypedModel,
    mapping: &HashMap<OutletId, OutletId>,
) -> TractResult<Wires> {
    let input = node.inputs[0];
    let made = mapping[&input];
    let alone =
        source.outlet_successors(input).len() == 1 && !source.output_outlets()?.contains(&input);
    let producer = &mut target.nodes[made.node];
    if alone {
        let fused: Option<Box<dyn TypedOp>> =
            if let Some(convolution) = producer.op_as::<FloatConvolution>() {
                Some(Box::new(convolution.clamped(clamp)))
            } else if let Some(sum) = producer.op_as::<FloatSum>() {
                Some(Box::new(sum.clamped(clamp)))
            } else {
                let before = producer.op_as::<Clamp>();
                before.map(|before| Box::new(before.then(clamp)) as Box<dyn TypedOp>)
            };
        if let Some(fused) = fused {
            producer.op = fused;
            return Ok(tvec!(made));
        }
    }
    target.wire_node(&node.name, clamp, &[made])
}

fn copied(
    node: &TypedNode,
    target: &mut TypedModel,
    mapping: &HashMap<OutletId, OutletId>,
) -> TractResult<Wires> {
    let inputs: Wires = node.inputs.iter().map(|input| mapping[input]).collect();
    let facts = node
        .outputs
        .iter()
        .map(|output| output.fact.clone())
        .collect();
    let id = target.add_node(&node.name, node.op.clone(), facts)?;
    for (slot, input) in inputs.into_iter().enumerate() {
        target.add_edge(input, InletId::new(id, slot))?;
    }
    Ok((0..node.outputs.len())
        .map(|output| OutletId::new(id, output))
        .collect())
}

#[cfg(test)]
mod tests;
