//! Reading a model, with every check that needs the file alone.
//!
//! The resulting model decodes, has a known IR version, and every tensor has the number of bytes of
//! its shape and type. External tensors are checked when they are attached.

use bytes::Bytes;
use prost::Message;

use super::file_format;
use super::scan::{LIMITS, ScanError, scan};
use super::schema::{ModelProto, NEWEST_IR_VERSION};
use super::tensor::TensorError;
use super::tensors;

/// Reason for which a file was not opened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ReadError {
    #[error("the file is empty: choose the .onnx file again, or export it again")]
    Empty,
    #[error("the file is {format}, not an ONNX model: {advice}")]
    OtherFormat {
        format: &'static str,
        advice: &'static str,
    },
    #[error(
        "the file has {bytes} bytes, more than the 2 GiB limit of an ONNX file: export it with external data, which puts the weights in a file beside it"
    )]
    TooLarge { bytes: usize },
    #[error(
        "the model has more than {limit} bytes beside its large tensors, more than can be opened safely: export its weights as raw data"
    )]
    Skeleton { limit: u64 },
    #[error("the model can't be opened: {0}")]
    Scan(#[from] ScanError),
    #[error("the file is damaged: {reason}; download or export it again")]
    Damaged { reason: String },
    #[error("this is not an ONNX model: it has no graph; export the model to ONNX again")]
    NoGraph,
    #[error("this is not an ONNX model: it has no IR version; export the model to ONNX again")]
    NoIrVersion,
    #[error(
        "the model names no operator set: the file is cut short or was exported wrongly; export it again"
    )]
    NoOperatorSet,
    #[error(
        "the model has IR version {version}, but the newest supported one is {NEWEST_IR_VERSION}: export it with an older opset, or update Octet"
    )]
    TooNew { version: i64 },
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Reads a model. Its tensors share the memory of `bytes`.
pub fn read(bytes: Bytes) -> Result<ModelProto, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    if let Some(format) = file_format::detect(&bytes) {
        return Err(ReadError::OtherFormat {
            format: format.name,
            advice: format.advice,
        });
    }
    if bytes.len() > LIMITS.bytes {
        return Err(ReadError::TooLarge { bytes: bytes.len() });
    }
    scan(&bytes, LIMITS)?;
    decoded(bytes)
}

/// Decodes scanned bytes, and checks what all models have.
pub(super) fn decoded(bytes: Bytes) -> Result<ModelProto, ReadError> {
    let model = ModelProto::decode(bytes).map_err(|e| ReadError::Damaged {
        reason: e.to_string(),
    })?;
    if model.graph.is_none() {
        return Err(ReadError::NoGraph);
    }
    match model.ir_version {
        None | Some(0) => {
            return Err(ReadError::NoIrVersion);
        }
        Some(version) if version > NEWEST_IR_VERSION => return Err(ReadError::TooNew { version }),
        // There were no operator sets before IR version 3.
        Some(version) if version >= 3 && model.opset_import.is_empty() => {
            return Err(ReadError::NoOperatorSet);
        }
        Some(_) => {}
    }
    tensors::each(&model, &mut |tensor| {
        if tensor.is_external() {
            Ok(())
        } else {
            tensor.check()
        }
    })?;
    Ok(model)
}
