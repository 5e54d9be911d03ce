//! Loops over slices that are worth vector code. They know slices and shapes only.

mod count;
mod ends;
pub mod float;
pub mod int8;

pub use count::count;
pub use ends::Ends;
