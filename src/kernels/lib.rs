//! Loops over slices that are worth vector code. They know slices and shapes only.

mod count;
mod ends;
mod expected;
pub mod fake_quantize;
pub mod float;
mod gram;
mod grid;
mod groups;
pub mod int8;
mod logarithm;
mod magnitudes;
pub mod panels;
pub mod row;
mod sum;
mod vectors;

pub use count::{count, count_within};
pub use ends::Ends;
pub use expected::Steps;
pub use gram::{LARGEST, LONGEST, add_products};
pub use grid::{IntegerGrid, add_squares, decode, nearest_bytes, nearest_whole, widen};
pub use groups::Running;
pub use logarithm::log2;
pub use magnitudes::raise_magnitudes;
pub use sum::{dot, sum, sum_of_squares, take_off};
