//! Operators that take each element alone, or two elements.

use octet_graph::Node;
use octet_quantize::clamp_bounds;
use octet_training::reverse::{Pairwise, ReverseOperation, ScalarFunction};

use super::Builder;

fn pairwise(node: &Node) -> Option<Pairwise> {
    let known = [
        ("Add", Pairwise::Add),
        ("Sum", Pairwise::Add),
        ("Sub", Pairwise::Subtract),
        ("Mul", Pairwise::Multiply),
        ("Div", Pairwise::Divide),
    ];
    let found = known.into_iter().find(|(name, _)| node.is(name));
    found.map(|(_, of)| of)
}

fn curve(node: &Node) -> Option<ScalarFunction> {
    let float = |name: &str, usual: f32| node.float(name).unwrap_or(usual);
    let gelu = match node.text("approximate") {
        Some("tanh") => ScalarFunction::GeluTanh,
        _ => ScalarFunction::Gelu,
    };
    let hard = ScalarFunction::HardSigmoid(float("alpha", 0.2), float("beta", 0.5));
    let known = [
        ("Sigmoid", ScalarFunction::Sigmoid),
        ("Tanh", ScalarFunction::Tanh),
        ("HardSigmoid", hard),
        ("HardSwish", ScalarFunction::HardSwish),
        ("Erf", ScalarFunction::Erf),
        ("Gelu", gelu),
        ("Exp", ScalarFunction::Exp),
        ("Log", ScalarFunction::Log),
        ("Sqrt", ScalarFunction::Sqrt),
        ("Reciprocal", ScalarFunction::Reciprocal),
        ("Neg", ScalarFunction::Negative),
        ("Abs", ScalarFunction::Absolute),
        ("Softplus", ScalarFunction::Softplus),
        ("Elu", ScalarFunction::Elu(float("alpha", 1.0))),
    ];
    let found = known.into_iter().find(|(name, _)| node.is(name));
    found.map(|(_, curve)| curve)
}

pub(super) fn compile(builder: &mut Builder, node: &Node) -> Option<usize> {
    if let Some(of) = pairwise(node) {
        let mut value = builder.at(node, 0)?;
        for slot in 1..node.input.len() {
            let other = builder.at(node, slot)?;
            value = pair(builder, of, value, other)?;
        }
        return Some(value);
    }
    if let Some((low, high)) = clamp_bounds(builder.graph(), node) {
        let value = builder.at(node, 0)?;
        return Some(builder.push_alike(ReverseOperation::Clamp(low, high), &[value]));
    }
    if let Some(curve) = curve(node) {
        let value = builder.at(node, 0)?;
        return Some(builder.push_alike(ReverseOperation::Curve(curve), &[value]));
    }
    if node.is("LeakyRelu") {
        let value = builder.at(node, 0)?;
        let slope = node.float("alpha").unwrap_or(0.01);
        return Some(builder.push_alike(ReverseOperation::Leaky(slope), &[value]));
    }
    if node.is("Pow") {
        let value = builder.at(node, 0)?;
        let &[exponent] = builder.numbers(node, 1)?.as_slice() else {
            return None;
        };
        return Some(builder.push_alike(
            ReverseOperation::Curve(ScalarFunction::Power(exponent)),
            &[value],
        ));
    }
    if node.is("PRelu") {
        // The positive part, and the slope times the rest.
        let (value, slope) = (builder.at(node, 0)?, builder.at(node, 1)?);
        let positive = builder.push_alike(ReverseOperation::Clamp(0.0, f32::INFINITY), &[value]);
        let rest = pair(builder, Pairwise::Subtract, value, positive)?;
        let rest = pair(builder, Pairwise::Multiply, rest, slope)?;
        return pair(builder, Pairwise::Add, positive, rest);
    }
    None
}

/// An operation on two values, which are repeated to a common shape.
pub(super) fn pair(builder: &mut Builder, of: Pairwise, a: usize, b: usize) -> Option<usize> {
    let [first, second] = [a, b].map(|value| builder.shape(value).to_vec());
    let rank = first.len().max(second.len());
    let size = |of: &[usize], axis: usize| {
        let own = (axis + of.len()).checked_sub(rank);
        own.map_or(1, |own| of[own])
    };
    let axes = 0..rank;
    let shape: Vec<usize> = axes
        .map(|axis| match (size(&first, axis), size(&second, axis)) {
            (1, other) => other,
            (one, _) => one,
        })
        .collect();
    let (a, b) = (builder.repeated(a, &shape)?, builder.repeated(b, &shape)?);
    Some(builder.push(ReverseOperation::Pairwise(of), &[a, b], &shape))
}
