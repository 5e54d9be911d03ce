//! Operators on strings.

use super::Operator;
use super::float16::NOT_IN_EVERY_OPSET;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("RegexFullMatch"),
    Operator::onnx("StringConcat"),
    Operator::onnx("StringNormalizer"),
    Operator::onnx("StringSplit"),
    Operator::onnx("TfIdfVectorizer").float16(NOT_IN_EVERY_OPSET),
];
