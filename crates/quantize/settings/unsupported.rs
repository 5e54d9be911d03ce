//! Values of settings that a scheme does not support, with the values to choose.

use octet_onnx::schema::DataType;

/// A value of a setting that the scheme does not support.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum UnsupportedSetting {
    /// The weights' type in the scheme `dynamic`.
    #[error("the setting weights is {0}: choose i8 or u8, the types of dynamic products")]
    DynamicWeights(DataType),
    /// The weights' type in the scheme `weights`.
    #[error(
        "the setting weights is {0}: choose i8 or u8 for this scheme; fewer bits need the scheme blocks"
    )]
    StoredWeights(DataType),
    /// The bits of blocks in the form `matmul_nbits`.
    #[error("the setting bits is {0}: choose 2, 4 or 8")]
    PackedBits(u8),
    /// The bits of blocks in the form `dequantize`.
    #[error("the setting bits is {0}: choose 4 or 8, or the form matmul_nbits")]
    DequantizedBits(u8),
    /// The form `matmul_bnb4` with settings of integers.
    #[error(
        "the setting form is matmul_bnb4: leave out all other settings of blocks but size and float_type, or choose the \
         form matmul_nbits"
    )]
    FourBitFloats,
    /// The length of blocks.
    #[error("the setting size is {0}: choose 16, 32, 64, 128 or 256")]
    BlockSize(usize),
    /// The accuracy level of MatMulNBits.
    #[error("the setting accuracy_level is {0}: choose a number from 0 to 4")]
    AccuracyLevel(u8),
    /// The method `hqq` with settings that it does not support.
    #[error(
        "the setting method is hqq: choose rtn, search or gptq; hqq needs 2 or 4 bits, asymmetric weights and the form \
         matmul_nbits, because its zero points are fractional"
    )]
    Hqq,
    /// The method `hqq` with mixed bits.
    #[error(
        "the setting method is hqq: choose rtn, search, gptq or k_quant; hqq has no 8 bits, which mixed gives to some layers"
    )]
    MixedHqq,
    /// The method `k_quant` with symmetric weights.
    #[error(
        "the setting method is k_quant: choose rtn, search or gptq, or symmetric: false; k_quant computes zero points, \
         so its weights are never symmetric"
    )]
    SymmetricKQuant,
    /// The average of mixed bits.
    #[error("the setting average_bits is {0}: choose a number from 2 to 16, such as 5.5")]
    AverageBits(f64),
    /// Half precision around other forms.
    #[error("the setting activations is float16: choose the form matmul_nbits, or leave it out")]
    HalfActivations,
    /// Embeddings in the form `dequantize`.
    #[error("the setting embeddings is true: choose the form matmul_nbits, or leave it out")]
    Embeddings,
}
