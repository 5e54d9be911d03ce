//! Kernels for quantization-aware training: fake quantization and its gradient, soft rounding, the
//! optimizer, and reverse mode over programs of operations.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod adam;
mod fake_quantize;
pub mod reverse;
mod soft_rounding;

pub use adam::Adam;
pub use fake_quantize::{QuantizationGrid, fake_quantize, fake_quantize_gradient, mask_len};
pub use soft_rounding::{SoftRounding, annealed_beta, soft_fraction, variable_of};
