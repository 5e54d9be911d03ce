//! Converts models of any size in bounded memory.
//!
//! The source is read in slices and the result is written in stretches; only the graph and one tile
//! of a tensor are in memory. This crate does no input or output. Its caller drives three stages:
//! the [skeleton](octet_onnx::skeleton) of the file, its [`SmallTensors`], and the [`Conversion`].

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(clippy::result_large_err)]

mod constant_plan;
mod conversion;
mod current_constant;
mod data_placement;
mod journal;
mod small_tensors;

pub use conversion::{Conversion, ConversionStep, Converted};
pub use data_placement::{OutputFiles, WeightsFile};
pub use journal::{ConversionJournal, JournalError, SourceIdentity};
pub use small_tensors::SmallTensors;

use octet_graph::GraphError;
use octet_onnx::WriteError;
use octet_onnx::external::ExternalError;
use octet_onnx::tensor::TensorError;
use octet_quantize::QuantizeError;
use octet_quantize::recipe::RecipeError;

/// Reasons why a model can't be converted.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A constant without a result.
    #[error("the constant `{tensor}`: {source}; keep the layers that read it float")]
    Constant {
        /// Name of the constant.
        tensor: String,
        /// The reason.
        source: RecipeError,
    },
    /// The caller passed another number of bytes than asked for.
    #[error(
        "{file} ended {missing} bytes early: it is cut short, or it changed while it was read; \
         check the file and start again"
    )]
    Short {
        /// Name of the file.
        file: String,
        /// Bytes that are missing.
        missing: u64,
    },
    /// A journal that does not continue this conversion.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[allow(missing_docs)]
    #[error(transparent)]
    External(#[from] ExternalError),
    #[allow(missing_docs)]
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[allow(missing_docs)]
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[allow(missing_docs)]
    #[error(transparent)]
    Quantize(#[from] QuantizeError),
    #[allow(missing_docs)]
    #[error(transparent)]
    Write(#[from] WriteError),
}
