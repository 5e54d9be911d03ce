//! Integer forms of operators without weights: elementwise, activations, pooling, Concat, Where,
//! embeddings.

use super::pairs::{QdqPairs, QuantizedValue};
use super::{IntegerNode, IntegerOutputs};
use crate::embedding;
use crate::quantized_names::QuantizedNames;
use octet_graph::operators::QLinearForm;
use octet_graph::{Attribute, Node};

/// Converts Add and Mul to QLinearAdd and QLinearMul.
pub(super) fn binary(node: &Node, form: QLinearForm, pairs: &QdqPairs) -> Option<IntegerNode> {
    let left = pairs.bytes(node.input_at(0)?)?;
    let right = pairs.bytes(node.input_at(1)?)?;
    let output = pairs.quantized(node.output.first()?)?;
    same_element(&[&left, &right, &output])?;
    let mut inputs = [left.inputs(), right.inputs()].concat();
    inputs.extend(output.parameters());
    Some(IntegerNode::new(node, form, inputs))
}

/// Converts Sigmoid, LeakyRelu, Softmax and average pooling to `QLinear…` of com.microsoft.
pub(super) fn unary(
    node: &Node,
    form: QLinearForm,
    opset: i64,
    pairs: &QdqPairs,
) -> Option<IntegerNode> {
    if node.is("AveragePool") && !has_same_averages(node) {
        return None;
    }
    let input = pairs.bytes(node.input_at(0)?)?;
    let output = pairs.quantized(node.output.first()?)?;
    same_element(&[&input, &output])?;
    let inputs = [&input.inputs()[..], &output.parameters()].concat();
    let mut converted = IntegerNode::new(node, form, inputs);
    if node.is("GlobalAveragePool") {
        converted.node.set(Attribute::int("channels_last", 0));
    } else if node.is("Softmax") {
        // Opsets differ in meaning and default of the axis, so both are attributes.
        let axis = node.int("axis").unwrap_or(if opset < 13 { 1 } else { -1 });
        converted.node.set(Attribute::int("axis", axis));
        converted.node.set(Attribute::int("opset", opset));
    }
    Some(converted)
}

/// Converts Concat to QLinearConcat, whose inputs have a scale each.
pub(super) fn concat(node: &Node, form: QLinearForm, pairs: &QdqPairs) -> Option<IntegerNode> {
    let parts: Option<Vec<QuantizedValue>> =
        node.input.iter().map(|name| pairs.bytes(name)).collect();
    let (parts, output) = (parts?, pairs.quantized(node.output.first()?)?);
    let all: Vec<&QuantizedValue> = parts.iter().chain([&output]).collect();
    same_element(&all)?;
    let inputs = output.parameters().into_iter();
    let inputs = inputs
        .chain(parts.iter().flat_map(QuantizedValue::inputs))
        .collect();
    Some(IntegerNode::new(node, form, inputs))
}

/// Converts Where to QLinearWhere; the condition stays boolean.
pub(super) fn select(node: &Node, form: QLinearForm, pairs: &QdqPairs) -> Option<IntegerNode> {
    let condition = node.input_at(0)?.to_owned();
    let (yes, no) = (
        pairs.bytes(node.input_at(1)?)?,
        pairs.bytes(node.input_at(2)?)?,
    );
    let output = pairs.quantized(node.output.first()?)?;
    same_element(&[&yes, &no, &output])?;
    let mut inputs = vec![condition];
    inputs.extend(yes.inputs().into_iter().chain(no.inputs()));
    inputs.extend(output.parameters());
    Some(IntegerNode::new(node, form, inputs))
}

/// Converts EmbedLayerNormalization to QEmbedLayerNormalization, which reads integers and makes
/// floats.
pub(super) fn embedding(node: &Node, form: QLinearForm, pairs: &QdqPairs) -> Option<IntegerNode> {
    if embedding::obstacle(node).is_some() {
        return None;
    }
    let table = |slot: usize| match node.input_at(slot) {
        None => Some(None),
        Some(real) => pairs.bytes(real).map(Some),
    };
    let tables: Vec<Option<QuantizedValue>> =
        embedding::TABLES.map(table).collect::<Option<_>>()?;
    same_element(&tables.iter().flatten().collect::<Vec<_>>())?;
    let quantity = |linear: QuantizedValue| QuantizedNames {
        integers: linear.integers,
        scale: linear.scale,
        zero_point: linear.zero_point,
    };
    let tables: Vec<_> = tables.into_iter().map(|t| t.map(quantity)).collect();
    let inputs = embedding::inputs(node, &tables);
    let mut converted = IntegerNode::new(node, form, inputs);
    converted.outputs = IntegerOutputs::None;
    Some(converted)
}

/// True if QLinearAveragePool computes the same averages as AveragePool.
///
/// It has no dilations. With `ceil_mode` and `count_include_pad` it divides by another count, and
/// is off by up to 32 integer steps (ONNX Runtime 1.31.1).
fn has_same_averages(node: &Node) -> bool {
    let plain = node
        .ints("dilations")
        .is_none_or(|dilations| dilations.iter().all(|&d| d == 1));
    let counts = node.int("count_include_pad").unwrap_or(0) != 0;
    let hangs_over = node.int("ceil_mode").unwrap_or(0) != 0;
    plain && !(counts && hangs_over)
}

/// Requires one integer type for all operands, as the kernels do.
fn same_element(all: &[&QuantizedValue]) -> Option<()> {
    all.iter()
        .all(|linear| linear.element == all[0].element)
        .then_some(())
}
