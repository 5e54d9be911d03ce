//! Writing a model: one buffer of the exact size, filled once.

use prost::Message;

use super::schema::ModelProto;

/// Why a model was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum WriteError {
    #[error(
        "the model would be a file of {bytes} bytes; one ONNX file ends at 2 GiB: keep fewer layers in float, or quantize a smaller model"
    )]
    TooLarge { bytes: usize },
    #[error(
        "there is no memory for a file of {bytes} bytes: close other pages or programs and try again"
    )]
    Memory { bytes: usize },
}

/// The bytes of the file.
pub fn write(model: &ModelProto) -> Result<Vec<u8>, WriteError> {
    let bytes = model.encoded_len();
    if bytes > super::LIMITS.bytes {
        return Err(WriteError::TooLarge { bytes });
    }
    let mut file = Vec::new();
    file.try_reserve_exact(bytes)
        .map_err(|_| WriteError::Memory { bytes })?;
    // The buffer grows as needed, so the only error of `encode` can't occur.
    model
        .encode(&mut file)
        .map_err(|_| WriteError::Memory { bytes })?;
    Ok(file)
}
