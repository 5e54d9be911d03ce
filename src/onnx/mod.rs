//! The ONNX file format: what is read is written again, field for field.
//!
//! Tensor bytes are shared with the file they were read from, and with the one that is written, never copied.

pub mod external;
mod format;
pub(crate) mod half;
mod numbers;
mod read;
mod scan;
pub mod schema;
pub mod tensor;
pub(crate) mod tensors;
mod write;

pub use read::{ReadError, read};
pub use scan::{LIMITS, Limits, ScanError};
pub use write::{Pieces, WriteError, pieces, write};
