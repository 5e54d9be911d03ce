//! Kernels for quantization-aware training: fake quantization and its gradient, soft rounding, and
//! the optimizer.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod adam;
mod fake_quantize;
mod soft_rounding;

pub use adam::Adam;
pub use fake_quantize::{QuantizationGrid, fake_quantize, fake_quantize_gradient, mask_len};
pub use soft_rounding::{SoftRounding, annealed_beta, soft_fraction, variable_of};
