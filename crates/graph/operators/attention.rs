//! Attention and other operators of language models.

use super::Property::OnlyQuantized;
use super::{Operator, QLinearInputs, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Attention").fused(|to, node| to.onnx_attention(node)),
    Operator::onnx("LinearAttention"),
    Operator::onnx("RotaryEmbedding"),
    Operator::onnx("SwiGLU"),
    Operator::microsoft("Attention").fused(|to, node| to.attention(node)),
    Operator::microsoft("EmbedLayerNormalization")
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QEmbedLayerNormalization", QLinearInputs::Embedding),
    Operator::microsoft("QAttention").with(&[OnlyQuantized]),
    Operator::microsoft("QEmbedLayerNormalization").with(&[OnlyQuantized]),
];
