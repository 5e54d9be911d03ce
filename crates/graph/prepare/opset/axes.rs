//! Changes of opset 13: axes as inputs, and softmax along one axis.

use super::{Adapted, Adapter, set_input};
use octet_onnx::schema::{AttributeProto, NodeProto};

/// Moves a list attribute to the second input.
pub(super) fn as_input(to: &mut Adapter, mut node: NodeProto, key: &str) -> Adapted {
    if let Some(attribute) = node.take(key) {
        let name = to.integers(&node, key, &attribute.ints);
        set_input(&mut node, 1, name);
    }
    to.write(node);
    Ok(())
}

/// Before opset 13 softmax ran over all axes from `axis` (default 1) on, taken as one. Along the
/// last axis this is today's meaning. Otherwise the value is flattened for it and reshaped back.
pub(super) fn softmax(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    let axis = node.take("axis").and_then(|a| a.i).unwrap_or(1);
    let last = to
        .shape(node.input_at(0))
        .is_some_and(|shape| axis == -1 || axis == shape.len() as i64 - 1)
        || axis == -1;
    node.set(AttributeProto::int("axis", -1));
    if last {
        to.write(node);
        return Ok(());
    }
    let input = node.input_at(0).ok_or("it has no input")?.to_owned();
    let output = node.output.first().ok_or("it has no output")?.clone();
    let shape = to.value(&node, "shape");
    let flat = to.value(&node, "flat");
    let flat_result = to.value(&node, "flat_result");
    to.write(NodeProto::new("Shape", &shape, &[&input], &[&shape]));
    let flatten = NodeProto::new("Flatten", &flat, &[&input], &[&flat]);
    to.write(flatten.with(AttributeProto::int("axis", axis)));
    node.input[0] = flat;
    node.output[0] = flat_result.clone();
    to.write(node);
    let name = to.value(&NodeProto::default(), &format!("{output}_unflatten"));
    to.write(NodeProto::new(
        "Reshape",
        &name,
        &[&flat_result, &shape],
        &[&output],
    ));
    Ok(())
}
