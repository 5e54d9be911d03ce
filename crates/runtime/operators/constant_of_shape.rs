//! ConstantOfShape. Without a value, tract fills with 64-bit zeros; ONNX fills with float32 zeros.

use tract_onnx::Onnx;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::{NodeProto, TensorProto};
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::ops::array::ConstantOfShape;

use crate::operator_inputs::BuildResult;

pub(super) fn register(onnx: &mut Onnx) {
    onnx.op_register.insert("ConstantOfShape", build);
}

fn build(context: &ParsingContext, node: &NodeProto) -> BuildResult {
    let mut value = match node.get_attr_opt::<&TensorProto>("value")? {
        Some(value) => context.load_tensor(value)?,
        None => tensor0(0f32),
    };
    ensure!(
        value.len() == 1,
        "its value has {} elements and must have one",
        value.len()
    );
    value.set_shape(&[])?;
    let filled = ConstantOfShape::new(value.into_arc_tensor());
    Ok((expand(filled), vec![]))
}
