//! Vectorized loops over slices. They know slices and shapes only: no tensors, graphs or threads.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod abs_max;
pub mod attention;
mod bin_groups;
pub mod block_weights;
mod dispatch;
mod extrema;
pub mod float;
pub mod gemv;
mod gram;
mod grid;
pub mod half;
mod histogram;
pub mod int8;
mod little_endian_floats;
mod logarithm;
pub mod pack;
mod power;
mod products;
mod rounding_error;
mod sum;
mod variable_length;

pub use abs_max::raise_magnitudes;
pub use bin_groups::PrefixSums;
pub use extrema::Extrema;
pub use gram::{LARGEST, LONGEST, add_products};
pub use grid::{IntegerGrid, add_squares, decode, nearest_bytes, nearest_whole, widen};
pub use histogram::{count, count_within};
pub use little_endian_floats::LittleEndianFloats;
pub use logarithm::log2;
pub use products::{FloatRows, multiply, multiply_transposed};
pub use rounding_error::RoundingGrid;
pub use sum::{dot, dot_of_floats, sum, sum_of_squares, take_off};
pub use variable_length::read_signed;
