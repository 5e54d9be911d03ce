//! Arithmetic on several inputs that are broadcast to a common shape.

use super::Property::{Activation, Arithmetic, EndsClassifier, IdleWithOneInput, PassesInfinity};
use super::descriptor::ALL_INPUTS;
use super::elements::{two, two_floats};
use super::node_context::{NodeContext, Validation, ensure, refuse};
use super::opset_context::{Adapted, OpsetContext};
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use super::{Operator, QLinearInputs, Treatment};
use crate::Node;
use crate::inferred_value::InferredValue;

const fn broadcasting(name: &'static str) -> Operator {
    Operator::onnx(name)
        .checks_shapes(|ctx| ctx.inputs_broadcast())
        .infers(computed)
}

const fn arithmetic(name: &'static str) -> Operator {
    broadcasting(name).with(&[Arithmetic])
}

const fn bitwise(name: &'static str) -> Operator {
    Operator::onnx(name).checks_shapes(|ctx| ctx.inputs_broadcast())
}

pub(super) static OPERATORS: &[Operator] = &[
    arithmetic("Add")
        .requires(2)
        .changed(&[(7, align)])
        .integers(|_, row| two(row).and_then(|(a, b)| a.checked_add(b)))
        .floats(|row| two_floats(row).map(|(a, b)| a + b))
        .with(&[PassesInfinity, EndsClassifier])
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearAdd", QLinearInputs::Binary)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Adds),
    bitwise("BitShift"),
    bitwise("BitwiseAnd"),
    bitwise("BitwiseOr"),
    bitwise("BitwiseXor"),
    arithmetic("Div")
        .requires(2)
        .changed(&[(7, align)])
        .checks(no_zero)
        // Truncates towards zero, as in C.
        .integers(|_, row| two(row).and_then(|(a, b)| a.checked_div(b)))
        .floats(|row| two_floats(row).map(|(a, b)| a / b))
        .quantized_here(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Divides),
    arithmetic("Max")
        .integers(|_, row| all(row)?.into_iter().max())
        .with(&[IdleWithOneInput])
        .quantized_here(Treatment::Elementwise)
        .channels(ChannelRole::Adds),
    broadcasting("Mean")
        .with(&[IdleWithOneInput])
        .channels(ChannelRole::Adds),
    arithmetic("Min")
        .integers(|_, row| all(row)?.into_iter().min())
        .with(&[IdleWithOneInput])
        .quantized_here(Treatment::Elementwise)
        .channels(ChannelRole::Adds),
    broadcasting("Mod")
        .requires(2)
        .checks(no_zero)
        .integers(remainder),
    arithmetic("Mul")
        .requires(2)
        .changed(&[(7, align)])
        .integers(|_, row| two(row).and_then(|(a, b)| a.checked_mul(b)))
        .floats(|row| two_floats(row).map(|(a, b)| a * b))
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearMul", QLinearInputs::Binary)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Multiplies),
    broadcasting("PRelu")
        .with(&[Activation])
        .requires(2)
        .changed(&[(7, align_slope)])
        .checks_shapes(slopes)
        .infers_same()
        .quantized_here(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Commutes),
    arithmetic("Pow").requires(2).changed(&[(7, align)]),
    arithmetic("Sub")
        .requires(2)
        .changed(&[(7, align)])
        .integers(|_, row| two(row).and_then(|(a, b)| a.checked_sub(b)))
        .floats(|row| two_floats(row).map(|(a, b)| a - b))
        .with(&[PassesInfinity])
        .quantized_here(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Adds),
    broadcasting("Sum")
        .with(&[IdleWithOneInput])
        .channels(ChannelRole::Adds),
];

fn computed(ctx: &ShapeContext) -> Option<InferredValue> {
    let element = ctx.input(0).or(ctx.input(1))?.element;
    Some(ctx.broadcast(element))
}

fn all(row: &[Option<i64>]) -> Option<Vec<i64>> {
    row.iter().copied().collect()
}

