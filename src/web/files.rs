//! Files from the page: `Blob`s, copied once and slice by slice into memory of exactly their size.

use bytes::Bytes;
use gloo::file::Blob;
use js_sys::{Array, Function, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::failure;
use crate::samples::Encoded;

/// How much of a file is in JS memory at a time.
const SLICE: u64 = 4 << 20;

/// Samples whose files are in memory.
#[wasm_bindgen]
pub struct Portion {
    pub(super) samples: Vec<Encoded>,
}

#[wasm_bindgen]
impl Portion {
    /// Reads an array of `{ name, files: [{ path, blob }] }`.
    pub async fn read(samples: Array) -> Result<Portion, JsValue> {
        // The browser reads all of them at once.
        let mut begun = Vec::with_capacity(samples.length() as usize);
        for sample in samples.iter() {
            let name = Reflect::get(&sample, &"name".into())?
                .as_string()
                .unwrap_or_default();
            let files = Reflect::get(&sample, &"files".into())?.dyn_into::<Array>()?;
            begun.push((name, begin(&files)?));
        }
        let mut samples = Vec::with_capacity(begun.len());
        for (name, files) in begun {
            let parts = finish(files, None).await?;
            samples.push(Encoded { name, parts });
        }
        Ok(Portion { samples })
    }
}

/// Reads `{ path, blob }`s.
pub(super) async fn parts(
    files: &Array,
    progress: Option<&Function>,
) -> Result<Vec<(String, Bytes)>, JsValue> {
    finish(begin(files)?, progress).await
}

fn begin(files: &Array) -> Result<Vec<Reading>, JsValue> {
    let begin = |file: JsValue| {
        let path = Reflect::get(&file, &"path".into())?
            .as_string()
            .unwrap_or_default();
        let blob = Reflect::get(&file, &"blob".into())?.dyn_into::<web_sys::Blob>()?;
        Reading::begin(&path, blob)
    };
    files.iter().map(begin).collect()
}

async fn finish(
    files: Vec<Reading>,
    progress: Option<&Function>,
) -> Result<Vec<(String, Bytes)>, JsValue> {
    let mut parts = Vec::with_capacity(files.len());
    for file in files {
        let name = file.name.clone();
        parts.push((name, file.finish(progress, |_| {}).await?));
    }
    Ok(parts)
}

/// A file of which the first slice is on its way.
pub(super) struct Reading {
    name: String,
    blob: Blob,
    /// The file so far, in memory of its whole size.
    bytes: Vec<u8>,
    coming: Promise,
}

impl Reading {
    pub(super) fn begin(name: &str, blob: web_sys::Blob) -> Result<Reading, JsValue> {
        let blob = Blob::from(blob);
        let size = blob.size();
        let too_big = || {
            let message = format!(
                "`{name}` has {size} bytes, which is more than this page's memory can hold; use the command line for it"
            );
            failure("memory", &message)
        };
        let mut bytes = Vec::new();
        let capacity = usize::try_from(size).map_err(|_| too_big())?;
        bytes.try_reserve_exact(capacity).map_err(|_| too_big())?;
        Ok(Reading {
            name: name.to_string(),
            coming: slice(&blob, 0),
            blob,
            bytes,
        })
    }

    /// Copies the file into memory once: never more than two slices of it are in JS at a time, of which `each`
    /// is given the one while the other comes.
    pub(super) async fn finish(
        mut self,
        progress: Option<&Function>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<Bytes, JsValue> {
        let size = self.blob.size();
        let mut start = 0;
        while start < size {
            let end = size.min(start + SLICE);
            let gone = |cause: &str| {
                let name = &self.name;
                let message = format!(
                    "`{name}` could not be read: {cause}; it may have been moved or changed since it was chosen, choose it again"
                );
                failure("read", &message)
            };
            let buffer = JsFuture::from(self.coming.clone()).await.map_err(|cause| {
                let cause: js_sys::Error = cause.unchecked_into();
                gone(&String::from(cause.to_string()))
            })?;
            if end < size {
                self.coming = slice(&self.blob, end);
            }
            let slice = Uint8Array::new(&buffer);
            if u64::from(slice.length()) != end - start {
                return Err(gone("it has become shorter"));
            }
            let before = self.bytes.len();
            self.bytes.resize(before + slice.length() as usize, 0);
            slice.copy_to(&mut self.bytes[before..]);
            each(&self.bytes[before..]);
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

/// Asks for the slice of a file that begins at `start`.
fn slice(blob: &Blob, start: u64) -> Promise {
    if blob.size() <= SLICE {
        return AsRef::<web_sys::Blob>::as_ref(blob).array_buffer();
    }
    let slice = blob.slice(start, blob.size().min(start + SLICE));
    AsRef::<web_sys::Blob>::as_ref(&slice).array_buffer()
}

/// The whole of a file.
pub(super) async fn read(name: &str, blob: web_sys::Blob) -> Result<Bytes, JsValue> {
    Reading::begin(name, blob)?.finish(None, |_| {}).await
}
