//! Loops over slices that are worth vector code. They know slices and shapes only.

mod count;
mod ends;
pub mod fake_quantize;
pub mod float;
pub mod int8;
pub mod panels;
pub mod row;
mod sum;

pub use count::count;
pub use ends::Ends;
pub use sum::sum;
