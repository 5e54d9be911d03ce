//! Operators that return their input: Identity, and Dropout outside training.

use super::Operator;
use super::Property::{CarriesIntegers, ChangesForm, ChangesType, KeepsIndices, MovesData};
use super::opset_context::{Adapted, OpsetContext};
use super::quantization::IDLE;
use crate::Node;
use octet_onnx::schema::TensorProto;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Dropout")
        .changed(&[(12, ratio_as_input)])
        .infers_same()
        .with(&[ChangesType, ChangesForm])
        .stays_float(IDLE),
    Operator::onnx("Identity")
        .with(&[CarriesIntegers])
        .infers(|ctx| ctx.input(0).cloned())
        .rewrites_sequences(|to, node| {
            let all = to.known(node)?;
            to.record(node, all)
        })
        .with(&[MovesData, ChangesForm, KeepsIndices])
        .stays_float(IDLE)
        .same_type(1),
];

/// Changes Dropout to opset 12. Outside training, the ratio has no effect.
fn ratio_as_input(to: &mut OpsetContext, mut node: Node) -> Adapted {
    node.take("is_test");
    if let Some(ratio) = node.take("ratio").and_then(|a| a.as_float()) {
        let ratio = to.constant(&node, "ratio", TensorProto::from_f32("", &[], &[ratio]));
        node.set_input(1, ratio);
    }
    to.write(node);
    Ok(())
}
