//! Products: convolutions, matrices, and products of two values.

mod batched;
mod bytes_product;
pub(super) mod convolution;
mod dequantization;
mod integer_factors;
pub(super) mod integer_product;
mod matrix_batch;
pub(super) mod matrix_product;
mod overflow;
mod packing;
mod row_tiling;
mod weighted;
