//! Files from the page: `Blob`s, copied once and slice by slice into memory of exactly their size.

use bytes::Bytes;
use gloo::file::Blob;
use js_sys::{Array, Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::failure;
use crate::onnx::Pieces;
use crate::samples::{Encoded, FileStart, bytes_to_check};
use crate::session::{Checksum, ErrorKind, hexadecimal};

/// Bytes of a file that are in JS memory at a time.
const SLICE: u64 = 4 << 20;

/// Models up to this size are read in one piece, so that the browser can compute their checksum.
const ONE_PIECE: u64 = 32 << 20;

/// A sample whose files are in memory.
#[wasm_bindgen]
pub struct Sample {
    pub(super) encoded: Encoded,
}

#[wasm_bindgen]
impl Sample {
    /// Reads the `{ path, blob }`s of a sample.
    pub async fn read(name: String, files: Array) -> Result<Sample, JsValue> {
        let parts = parts(&files, None).await?;
        let encoded = Encoded { name, parts };
        Ok(Sample { encoded })
    }
}

/// Reads `{ path, blob }`s.
pub(super) async fn parts(
    files: &Array,
    progress: Option<&Function>,
) -> Result<Vec<(String, Bytes)>, JsValue> {
    finish(begin(files)?, progress).await
}

/// The SHA-256 of one of some `{ path, blob }`s, slice by slice. The file may be in a folder.
pub(super) async fn checksum(files: &Array, name: &str) -> Result<String, JsValue> {
    for file in files.iter() {
        let path = Reflect::get(&file, &"path".into())?
            .as_string()
            .unwrap_or_default();
        if path != name && !path.ends_with(&format!("/{name}")) {
            continue;
        }
        let blob = Reflect::get(&file, &"blob".into())?.dyn_into::<web_sys::Blob>()?;
        let blob = Blob::from(blob);
        let mut checksum = Checksum::new();
        let mut start = 0;
        while start < blob.size() {
            let end = blob.size().min(start + SLICE);
            checksum.add(&read(name, blob.slice(start, end).into()).await?);
            start = end;
        }
        return Ok(checksum.finish());
    }
    let text = format!("the file {name} of the model's weights was not given; add it again");
    Err(failure(ErrorKind::External, &text))
}

/// Reads the parts of `{ path, blob }`s that the check of a sample needs.
pub(super) async fn file_starts(files: &Array) -> Result<Vec<FileStart>, JsValue> {
    let mut file_starts = Vec::with_capacity(files.length() as usize);
    for file in files.iter() {
        let path = Reflect::get(&file, &"path".into())?
            .as_string()
            .unwrap_or_default();
        let blob = Reflect::get(&file, &"blob".into())?.dyn_into::<web_sys::Blob>()?;
        let size = blob.size() as u64;
        let end = bytes_to_check(&path, size);
        let beginning = Blob::from(blob).slice(0, end);
        let beginning = read(&path, beginning.into()).await?;
        file_starts.push(FileStart {
            path,
            beginning,
            size,
        });
    }
    Ok(file_starts)
}

/// Copies a file into memory that the page owns.
pub(super) fn whole(file: &Pieces) -> Result<Uint8Array, JsValue> {
    let size = u32::try_from(file.bytes())
        .map_err(|cause| failure(ErrorKind::Memory, &cause.to_string()))?;
    let whole = Uint8Array::new_with_length(size);
    let mut end = 0;
    for piece in file.as_slice() {
        let start = end;
        end += piece.len() as u32;
        whole.subarray(start, end).copy_from(piece);
    }
    Ok(whole)
}

fn begin(files: &Array) -> Result<Vec<BlobReader>, JsValue> {
    let begin = |file: JsValue| {
        let path = Reflect::get(&file, &"path".into())?
            .as_string()
            .unwrap_or_default();
        let blob = Reflect::get(&file, &"blob".into())?.dyn_into::<web_sys::Blob>()?;
        BlobReader::begin(&path, blob, SLICE)
    };
    files.iter().map(begin).collect()
}

async fn finish(
    files: Vec<BlobReader>,
    progress: Option<&Function>,
) -> Result<Vec<(String, Bytes)>, JsValue> {
    let mut parts = Vec::with_capacity(files.len());
    for file in files {
        let name = file.name.clone();
        parts.push((name, file.finish(progress, |_, _| {}).await?));
    }
    Ok(parts)
}

/// A file whose first slice is being read.
pub(super) struct BlobReader {
    name: String,
    blob: Blob,
    /// The bytes so far, with capacity for the whole file.
    bytes: Vec<u8>,
    /// Bytes to read at a time.
    chunk: u64,
    coming: Promise,
}

impl BlobReader {
    fn begin(name: &str, blob: web_sys::Blob, chunk: u64) -> Result<BlobReader, JsValue> {
        let blob = Blob::from(blob);
        let size = blob.size();
        let too_big = || {
            let message = format!(
                "`{name}` has {size} bytes, which is more than this page's memory can hold; use the command line for it"
            );
            failure(ErrorKind::Memory, &message)
        };
        let mut bytes = Vec::new();
        let capacity = usize::try_from(size).map_err(|_| too_big())?;
        bytes.try_reserve_exact(capacity).map_err(|_| too_big())?;
        Ok(BlobReader {
            name: name.to_string(),
            coming: slice(&blob, 0, chunk),
            blob,
            bytes,
            chunk,
        })
    }

    /// Copies the file into memory once. At most two portions of it are in JS memory at a time:
    /// `each` receives one, in wasm memory and in JS memory, while the next is read.
    async fn finish(
        mut self,
        progress: Option<&Function>,
        mut each: impl FnMut(&[u8], &Object),
    ) -> Result<Bytes, JsValue> {
        let size = self.blob.size();
        let mut start = 0;
        while start < size {
            let end = size.min(start + self.chunk);
            let gone = |cause: &str| {
                let name = &self.name;
                let message = format!(
                    "`{name}` could not be read: {cause}; it may have been moved or changed since it was chosen, choose it again"
                );
                failure(ErrorKind::Read, &message)
            };
            let buffer = JsFuture::from(self.coming.clone()).await.map_err(|cause| {
                let cause: js_sys::Error = cause.unchecked_into();
                gone(&String::from(cause.to_string()))
            })?;
            if end < size {
                self.coming = slice(&self.blob, end, self.chunk);
            }
            let slice = Uint8Array::new(&buffer);
            if u64::from(slice.length()) != end - start {
                return Err(gone("it has become shorter"));
            }
            let (before, length) = (self.bytes.len(), slice.length() as usize);
            self.bytes.reserve_exact(length);
            slice.copy_to_uninit(&mut self.bytes.spare_capacity_mut()[..length]);
            // SAFETY: the bytes after the old length were just written.
            unsafe { self.bytes.set_len(before + length) };
            each(&self.bytes[before..], buffer.unchecked_ref());
            start = end;
            if let Some(progress) = progress {
                progress.call2(
                    &JsValue::NULL,
                    &(start as f64).into(),
                    &(size as f64).into(),
                )?;
            }
        }
        Ok(Bytes::from(self.bytes))
    }
}

/// Requests the slice of a file that begins at `start`.
fn slice(blob: &Blob, start: u64, chunk: u64) -> Promise {
    if blob.size() <= chunk {
        return AsRef::<web_sys::Blob>::as_ref(blob).array_buffer();
    }
    let slice = blob.slice(start, blob.size().min(start + chunk));
    AsRef::<web_sys::Blob>::as_ref(&slice).array_buffer()
}

/// Reads a file and its checksum.
///
/// The browser's implementation is about five times as fast as ours, but takes a file in one piece
/// only and is missing on insecure pages. So a large file is read slice by slice, and our checksum
/// processes each slice while the next is read.
pub(super) async fn read_with_checksum(
    name: &str,
    blob: web_sys::Blob,
    progress: &Function,
) -> Result<(Bytes, String), JsValue> {
    let in_one_piece = blob.size() <= ONE_PIECE as f64;
    let subtle = subtle().filter(|_| in_one_piece);
    let Some(subtle) = subtle else {
        let mut checksum = Checksum::new();
        let bytes = BlobReader::begin(name, blob, SLICE)?
            .finish(Some(progress), |slice, _| checksum.add(slice))
            .await?;
        return Ok((bytes, checksum.finish()));
    };
    let mut digest = None;
    let bytes = BlobReader::begin(name, blob, ONE_PIECE)?
        .finish(Some(progress), |_, buffer| {
            digest = Some(subtle.digest_with_str_and_buffer_source("SHA-256", buffer));
        })
        .await?;
    let sha256 = match digest {
        Some(digest) => hexadecimal(&Uint8Array::new(&JsFuture::from(digest?).await?).to_vec()),
        None => Checksum::new().finish(),
    };
    Ok((bytes, sha256))
}

fn subtle() -> Option<web_sys::SubtleCrypto> {
    let scope = js_sys::global().dyn_into::<web_sys::WorkerGlobalScope>();
    let crypto = scope.ok()?.crypto().ok()?;
    // Undefined on an insecure page, despite the declared type.
    Some(crypto.subtle()).filter(|subtle| subtle.is_truthy())
}

/// Reads a file.
pub(super) async fn read(name: &str, blob: web_sys::Blob) -> Result<Bytes, JsValue> {
    let reading = BlobReader::begin(name, blob, SLICE)?;
    reading.finish(None, |_, _| {}).await
}
