//! Operators on integers, as lists of names.

/// Operators that compute on integers, in place of pairs of QuantizeLinear and DequantizeLinear.
pub(crate) const INTEGER_OPERATORS: &[&str] = &[
    "ConvInteger",
    "MatMulInteger",
    "DynamicQuantizeLinear",
    "QLinearConv",
    "QLinearMatMul",
    "com.microsoft::QLinearAdd",
    "com.microsoft::QLinearAveragePool",
    "com.microsoft::QLinearConcat",
    "com.microsoft::QLinearGlobalAveragePool",
    "com.microsoft::QLinearLeakyRelu",
    "com.microsoft::QLinearMul",
    "com.microsoft::QLinearReduceMean",
    "com.microsoft::QLinearSigmoid",
    "com.microsoft::QLinearSoftmax",
    "com.microsoft::QLinearWhere",
    "com.microsoft::QGemm",
    "com.microsoft::MatMulIntegerToFloat",
    "com.microsoft::DynamicQuantizeMatMul",
    "com.microsoft::DynamicQuantizeLSTM",
    "com.microsoft::MatMulNBits",
    "com.microsoft::MatMulBnb4",
    "com.microsoft::GatherBlockQuantized",
];

/// The pairs.
pub(crate) const PAIRS: &[&str] = &[
    "QuantizeLinear",
    "DequantizeLinear",
    "com.microsoft::QuantizeLinear",
    "com.microsoft::DequantizeLinear",
];
