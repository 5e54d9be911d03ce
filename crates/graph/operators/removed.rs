//! Experimental operators that ONNX removed.

use super::Operator;

const fn removed(name: &'static str) -> Operator {
    Operator::onnx(name).changed(&[(13, |_, _| {
        Err("it was experimental and ONNX removed it".to_owned())
    })])
}

pub(super) static OPERATORS: &[Operator] = &[
    removed("ATen"),
    removed("Affine"),
    removed("Crop"),
    removed("GRUUnit"),
    removed("GivenTensorFill"),
    removed("ImageScaler"),
    removed("ParametricSoftplus"),
    removed("Scale"),
    removed("ScaledTanh"),
];
