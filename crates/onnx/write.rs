//! Writing a model: as pieces that share the tensors' bytes, or as one buffer.

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes};
use prost::{EncodeError, Message};

use super::schema::ModelProto;

/// Reason for which a model was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum WriteError {
    #[error(
        "the model needs a file of {bytes} bytes, more than the 2 GiB limit of ONNX: keep fewer layers in float, or quantize a smaller model"
    )]
    TooLarge { bytes: usize },
    #[error(
        "there is not enough memory for a file of {bytes} bytes: close other pages or programs and try again"
    )]
    Memory { bytes: usize },
    /// The writer grows as needed, so this is a defect.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A file as consecutive pieces. Those of tensors share memory with the model. Thus the file of a
/// large model takes little more memory than the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces(Vec<Bytes>);

impl Pieces {
    /// The pieces in order.
    pub fn as_slice(&self) -> &[Bytes] {
        &self.0
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }
}

/// Encodes the file in pieces.
pub fn pieces(model: &ModelProto) -> Result<Pieces, WriteError> {
    let bytes = model.encoded_len();
    if bytes > super::LIMITS.bytes {
        return Err(WriteError::TooLarge { bytes });
    }
    let mut writer = PieceWriter::default();
    model.encode(&mut writer)?;
    writer.end_piece();
    Ok(Pieces(writer.pieces))
}

/// Encodes the file in one buffer of its exact size.
pub fn write(model: &ModelProto) -> Result<Vec<u8>, WriteError> {
    let pieces = pieces(model)?;
    let bytes = pieces.bytes();
    let mut file = Vec::new();
    file.try_reserve_exact(bytes)
        .map_err(|_| WriteError::Memory { bytes })?;
    for piece in pieces.as_slice() {
        file.extend_from_slice(piece);
    }
    Ok(file)
}

/// Shorter byte strings are copied, because a piece of their own takes as much memory.
const MIN_SHARED: usize = 4096;

/// Receives encoded bytes, and keeps long byte strings without a copy.
#[derive(Default)]
struct PieceWriter {
    pieces: Vec<Bytes>,
    piece: Vec<u8>,
}

impl PieceWriter {
    fn end_piece(&mut self) {
        if !self.piece.is_empty() {
            self.pieces.push(std::mem::take(&mut self.piece).into());
        }
    }
}

// prost encodes into any `BufMut`, an unsafe trait. The writers of `bytes` copy all tensors.
#[allow(unsafe_code)]
// SAFETY: `Vec<u8>` provides and counts the memory, and upholds the contract. `put` writes to none.
unsafe impl BufMut for PieceWriter {
    fn remaining_mut(&self) -> usize {
        self.piece.remaining_mut()
    }

    unsafe fn advance_mut(&mut self, count: usize) {
        // SAFETY: the caller has written `count` bytes into the chunk, which belongs to the piece.
        unsafe { self.piece.advance_mut(count) };
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        self.piece.chunk_mut()
    }

    fn put<T: Buf>(&mut self, mut source: T) {
        let count = source.remaining();
        if count < MIN_SHARED {
            self.piece.put(source);
            return;
        }
        self.end_piece();
        // For `Bytes`, which holds the tensors, this shares memory.
        self.pieces.push(source.copy_to_bytes(count));
    }
}
