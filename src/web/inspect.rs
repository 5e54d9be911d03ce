//! Views into the model: checks of samples, graphs, statistics of values, channels of weights.

use js_sys::{Array, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use super::files::{file_starts, read};
use super::{ModelSession, error, failure, from_js, to_js};
use crate::quantize::ElementType;
use crate::samples;
use crate::session::{self, ErrorKind, GraphView};
use crate::snippets::SnippetKind;

/// The graph of any model file.
#[wasm_bindgen(js_name = graphOf)]
pub async fn graph_of(name: String, file: web_sys::Blob) -> Result<JsValue, JsValue> {
    let bytes = read(&name, file).await?;
    to_js(&GraphView::from_file(bytes).map_err(error)?)
}

#[wasm_bindgen(js_class = Session)]
impl ModelSession {
    /// Checks a sample before a run, an array of `{ path, blob }`s. Returns `null`, or the problem.
    #[wasm_bindgen(js_name = checkSample)]
    pub async fn check_sample(
        &mut self,
        name: String,
        files: Array,
        settings: JsValue,
    ) -> Result<JsValue, JsValue> {
        let settings: samples::SampleSettings = from_js(settings, "sample settings")?;
        let parts = file_starts(&files).await?;
        to_js(&self.inner.check(&name, &parts, &settings).err())
    }

    /// Rows of a table as samples, as `{ path, bytes }`s.
    #[wasm_bindgen(js_name = tableRows)]
    pub async fn table_rows(&self, path: String, file: web_sys::Blob) -> Result<Array, JsValue> {
        let bytes = read(&path, file).await?;
        let rows =
            samples::table_rows(&path, &bytes, &self.inner.input_specs(), samples::MOST_ROWS);
        let files = Array::new();
        for (path, bytes) in rows.map_err(session::Error::from).map_err(error)? {
            let file = Object::new();
            Reflect::set(&file, &"path".into(), &path.into())?;
            Reflect::set(&file, &"bytes".into(), &Uint8Array::from(&bytes[..]))?;
            files.push(&file);
        }
        Ok(files)
    }

    /// Code that runs a model that was made from this one, in a file of this name. `image` is the
    /// preprocessing of images.
    pub fn snippet(&self, kind: &str, file: &str, image: JsValue) -> Result<String, JsValue> {
        let unknown = || {
            failure(
                ErrorKind::Settings,
                &format!("there is no snippet {kind:?}"),
            )
        };
        let kind = SnippetKind::named(kind).ok_or_else(unknown)?;
        let image = from_js(image, "image settings")?;
        self.inner.snippet_for(kind, file, image).map_err(error)
    }

    /// The graph that is calibrated and quantized, after preparation.
    pub fn graph(&mut self) -> Result<JsValue, JsValue> {
        to_js(&self.inner.graph().map_err(error)?)
    }

    /// The statistics of a value, and the ranges that the methods would choose for a type such as
    /// `u8`. `null` if there are none.
    pub fn distribution(
        &self,
        value: String,
        element: JsValue,
        symmetric: Option<bool>,
    ) -> Result<JsValue, JsValue> {
        let element: ElementType = from_js(element, "element type")?;
        to_js(&self.inner.distribution(&value, element, symmetric))
    }

    /// Minimum and maximum of each channel of a weight; `null` for other constants.
    pub fn channels(&self, weight: String) -> Result<JsValue, JsValue> {
        to_js(&self.inner.channels(&weight).map_err(error)?)
    }
}
