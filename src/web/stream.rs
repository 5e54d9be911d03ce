//! A model of any size: the page reads and writes the files, and this hands out the steps.

use js_sys::{Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use super::convert::{error, from_js, settings_from_js, to_js};
use super::files::whole;
use crate::onnx::Stretch;
use crate::session;
use crate::stream::{ConversionStep, SourceIdentity};

/// A model that is read and converted piece by piece.
#[wasm_bindgen(js_name = StreamedModel)]
pub struct StreamedModelSession {
    inner: session::StreamedModel,
}

#[wasm_bindgen(js_class = StreamedModel)]
impl StreamedModelSession {
    /// Starts to read a model: `{ name, bytes, modified }`.
    #[wasm_bindgen(constructor)]
    pub fn new(file: JsValue) -> Result<StreamedModelSession, JsValue> {
        let file: SourceIdentity = from_js(file, "model's name and size")?;
        let inner = session::StreamedModel::open(file);
        Ok(StreamedModelSession { inner })
    }

    /// The bytes that `feed` needs next, `{ file, offset, length }`; `undefined` at the end of the
    /// graph or of the small constants.
    pub fn wanted(&self) -> Result<JsValue, JsValue> {
        match self.inner.wanted() {
            Some(stretch) => to_read(&stretch),
            None => Ok(JsValue::UNDEFINED),
        }
    }

    /// Takes the bytes that `wanted` asked for.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), JsValue> {
        self.inner.feed(bytes).map_err(error)
    }

    /// Ends the reading of the graph; returns the names of the files of weights.
    #[wasm_bindgen(js_name = endGraph)]
    pub fn end_graph(&mut self) -> Result<Vec<String>, JsValue> {
        self.inner.end_graph().map_err(error)
    }

    /// Names the files of weights, `{ name, bytes, modified }`s. Throws if one is missing or too
    /// short.
    pub fn attach(&mut self, files: JsValue) -> Result<(), JsValue> {
        let files = from_js(files, "names and sizes of the files of weights")?;
        self.inner.attach(files).map_err(error)
    }

    /// Ends the reading of small constants; returns the model's summary.
    #[wasm_bindgen(js_name = endConstants)]
    pub fn end_constants(&mut self) -> Result<JsValue, JsValue> {
        to_js(&self.inner.end_constants().map_err(error)?)
    }

    /// Plans a conversion into files of at most `limit` bytes.
    pub fn plan(&mut self, settings: JsValue, limit: f64) -> Result<JsValue, JsValue> {
        let settings = settings_from_js(settings)?;
        to_js(&self.inner.plan(&settings, limit as u64).map_err(error)?)
    }

    /// Goes on where the conversion of this journal ended; returns its plan.
    pub fn resume(&mut self, journal: &str) -> Result<JsValue, JsValue> {
        self.inner.resume(journal).map_err(error)?;
        to_js(&self.inner.changed_plan().map_err(error)?)
    }

    /// Bytes that were read so far.
    #[wasm_bindgen(js_name = bytesRead)]
    pub fn bytes_read(&mut self) -> Result<f64, JsValue> {
        let (read, _) = self.inner.progress().map_err(error)?;
        Ok(read as f64)
    }

    /// The next step: `{ file, offset, length }` to read, `{ to, offset, bytes }` to write,
    /// `{ from, to, offset }` to copy, `{ plan }` to begin all files again, or `undefined` at the end.
    /// A write or a copy must be done before the next step.
    pub fn step(&mut self) -> Result<JsValue, JsValue> {
        match self.inner.step().map_err(error)? {
            ConversionStep::Read(stretch) => to_read(&stretch),
            ConversionStep::Copy {
                from, file, offset, ..
            } => to_write(file, offset, "from", &to_read(&from)?),
            ConversionStep::Write {
                file,
                offset,
                bytes,
            } => to_write(file, offset, "bytes", &Uint8Array::from(bytes.as_slice())),
            ConversionStep::Restart => {
                let changed = Object::new();
                let plan = to_js(&self.inner.changed_plan().map_err(error)?)?;
                Reflect::set(&changed, &"plan".into(), &plan)?;
                Ok(changed.into())
            }
            ConversionStep::Finished => Ok(JsValue::UNDEFINED),
        }
    }

    /// The reads that come from here on, in order, if the plan stays.
    pub fn reads(&mut self) -> Result<Vec<JsValue>, JsValue> {
        let reads = self.inner.reads().map_err(error)?;
        reads.iter().map(to_read).collect()
    }

    /// Takes the bytes that a step asked for.
    #[wasm_bindgen(js_name = feedStep)]
    pub fn feed_step(&mut self, bytes: &[u8]) -> Result<(), JsValue> {
        self.inner.feed_conversion(bytes).map_err(error)
    }

    /// True if constants are complete that the journal does not have.
    #[wasm_bindgen(js_name = isJournalOld)]
    pub fn is_journal_old(&mut self) -> Result<bool, JsValue> {
        self.inner.is_journal_old().map_err(error)
    }

    /// The journal, as JSON text. All writes must be on the disk.
    pub fn journal(&mut self) -> Result<String, JsValue> {
        self.inner.journal().map_err(error)
    }

    /// `{ model, outcome }`: the model file, to be written last, and what there is to say.
    pub fn finish(&mut self) -> Result<JsValue, JsValue> {
        let (model, outcome) = self.inner.finish().map_err(error)?;
        let finished = Object::new();
        Reflect::set(&finished, &"model".into(), &whole(&model)?.into())?;
        Reflect::set(&finished, &"outcome".into(), &to_js(&outcome)?)?;
        Ok(finished.into())
    }
}

fn to_read(stretch: &Stretch) -> Result<JsValue, JsValue> {
    let read = Object::new();
    Reflect::set(&read, &"file".into(), &stretch.file.as_str().into())?;
    Reflect::set(&read, &"offset".into(), &(stretch.offset as f64).into())?;
    Reflect::set(&read, &"length".into(), &(stretch.length as f64).into())?;
    Ok(read.into())
}

/// A step that writes something.
fn to_write(file: usize, offset: u64, what: &str, value: &JsValue) -> Result<JsValue, JsValue> {
    let write = Object::new();
    Reflect::set(&write, &"to".into(), &(file as f64).into())?;
    Reflect::set(&write, &"offset".into(), &(offset as f64).into())?;
    Reflect::set(&write, &what.into(), value)?;
    Ok(write.into())
}
