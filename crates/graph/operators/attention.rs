//! Attention and other operators of language models.

use super::Property::{Attention, ChangesVectors, OnlyQuantized, WideActivation};
use super::{Operator, QLinearInputs, Treatment};

/// An attention of ONNX Runtime that the pass `prepare` leaves whole.
const fn attention(name: &'static str) -> Operator {
    Operator::microsoft(name).with(&[Attention])
}

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Attention")
        .with(&[Attention])
        .fused(|to, node| to.onnx_attention(node)),
    Operator::onnx("LinearAttention"),
    Operator::onnx("RotaryEmbedding"),
    Operator::onnx("SwiGLU"),
    Operator::microsoft("Attention").fused(|to, node| to.attention(node)),
    attention("DecoderMaskedMultiHeadAttention"),
    Operator::microsoft("EmbedLayerNormalization")
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QEmbedLayerNormalization", QLinearInputs::Embedding),
    attention("GroupQueryAttention"),
    attention("MultiHeadAttention"),
    attention("PackedMultiHeadAttention"),
    attention("PagedAttention"),
    Operator::microsoft("QAttention").with(&[OnlyQuantized]),
    Operator::microsoft("QEmbedLayerNormalization").with(&[OnlyQuantized]),
    Operator::microsoft("RotaryEmbedding").with(&[ChangesVectors]),
    attention("SparseAttention"),
    Operator::microsoft("SwiGLU").with(&[WideActivation]),
];
