//! Ranges in the files of other tools: taken in place of a calibration, and written from a result.

use js_sys::{Array, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use super::ModelSession;
use super::convert::{error, failure, from_js, to_js};
use super::files::parts;
use crate::exchange::{RangeFile, RangeFileError, RangeFormat, of_result, read};
use crate::session::{ErrorKind, ValueRanges};

#[wasm_bindgen(js_class = Session)]
impl ModelSession {
    /// Content of a file of ranges, the first of some `{ path, blob }`s.
    #[wasm_bindgen(js_name = readRanges)]
    pub async fn read_ranges(&self, files: Array) -> Result<JsValue, JsValue> {
        to_js(&file_of(&files).await?.summary())
    }

    /// Takes the ranges of a file in place of a calibration.
    #[wasm_bindgen(js_name = calibrateByRanges)]
    pub async fn calibrate_by_ranges(&mut self, files: Array) -> Result<JsValue, JsValue> {
        let ranges = file_of(&files).await?.ranges;
        to_js(&self.inner.set_ranges(ranges).map_err(error)?)
    }

    /// A file of a result's ranges in the format of this name: `{ bytes, notes }`. `files` has the
    /// result.
    #[wasm_bindgen(js_name = writeRanges)]
    pub async fn write_ranges(
        &mut self,
        format: String,
        ranges: JsValue,
        files: Array,
    ) -> Result<JsValue, JsValue> {
        let ranges: ValueRanges = from_js(ranges, "ranges")?;
        let format = RangeFormat::named(&format).ok_or_else(|| {
            let text = format!("there is no format of ranges named {format:?}");
            failure(ErrorKind::Settings, &text)
        })?;
        let read = parts(&files, None).await?;
        let pieces: Vec<_> = read.into_iter().map(|(_, bytes)| bytes).collect();
        let written = of_result(&mut self.inner, format, &ranges, &pieces);
        let written = written.map_err(|cause| failure(ErrorKind::Settings, &cause.to_string()))?;
        let result = Object::new();
        let bytes = Uint8Array::from(&written.bytes[..]);
        Reflect::set(&result, &"bytes".into(), &bytes)?;
        Reflect::set(&result, &"notes".into(), &to_js(&written.notes)?)?;
        Ok(result.into())
    }
}

async fn file_of(files: &Array) -> Result<RangeFile, JsValue> {
    let read_files = parts(files, None).await?;
    let (name, bytes) = read_files.first().ok_or_else(|| {
        let text = "no file of ranges was given";
        failure(ErrorKind::Sample, text)
    })?;
    let refused = |cause: RangeFileError| failure(ErrorKind::Sample, &format!("{name}: {cause}"));
    read(bytes).map_err(refused)
}
