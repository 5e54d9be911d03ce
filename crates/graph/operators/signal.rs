//! Fourier transforms and windows of signals.

use super::Operator;
use super::float16::NOT_CONVERTED;

const fn signal(name: &'static str) -> Operator {
    Operator::onnx(name).float16(NOT_CONVERTED)
}

pub(super) static OPERATORS: &[Operator] = &[
    signal("BlackmanWindow"),
    signal("DFT"),
    signal("HammingWindow"),
    signal("HannWindow"),
    signal("MelWeightMatrix"),
    signal("STFT"),
];
