//! The names of a quantized tensor.

/// The names of integers, scale and zero point of one tensor.
#[derive(Clone, Debug)]
pub(super) struct QuantizedNames {
    pub(super) integers: String,
    pub(super) scale: String,
    pub(super) zero_point: String,
}
