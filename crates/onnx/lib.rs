//! The ONNX file format, read and written without loss of fields.
//!
//! Tensor bytes are shared between the model, the file read and the file written; they are never
//! copied.

#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod construct;
mod difference;
pub mod external;
mod file_format;
mod floats;
pub mod half;
pub mod in_memory;
mod little_endian;
mod node;
mod numbers;
mod read;
mod scan;
pub mod schema;
pub mod skeleton;
mod stretch;
pub mod tensor;
pub mod tensors;
mod value_type;
mod write;

pub use difference::differences;
pub use read::{ReadError, read};
pub use scan::{LIMITS, Limits, ScanError};
pub use stretch::{Stretch, check_stretches, stretch_of};
pub use value_type::{Dim, TensorType, tensor_type_of};
pub use write::{Pieces, WriteError, pieces, write};
