//! Values of settings that a scheme does not support, with the values to choose.

use octet_onnx::schema::DataType;

/// A value of a setting that the scheme does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
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
}
