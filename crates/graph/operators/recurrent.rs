//! Recurrent layers.

use super::Property::{OnlyQuantized, SaturatesPairs};
use super::properties::MacRule;
use super::{DynamicForm, Operator};

/// A recurrent layer. The fifth input holds the lengths of sequences.
const fn recurrent(name: &'static str) -> Operator {
    Operator::onnx(name)
        .stays_float("recurrent layers lose too much accuracy with fixed scales")
        .weights(&[1, 2])
        .same_type(4)
        .macs(MacRule::Recurrent)
}

pub(super) static OPERATORS: &[Operator] = &[
    recurrent("GRU")
        .dynamic(DynamicForm::WeightsOnly)
        .activations(&["Sigmoid", "Tanh"]),
    recurrent("LSTM")
        .dynamic(DynamicForm::Lstm)
        .activations(&["Sigmoid", "Tanh", "Tanh"]),
    recurrent("RNN")
        .dynamic(DynamicForm::WeightsOnly)
        .activations(&["Tanh"]),
    Operator::onnx("ReverseSequence"),
    Operator::microsoft("DynamicQuantizeLSTM")
        .with(&[SaturatesPairs, OnlyQuantized])
        .weights(&[1]),
];
