//! Octet's own operators: one that occurs while a model runs, and the markers of a flat model.

use super::Operator;
use super::Property::MergesInputs;
use super::quantization::SUBGRAPHS;
use super::shape_context::ShapeContext;
use crate::inferred_value::InferredValue;
use crate::markers::{BODY_INPUTS, BODY_OUTPUTS};
use octet_onnx::schema::DataType;

/// The operator that runs a region on integers; a region of constants has no input.
pub const REGION: &str = "OctetIntegers";

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx(REGION).requires(0),
    Operator::onnx(BODY_INPUTS)
        .requires(0)
        .infers_all(body_inputs)
        .stays_float(SUBGRAPHS),
    Operator::onnx(BODY_OUTPUTS)
        .requires(0)
        .with(&[MergesInputs])
        .infers_all(body_outputs)
        .stays_float(SUBGRAPHS),
];

/// The type of an input; its shape may change from one iteration to the next.
fn element(ctx: &ShapeContext, slot: usize) -> Option<InferredValue> {
    Some(InferredValue::new(ctx.input(slot)?.element, None))
}

fn body_inputs(ctx: &ShapeContext) -> Vec<Option<InferredValue>> {
    let outputs = 0..ctx.node.output.len();
    if ctx.node.text("operator") != Some("Loop") {
        return outputs.map(|slot| element(ctx, slot)).collect();
    }
    let number = |element| Some(InferredValue::new(element, Some(Vec::new())));
    let of = |slot| match slot {
        0 => number(DataType::Int64),
        1 => number(DataType::Bool),
        _ => element(ctx, slot),
    };
    outputs.map(of).collect()
}

fn body_outputs(ctx: &ShapeContext) -> Vec<Option<InferredValue>> {
    let count = ctx.node.output.len();
    // The first output of a Loop's body is its condition.
    let skipped = usize::from(ctx.node.text("operator") == Some("Loop"));
    let of = |slot: usize| {
        // An If has two branches with equal types.
        element(ctx, slot + skipped).or_else(|| element(ctx, slot + count))
    };
    (0..count).map(of).collect()
}
