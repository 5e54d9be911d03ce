//! Softmax and its relatives along an axis.

use super::Property::{Gates, Squashes};
use super::opset_context::{Adapted, OpsetContext};
use super::{Operator, QLinearInputs, Treatment};
use crate::{Attribute, Node};

const fn along_axis(name: &'static str) -> Operator {
    Operator::onnx(name)
        .ranks(&[(0, 1)])
        .changed(&[(13, along_last_axis)])
        .checks(|ctx| ctx.axis_in_range())
        .infers_same()
}

pub(super) static OPERATORS: &[Operator] = &[
    along_axis("Hardmax"),
    along_axis("LogSoftmax").with(&[Squashes]),
    along_axis("Softmax")
        .at_most(1)
        .with(&[Squashes, Gates])
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearSoftmax", QLinearInputs::Unary)
        .same_type(1),
];

/// Changes to opset 13: before, softmax ran over all axes from `axis` (default 1) on, taken as one. Along the
/// last axis this is today's meaning. Otherwise the value is flattened for it and reshaped back.
fn along_last_axis(to: &mut OpsetContext, mut node: Node) -> Adapted {
    let axis = node.take("axis").and_then(|a| a.as_int()).unwrap_or(1);
    let last = to
        .shape(node.input_at(0))
        .is_some_and(|shape| axis == -1 || axis == shape.len() as i64 - 1)
        || axis == -1;
    node.set(Attribute::int("axis", -1));
    if last {
        to.write(node);
        return Ok(());
    }
    let input = node.input_at(0).ok_or("it has no input")?.to_owned();
    let output = node.output.first().ok_or("it has no output")?.clone();
    let shape = to.value(&node, "shape");
    let flat = to.value(&node, "flat");
    let flat_result = to.value(&node, "flat_result");
    to.write(Node::new("Shape", &shape, &[&input], &[&shape]));
    let flatten = Node::new("Flatten", &flat, &[&input], &[&flat]);
    to.write(flatten.with(Attribute::int("axis", axis)));
    node.input[0] = flat;
    node.output[0] = flat_result.clone();
    to.write(node);
    let name = to.value(&Node::default(), &format!("{output}_unflatten"));
    to.write(Node::new(
        "Reshape",
        &name,
        &[&flat_result, &shape],
        &[&output],
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::{PICTURE, int, refused, taken};

    #[test]
    fn the_axis_is_one_of_the_input() {
        for (operator, axis) in [("Softmax", 4), ("LogSoftmax", -5)] {
            let error = refused(int(operator, "axis", axis), PICTURE, &[]);
            assert!(error.contains("axis"), "{error}");
        }
        taken(int("Softmax", "axis", -4), PICTURE, &[]);
    }
}
