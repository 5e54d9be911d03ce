//! Writing a model: in pieces, of which the large ones are the tensors' own bytes, or in one buffer.

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes};
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

/// A file whose bytes follow each other in pieces. Those of tensors are shared with the model, not copied: the file of a
/// large model takes hardly more memory than the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces(Vec<Bytes>);

impl Pieces {
    /// The pieces in their order.
    pub fn as_slice(&self) -> &[Bytes] {
        &self.0
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }
}

/// The file in pieces.
pub fn pieces(model: &ModelProto) -> Result<Pieces, WriteError> {
    let bytes = model.encoded_len();
    if bytes > super::LIMITS.bytes {
        return Err(WriteError::TooLarge { bytes });
    }
    let mut writer = Writer::default();
    // The writer grows as needed, so the only error of `encode` can't occur.
    model
        .encode(&mut writer)
        .map_err(|_| WriteError::Memory { bytes })?;
    writer.end_piece();
    Ok(Pieces(writer.done))
}

/// The file in one buffer of its exact size.
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

/// What is shorter is copied: a piece of its own would take as much.
const SHARED: usize = 4096;

/// Takes what is encoded, and long bytes without copying them.
#[derive(Default)]
struct Writer {
    done: Vec<Bytes>,
    piece: Vec<u8>,
}

impl Writer {
    fn end_piece(&mut self) {
        if !self.piece.is_empty() {
            self.done.push(std::mem::take(&mut self.piece).into());
        }
    }
}

// SAFETY: room is made and counted by `Vec<u8>`, whose promises these are; `put` writes to no room.
unsafe impl BufMut for Writer {
    fn remaining_mut(&self) -> usize {
        self.piece.remaining_mut()
    }

    unsafe fn advance_mut(&mut self, count: usize) {
        // SAFETY: the caller has written so much into the chunk, which is the piece's.
        unsafe { self.piece.advance_mut(count) };
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        self.piece.chunk_mut()
    }

    fn put<T: Buf>(&mut self, mut source: T) {
        let count = source.remaining();
        if count < SHARED {
            self.piece.put(source);
            return;
        }
        self.end_piece();
        // Of `Bytes`, in which tensors are, this is a share.
        self.done.push(source.copy_to_bytes(count));
    }
}
