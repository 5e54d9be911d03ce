//! Image operators whose output sizes come from inputs or attributes: regions, grids, Col2Im,
//! crops.

use super::Operator;
use super::float16::POSITIONS;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("AffineGrid")
        .shape_from(&[1])
        .float16(POSITIONS),
    Operator::onnx("CenterCropPad").shape_from(&[1]),
    Operator::onnx("Col2Im").shape_from(&[1, 2]),
    Operator::onnx("GridSample").float16(POSITIONS),
    Operator::onnx("ImageDecoder"),
    Operator::onnx("MaxRoiPool"),
    Operator::onnx("RoiAlign").float16(POSITIONS),
];
