//! Control flow: operators that run graphs.

use super::Operator;
use super::Property::HoldsGraphs;
use super::quantization::SUBGRAPHS;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("If")
        .with(&[HoldsGraphs])
        .stays_float(SUBGRAPHS),
    Operator::onnx("Loop")
        .requires(0)
        .with(&[HoldsGraphs])
        .stays_float(SUBGRAPHS),
    Operator::onnx("Scan")
        .requires(0)
        .changed(&[(9, |_, _| {
            Err("Scan had another form before opset 9".to_owned())
        })])
        .with(&[HoldsGraphs])
        .stays_float(SUBGRAPHS),
];