/// The remainder has the sign of the divisor, as in Python, unless `fmod` asks for C's.
fn remainder(node: &Node, row: &[Option<i64>]) -> Option<i64> {
    let (dividend, divisor) = two(row)?;
    let rest = dividend.checked_rem(divisor)?;
    let python = node.int("fmod").unwrap_or(0) == 0;
    Some(if python && rest != 0 && (rest < 0) != (divisor < 0) {
        rest + divisor
    } else {
        rest
    })
}

/// Checks that a constant divisor has no zero.
fn no_zero(ctx: &NodeContext) -> Validation {
    let divisors = ctx.input(1).and_then(|known| known.integers.as_ref());
    match divisors.is_some_and(|divisors| divisors.contains(&Some(0))) {
        true => refuse("its divisor", 0, "not 0"),
        false => Ok(()),
    }
}

/// Checks PRelu, which broadcasts only the slope.
fn slopes(ctx: &NodeContext) -> Validation {
    ctx.inputs_broadcast()?;
    match (ctx.shape(0), ctx.shape(1)) {
        (Some(values), Some(slopes)) if ctx.node.attribute("axis").is_none() => ensure(
            slopes.len() <= values.len(),
            "the shape of its inputs",
            [values, slopes],
            "of no more axes in the second than in the first",
        ),
        _ => Ok(()),
    }
}

/// Changes to opset 7: before, an attribute requested broadcasting, and an axis aligned the shapes.
pub(super) fn align(to: &mut OpsetContext, mut node: Node) -> Adapted {
    let wanted = node.take("broadcast").and_then(|a| a.as_int()).unwrap_or(0) != 0;
    let axis = node.take("axis").and_then(|a| a.as_int());
    match axis.filter(|_| wanted) {
        Some(axis) => align_with(to, node, axis),
        None => {
            // Without an axis the shapes align at their ends, as today.
            to.write(node);
            Ok(())
        }
    }
}

/// Changes PRelu to opset 7. Its slope had one number for each channel, at axis 1.
fn align_slope(to: &mut OpsetContext, mut node: Node) -> Adapted {
    node.take("broadcast");
    node.take("axis");
    let (values, slope) = (to.shape(node.input_at(0)), to.shape(node.input_at(1)));
    if values.is_some() && slope.is_some_and(|slope| slope.len() != 1) {
        to.write(node);
        return Ok(());
    }
    align_with(to, node, 1)
}

/// Appends axes of size 1 to the second input, so that it aligns with `axis` of the first.
fn align_with(to: &mut OpsetContext, mut node: Node, axis: i64) -> Adapted {
    let rank = |value| to.shape(value).map(<[_]>::len);
    let (Some(left), Some(right)) = (rank(node.input_at(0)), rank(node.input_at(1))) else {
        return Err("the shapes that it broadcasts are unknown".to_owned());
    };
    let axis = if axis < 0 { axis + left as i64 } else { axis } as usize;
    let after = left
        .checked_sub(axis + right)
        .ok_or("its axis lies outside the shape")?;
    if after > 0 {
        let axes: Vec<i64> = (right as i64..(right + after) as i64).collect();
        let axes = to.integers(&node, "axes", &axes);
        let aligned = to.value(&node, "aligned");
        to.write(Node::new(
            "Unsqueeze",
            &aligned,
            &[&node.input[1], &axes],
            &[&aligned],
        ));
        node.input[1] = aligned;
    }
    to.write(node);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Floats;
    use super::super::test_models::{PICTURE, node, refused, taken};

    #[test]
    fn operands_that_do_not_broadcast_are_rejected() {
        let five = [0.0; 5];
        for operator in ["Add", "Max", "Where", "PRelu", "Equal"] {
            let twice = [Floats(&[5], &five), Floats(&[5], &five)];
            let error = refused(node(operator), PICTURE, &twice);
            let expected = "the shape of its inputs is [[1, 4, 6, 6], [5]";
            assert!(error.contains(expected), "{error}");
        }
        taken(node("Add"), PICTURE, &[Floats(&[4, 1, 6], &[0.0; 24])]);
        taken(node("Mul"), PICTURE, &[Floats(&[3, 1, 1, 1], &[0.0; 3])]);
    }
}
