//! Operators that stay float32, and operators with an attribute for their output type.

use super::numbers::to_float16;
use crate::rewrite::NotQuantized;
use octet_onnx::schema::{AttributeProto, DataType, NodeProto, TensorProto};

/// The reason why a node's operator keeps it float32.
pub(super) fn float_reason(node: &NodeProto) -> Option<&'static str> {
    if node.subgraphs().next().is_some() {
        return Some("its subgraphs are left as they are");
    }
    Some(match node.operator().as_str() {
        operator if operator.contains("::") => "it is not an operator of ONNX itself",
        "Celu" | "CumSum" | "IsInf" | "NonMaxSuppression" | "Range" | "TfIdfVectorizer" => {
            "not every opset has float16 for it"
        }
        // Coordinates and ranks need more than float16's 11 bits.
        "Resize" | "Upsample" | "RoiAlign" | "GridSample" | "AffineGrid" | "TopK" => {
            "positions need more precision than float16 has"
        }
        "LayerNormalization" if node.output.iter().skip(1).any(|name| !name.is_empty()) => {
            "its statistics are always float32"
        }
        // ONNX Runtime inserts Casts around nodes without a float16 kernel. It does not where an
        // attribute names the type, nor inside a function (1.31.1).
        "EyeLike" | "RandomNormal" | "RandomUniform" | "MeanVarianceNormalization" => {
            "ONNX Runtime has no float16 kernel for it on the CPU"
        }
        "BitCast" => "it reads the bits of its input",
        "Constant" | "HannWindow" | "HammingWindow" | "BlackmanWindow" | "MelWeightMatrix"
        | "DFT" | "STFT" | "Multinomial" => "Octet does not convert it to float16",
        _ => return None,
    })
}

/// Changes an attribute that names the output type from float32 to float16.
pub(super) fn set_type(node: &mut NodeProto, makes_floats: bool) -> Result<(), NotQuantized> {
    if !makes_floats {
        return Ok(());
    }
    let half = |key| AttributeProto::int(key, DataType::Float16 as i64);
    match node.op_type.as_deref().unwrap_or_default() {
        "Cast" => node.set(half("to")),
        // Without `dtype`, these have the type of their input.
        "RandomNormalLike" | "RandomUniformLike" | "Bernoulli" if node.int("dtype").is_some() => {
            node.set(half("dtype"));
        }
        "ConstantOfShape" => {
            let filled = match node.tensor("value") {
                Some(tensor) => tensor.to_f32()?,
                None => vec![0.0],
            };
            let bytes = to_float16(&filled).bytes.into();
            let value = TensorProto::from_raw("value", DataType::Float16, &[filled.len()], bytes);
            node.set(AttributeProto::tensor("value", value));
        }
        _ => {}
    }
    Ok(())
}
