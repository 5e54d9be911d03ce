//! Attention and other operators of language models.

use super::Property::{Attention, OnlyQuantized, WideActivation};
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
    Operator::onnx("SwiGLU"),
    Operator::microsoft("Attention").fused(|to, node| to.attention(node)),
    attention("DecoderMaskedMultiHeadAttention"),
    Operator::microsoft("EmbedLayerNormalization")
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QEmbedLayerNormalization", QLinearInputs::Embedding),
    attention("PackedMultiHeadAttention"),
    attention("PagedAttention"),
    Operator::microsoft("QAttention").with(&[OnlyQuantized]),
    Operator::microsoft("QEmbedLayerNormalization").with(&[OnlyQuantized]),
    attention("SparseAttention"),
    Operator::microsoft("SwiGLU").with(&[WideActivation]),
];
