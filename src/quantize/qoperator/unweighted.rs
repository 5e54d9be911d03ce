//! Operators without weights that have a form on integers: sums, products, activations, averages, and what
//! puts values together.

use super::pairs::{Linear, Pairs};
use super::{Folded, MICROSOFT, Outputs};
use crate::onnx::schema::{AttributeProto, NodeProto};
use crate::quantize::embedding;
use crate::quantize::integers::Quantity;

/// Add and Mul as QLinearAdd and QLinearMul.
pub(super) fn binary(node: &NodeProto, pairs: &Pairs) -> Option<Folded> {
    let left = pairs.bytes(node.input_at(0)?)?;
    let right = pairs.bytes(node.input_at(1)?)?;
    let output = pairs.quantized(node.output.first()?)?;
    same_element(&[&left, &right, &output])?;
    let mut inputs = [left.inputs(), right.inputs()].concat();
    inputs.extend(output.parameters());
    Some(microsoft(node, inputs))
}

/// Sigmoid, LeakyRelu and averages as the operator of ONNX Runtime that is named after them.
pub(super) fn unary(node: &NodeProto, pairs: &Pairs) -> Option<Folded> {
    if node.is("AveragePool") && !averages(node) {
        return None;
    }
    let input = pairs.bytes(node.input_at(0)?)?;
    let output = pairs.quantized(node.output.first()?)?;
    same_element(&[&input, &output])?;
    let mut folded = microsoft(node, [&input.inputs()[..], &output.parameters()].concat());
    if node.is("GlobalAveragePool") {
        folded.node.set(AttributeProto::int("channels_last", 0));
    }
    Some(folded)
}

/// Softmax as QLinearSoftmax, which has to be told the version it stands for and the axis, as the versions
/// differ in both.
pub(super) fn softmax(node: &NodeProto, opset: i64, pairs: &Pairs) -> Option<Folded> {
    let mut folded = unary(node, pairs)?;
    let axis = node.int("axis").unwrap_or(if opset < 13 { 1 } else { -1 });
    folded.node.set(AttributeProto::int("axis", axis));
    folded.node.set(AttributeProto::int("opset", opset));
    Some(folded)
}

/// Concat as QLinearConcat, where every part has its own scale.
pub(super) fn concat(node: &NodeProto, pairs: &Pairs) -> Option<Folded> {
    let parts: Option<Vec<Linear>> = node.input.iter().map(|name| pairs.bytes(name)).collect();
    let (parts, output) = (parts?, pairs.quantized(node.output.first()?)?);
    let all: Vec<&Linear> = parts.iter().chain([&output]).collect();
    same_element(&all)?;
    let inputs = output.parameters().into_iter();
    let inputs = inputs
        .chain(parts.iter().flat_map(Linear::inputs))
        .collect();
    Some(microsoft(node, inputs))
}

/// Where as QLinearWhere; the condition stays what it is.
pub(super) fn choice(node: &NodeProto, pairs: &Pairs) -> Option<Folded> {
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
    Some(microsoft(node, inputs))
}

/// EmbedLayerNormalization as QEmbedLayerNormalization, which takes integers and makes reals.
pub(super) fn embedding(node: &NodeProto, pairs: &Pairs) -> Option<Folded> {
    if embedding::obstacle(node).is_some() {
        return None;
    }
    let table = |slot: usize| match node.input_at(slot) {
        None => Some(None),
        Some(real) => pairs.bytes(real).map(Some),
    };
    let tables: Vec<Option<Linear>> = embedding::TABLES.map(table).collect::<Option<_>>()?;
    same_element(&tables.iter().flatten().collect::<Vec<_>>())?;
    let quantity = |linear: Linear| Quantity {
        integers: linear.integers,
        scale: linear.scale,
        zero_point: linear.zero_point,
    };
    let tables: Vec<_> = tables.into_iter().map(|t| t.map(quantity)).collect();
    let inputs = embedding::inputs(node, &tables);
    let mut folded = Folded::of(node, embedding::OPERATOR, Some(MICROSOFT), inputs);
    folded.outputs = Outputs::None;
    Some(folded)
}

/// Whether QLinearAveragePool gives the averages that AveragePool does. It has no dilations, and where the
/// window hangs over the end and padding counts, it divides by another number (off by up to 32 integer
/// steps in ONNX Runtime 1.31.1).
fn averages(node: &NodeProto) -> bool {
    let plain = node
        .ints("dilations")
        .is_none_or(|dilations| dilations.iter().all(|&d| d == 1));
    let counts = node.int("count_include_pad").unwrap_or(0) != 0;
    let hangs_over = node.int("ceil_mode").unwrap_or(0) != 0;
    plain && !(counts && hangs_over)
}

/// The kernels want one integer type for everything.
fn same_element(all: &[&Linear]) -> Option<()> {
    all.iter()
        .all(|linear| linear.element == all[0].element)
        .then_some(())
}

fn microsoft(node: &NodeProto, inputs: Vec<String>) -> Folded {
    let operator = format!("QLinear{}", node.operator());
    Folded::of(node, &operator, Some(MICROSOFT), inputs)
}
