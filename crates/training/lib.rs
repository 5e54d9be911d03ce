//! Kernels for quantization-aware training: fake quantization and its gradient.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod fake_quantize;

pub use fake_quantize::{QuantizationGrid, fake_quantize, fake_quantize_gradient, mask_len};
