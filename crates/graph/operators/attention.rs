//! Attention and other operators of language models.

use super::Property::{Fused, OnlyQuantized};
use super::{Operator, QLinearInputs, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Attention").with(&[Fused]),
    Operator::onnx("LinearAttention"),
    Operator::onnx("RotaryEmbedding"),
    Operator::onnx("SwiGLU"),
    Operator::microsoft("Attention").with(&[Fused]),
    Operator::microsoft("EmbedLayerNormalization")
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QEmbedLayerNormalization", QLinearInputs::Embedding),
    Operator::microsoft("QAttention").with(&[OnlyQuantized]),
    Operator::microsoft("QEmbedLayerNormalization").with(&[OnlyQuantized]),
];
