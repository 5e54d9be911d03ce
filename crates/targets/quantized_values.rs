//! The quantized values of a graph: integers with their scales, and the part they play.

use octet_onnx::schema::{DataType, NodeProto, TensorProto};

use crate::file::{FileGraph, is_either};

/// The part of a quantized value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueRole {
    Activation,
    Weight,
    Bias,
}

/// Integers, written by QuantizeLinear or read by DequantizeLinear.
pub(crate) struct FileValue<'a> {
    /// The QuantizeLinear or DequantizeLinear.
    pub(crate) node: &'a NodeProto,
    pub(crate) part: ValueRole,
    pub(crate) element: DataType,
    pub(crate) scales: Vec<f32>,
    pub(crate) zero_points: Vec<i64>,
    /// True if the node has a third input.
    pub(crate) has_zero_point: bool,
    /// The integers, if they are a constant.
    pub(crate) constant: Option<&'a TensorProto>,
}

/// The input slots of an operator's weights; the scale of a normalization counts as one.
fn weight_slots(operator: &str) -> &'static [usize] {
    match operator {
        "Conv" | "ConvTranspose" | "Gemm" => &[1],
        "BatchNormalization" | "InstanceNormalization" | "LayerNormalization" => &[1],
        "MatMul" => &[0, 1],
        _ => &[],
    }
}

/// Reads a QuantizeLinear or DequantizeLinear; `None` for other nodes, or if its scale is computed.
pub(crate) fn quantized_value<'a>(
    graph: &FileGraph<'a>,
    node: &'a NodeProto,
) -> Option<FileValue<'a>> {
    let reads = is_either(node, "DequantizeLinear");
    if !reads && !is_either(node, "QuantizeLinear") {
        return None;
    }
    let scales = graph.constant(node.input_at(1)?)?.to_f32().ok()?;
    let zero_point = node.input_at(2).and_then(|name| graph.constant(name));
    let constant = match reads {
        true => graph.constant(node.input_at(0)?),
        false => None,
    };
    let of = |tensor: Option<&TensorProto>| tensor.and_then(|tensor| tensor.element().ok());
    let stated = node
        .int("output_dtype")
        .and_then(|code| DataType::try_from(code as i32).ok());
    let element = of(zero_point).or(of(constant)).or(stated).or_else(|| {
        // The integers come from a QuantizeLinear, which states their type.
        let source = graph.producer(node.input_at(0)?).filter(|_| reads)?;
        quantized_value(graph, source).map(|value| value.element)
    });
    let element = element.unwrap_or(DataType::Uint8);
    let output = node.output.first().map_or("", String::as_str);
    let readers = graph.consumers(output);
    let part = match constant {
        Some(_) if element == DataType::Int32 => ValueRole::Bias,
        Some(_) => {
            let is_weight = readers.iter().any(|(reader, slot)| {
                let operator = reader.op_type.as_deref().unwrap_or_default();
                weight_slots(operator).contains(slot)
            });
            if is_weight {
                ValueRole::Weight
            } else {
                ValueRole::Activation
            }
        }
        None => ValueRole::Activation,
    };
    Some(FileValue {
        node,
        part,
        element,
        scales,
        zero_points: zero_point
            .and_then(|tensor| tensor.to_i64().ok())
            .unwrap_or_default(),
        has_zero_point: node.input_at(2).is_some(),
        constant,
    })
}

/// The value behind a node's input, if a DequantizeLinear makes it.
pub(crate) fn input_value<'a>(
    graph: &FileGraph<'a>,
    node: &NodeProto,
    slot: usize,
) -> Option<FileValue<'a>> {
    let source = graph.producer(node.input_at(slot)?)?;
    quantized_value(graph, source).filter(|_| is_either(source, "DequantizeLinear"))
}

/// The value behind a node's output, if a QuantizeLinear reads it.
pub(crate) fn output_value<'a>(graph: &FileGraph<'a>, output: &str) -> Option<FileValue<'a>> {
    let readers = graph.consumers(output).iter();
    let mut made =
        readers.filter(|(reader, slot)| *slot == 0 && is_either(reader, "QuantizeLinear"));
    quantized_value(graph, made.next()?.0)
}
