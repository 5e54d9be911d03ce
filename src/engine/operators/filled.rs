//! ConstantOfShape. Without a value, tract fills with 64-bit zeros; ONNX fills with float32 zeros.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::{NodeProto, TensorProto};
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::ops::array::ConstantOfShape;

use super::Built;

pub(super) fn build(context: &ParsingContext, node: &NodeProto) -> Built {
    let mut value = match node.get_attr_opt::<&TensorProto>("value")? {
        Some(value) => context.load_tensor(value)?,
        None => tensor0(0f32),
    };
    ensure!(value.len() == 1, "it fills with {} values", value.len());
    value.set_shape(&[])?;
    let filled = ConstantOfShape::new(value.into_arc_tensor());
    Ok((expand(filled), vec![]))
}
