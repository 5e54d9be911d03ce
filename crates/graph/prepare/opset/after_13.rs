//! Rewrites for opsets after 13: up to 21, which has 4-bit integers and block-wise scales, or
//! beyond for the bodies of functions.
//!
//! From 13 on, most operators only gained types and attributes whose defaults keep their meaning.
//! Operators whose form or meaning changed are rewritten here. The list was read off the schemas of
//! onnx 1.23, whose newest opset is 28.

use super::{Adapted, Adapter, axes};
use octet_onnx::schema::{AttributeProto, NodeProto};

/// Rewrites one node of opset 13 or later for a later opset.
pub(super) fn adapt(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    match node.op_type.as_deref().unwrap_or_default() {
        "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceMax"
        | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSumSquare"
            if to.passes(18) =>
        {
            return axes::as_input(to, node, "axes");
        }
        "Split" if to.passes(18) && node.input_at(1).is_none() => {
            node.set(AttributeProto::int("num_outputs", node.output.len() as i64));
        }
        "BatchNormalization"
            if to.passes(14) && node.output.iter().skip(1).any(|o| !o.is_empty()) =>
        {
            return Err("it outputs statistics, as in training".to_owned());
        }
        "RoiAlign" if to.passes(16) => {
            // Since opset 16 the default places the centers of pixels at one half.
            node.set(AttributeProto::text(
                "coordinate_transformation_mode",
                "output_half_pixel",
            ));
        }
        "GridSample" if to.passes(20) => match node.text("mode") {
            Some("bilinear") => node.set(AttributeProto::text("mode", "linear")),
            Some("bicubic") => node.set(AttributeProto::text("mode", "cubic")),
            _ => {}
        },
        "DFT" if to.passes(20) => {
            return Err("its axis was an attribute before opset 20".to_owned());
        }
        "GroupNormalization" if to.passes(21) => {
            return Err(
                "its scale and bias belonged to groups, not channels, before opset 21".to_owned(),
            );
        }
        _ => {}
    }
    to.write(node);
    Ok(())
}
