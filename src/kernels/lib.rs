//! Loops over slices that are worth vector code. They know slices and shapes only.

mod count;
mod ends;
pub mod fake_quantize;
pub mod float;
mod gram;
pub mod int8;
mod magnitudes;
pub mod panels;
pub mod row;
mod sum;
mod vectors;

pub use count::{count, count_within};
pub use ends::Ends;
pub use gram::{LARGEST, LONGEST, add_products};
pub use magnitudes::raise_magnitudes;
pub use sum::{sum, sum_of_squares};
