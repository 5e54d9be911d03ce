//! Operators that only move or compare values, so they work on integers as on reals.

use super::pairs::{QdqPairs, QuantizedValue};
use super::{IntegerNode, IntegerOutputs};
use octet_graph::operators::Operator;
use octet_graph::{Names, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// Converts an operator that works on any type, if input and outputs have one scale.
pub(super) fn in_place_operator(node: &Node, opset: i64, pairs: &QdqPairs) -> Option<IntegerNode> {
    if !works_on_integers(node, opset) {
        return None;
    }
    let input = pairs.bytes(node.input_at(0)?)?;
    let all = node.is("Split");
    let outputs = &node.output[..if all { node.output.len() } else { 1 }];
    let mut read = outputs.iter().filter(|name| !pairs.is_unread(name));
    let shares = |name: &String| {
        let output = pairs.quantized(name);
        output.is_some_and(|output| pairs.is_same_grid(&input, &output))
    };
    if outputs.is_empty() || !read.clone().all(shares) || read.next().is_none() {
        return None;
    }
    Some(reading_integers(
        node,
        &input,
        if all {
            IntegerOutputs::All
        } else {
            IntegerOutputs::First
        },
    ))
}

/// Converts Pad: the padding value is quantized with the input's scale, and zero becomes the zero
/// point.
pub(super) fn pad(node: &Node, pairs: &QdqPairs, names: &mut Names) -> Option<IntegerNode> {
    let input = pairs.bytes(node.input_at(0)?)?;
    let output = pairs.quantized(node.output.first()?)?;
    if !pairs.is_same_grid(&input, &output) {
        return None;
    }
    let mut converted = reading_integers(node, &input, IntegerOutputs::First);
    if node.text("mode").unwrap_or("constant") != "constant" {
        // Other modes ignore the padding value, but one of float type is an error.
        if let Some(unread) = converted.node.input.get_mut(2) {
            unread.clear();
        }
        return Some(converted);
    }
    let integer = match node.input_at(2) {
        None => *pairs.zero_points(&input)?.first()?,
        Some(value) => {
            let value = pairs.real_constant(value)?;
            let (scale, zero_point) = (pairs.scales(&input)?[0], pairs.zero_points(&input)?[0]);
            let (low, high) = match input.element {
                DataType::Int8 => (-128.0, 127.0),
                _ => (0.0, 255.0),
            };
            let integer = (value / scale).round_ties_even() + zero_point as f32;
            integer.clamp(low, high) as i64
        }
    };
    let name = names.fresh(&format!("{}_padding", node.output[0]));
    let bytes = vec![integer as u8];
    let constant = TensorProto::from_raw(&name, input.element, &[], bytes.into());
    converted.constants.push(constant);
    let inputs = &mut converted.node.input;
    inputs.resize(inputs.len().max(3), String::new());
    inputs[2] = name;
    Some(converted)
}

/// Converts ArgMax. A positive scale keeps the order of values, and ties.
pub(super) fn arg_max(node: &Node, pairs: &QdqPairs) -> Option<IntegerNode> {
    let input = pairs.bytes(node.input_at(0)?)?;
    let rises = pairs.scales(&input)?[0] > 0.0;
    rises.then(|| reading_integers(node, &input, IntegerOutputs::None))
}

/// True if ONNX and ONNX Runtime define the operator for 8-bit integers in this opset, with
/// unchanged meaning.
///
/// Interpolation doesn't qualify. ONNX Runtime's Resize truncates to an integer, so u8 is half a
/// step too low on average, and it has no cubic mode.
fn works_on_integers(node: &Node, opset: i64) -> bool {
    let first = Operator::of(node).integer_opset;
    first > 0 && opset >= first && (!node.is("Resize") || resizes_integers(node, opset))
}

fn resizes_integers(node: &Node, opset: i64) -> bool {
    let nearest = node.text("mode").unwrap_or("nearest") == "nearest";
    let fills = node.text("coordinate_transformation_mode") == Some("tf_crop_and_resize");
    // In opsets 11 and 12, ONNX Runtime requires a float region of interest.
    nearest && !fills && !(11..=12).contains(&opset)
}

/// Copies a node so that it reads the integers.
fn reading_integers(node: &Node, input: &QuantizedValue, outputs: IntegerOutputs) -> IntegerNode {
    let mut node = node.clone();
    node.input[0].clone_from(&input.integers);
    IntegerNode {
        node,
        outputs,
        constants: Vec::new(),
    }
}
