//! Operators that stay float32, and operators with an attribute for their output type.

use crate::float16_numbers::to_float16;
use crate::rewrite::NotQuantized;
use octet_graph::operators::{Float16, Operator, OutputType, float16_treatment};
use octet_graph::{Attribute, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// The reason why a node's operator keeps it float32.
pub(super) fn float_reason(node: &Node) -> Option<&'static str> {
    if node.subgraphs().next().is_some() {
        return Some("its subgraphs are left as they are");
    }
    match float16_treatment(node) {
        Float16::Converts => None,
        Float16::Stays(reason) => Some(reason),
        Float16::StaysWithMoreOutputs(reason) => {
            let mut more = node.output.iter().skip(1);
            more.any(|name| !name.is_empty()).then_some(reason)
        }
    }
}

/// Changes an attribute that names the output type from float32 to float16.
pub(super) fn set_type(node: &mut Node, makes_floats: bool) -> Result<(), NotQuantized> {
    if !makes_floats {
        return Ok(());
    }
    let half = |key| Attribute::int(key, DataType::Float16 as i64);
    match Operator::of(node).output_type {
        OutputType::Implied => {}
        OutputType::Attribute(key) => node.set(half(key)),
        OutputType::OptionalAttribute(key) => {
            if node.int(key).is_some() {
                node.set(half(key));
            }
        }
        OutputType::Value => {
            let filled = match node.tensor("value") {
                Some(tensor) => tensor.to_f32()?,
                None => vec![0.0],
            };
            let bytes = to_float16(&filled).into();
            let value = TensorProto::from_raw("value", DataType::Float16, &[filled.len()], bytes);
            node.set(Attribute::tensor("value", value));
        }
    }
    Ok(())
}
