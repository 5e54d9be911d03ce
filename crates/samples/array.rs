//! An array of a sample file.

use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::DataType;

/// An array of a sample before it is assigned to an input.
#[derive(Clone, Debug)]
pub(super) struct Array {
    /// Name of the array, or of its file if the format stores no names.
    pub(super) name: String,
    /// True if the file stores `name`, so that it can match the name of an input.
    pub(super) named: bool,
    /// Index of its input, if the file name states it.
    pub(super) position: Option<usize>,
    /// Element type in the file.
    pub(super) stored: DataType,
    pub(super) tensor: Tensor,
}
