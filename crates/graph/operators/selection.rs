//! Operators that select elements by value.

use super::Property::{DataDependentShape, SelectsBoxes};
use super::float16::{NOT_IN_EVERY_OPSET, POSITIONS};
use super::node_context::{MAX_SIZE, NodeContext, Validation, ensure};
use super::opset_context::{Adapted, OpsetContext};
use super::quantization::SHAPES;
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::inferred_value::{InferredValue, position};
use crate::{Dim, Node};
use octet_onnx::schema::DataType;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Compress")
        .checks(|ctx| ctx.axis_in_range())
        .with(&[DataDependentShape]),
    Operator::onnx("NonMaxSuppression")
        .requires(2)
        .infers(|_| {
            let shape = vec![Dim::Unknown, Dim::Known(3)];
            Some(InferredValue::new(DataType::Int64, Some(shape)))
        })
        .with(&[DataDependentShape, SelectsBoxes])
        .float16(NOT_IN_EVERY_OPSET),
    Operator::onnx("NonZero")
        .infers(|ctx| {
            let rank = ctx.input(0)?.shape.as_ref().map(Vec::len);
            let rank = rank.map_or(Dim::Unknown, Dim::Known);
            let shape = vec![rank, Dim::Unknown];
            Some(InferredValue::new(DataType::Int64, Some(shape)))
        })
        .with(&[DataDependentShape])
        .stays_float(SHAPES),
    Operator::onnx("TopK")
        .scalars(&[1])
        .ranks(&[(0, 1)])
        .moved(&[("k", 10)])
        .changed(&[(10, k_as_input)])
        .checks(|ctx| ctx.axis_in_range().and_then(|()| size_of_selection(ctx)))
        .infers_all(top_k)
        .with(&[SelectsBoxes])
        .quantized(Treatment::Share)
        .shape_from(&[1])
        .integers_since(11)
        .float16(POSITIONS),
    Operator::onnx("Unique"),
];

fn top_k(ctx: &ShapeContext) -> Vec<Option<InferredValue>> {
    let Some(input) = ctx.input(0) else {
        return vec![None; 2];
    };
    let k = match ctx.node.int("k") {
        Some(k) => Some(k),
        None => ctx
            .input(1)
            .and_then(|k| k.all_integers()?.first().copied()),
    };
    let k = k
        .and_then(|k| usize::try_from(k).ok())
        .map_or(Dim::Unknown, Dim::Known);
    let shape = input.shape.clone().and_then(|mut shape| {
        let axis = position(ctx.node.int("axis").unwrap_or(-1), shape.len())?;
        shape[axis] = k;
        Some(shape)
    });
    vec![
        Some(InferredValue::new(input.element, shape.clone())),
        Some(InferredValue::new(DataType::Int64, shape)),
    ]
}

fn size_of_selection(ctx: &NodeContext) -> Validation {
    let given = match ctx.node.int("k") {
        Some(k) => Some(k),
        None => ctx.list("", 1).and_then(|k| k.first().copied()),
    };
    let Some(k) = given else { return Ok(()) };
    let axis = ctx.node.int("axis").unwrap_or(-1);
    let rank = ctx.shape(0).map_or(0, <[Dim]>::len);
    let size = position(axis, rank).and_then(|axis| ctx.size(0, axis));
    let most = size.unwrap_or(MAX_SIZE);
    let expected = format!("from 0 to {most}");
    ensure((0..=most).contains(&k), "its k", k, expected)
}

/// Changes TopK to opset 10.
fn k_as_input(to: &mut OpsetContext, mut node: Node) -> Adapted {
    let k = node
        .take("k")
        .and_then(|a| a.as_int())
        .ok_or("it has no k")?;
    let k = to.integers(&node, "k", &[k]);
    node.set_input(1, k);
    to.write(node);
    Ok(())
}
