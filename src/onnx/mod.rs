//! The ONNX file format, read and written without loss of fields.
//!
//! Tensor bytes are shared between the model, the file read and the file written; they are never
//! copied.

pub mod external;
mod file_format;
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
