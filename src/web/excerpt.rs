//! Changed copies of a model file, and the tensors of a sample, for runs in another runtime.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::files::read;
use super::{ModelSession, error, from_js, tensors};
use crate::session::{self, SeenValue};

/// The model file with these values as further outputs.
#[wasm_bindgen(js_name = withOutputs)]
pub async fn with_outputs(
    name: String,
    file: web_sys::Blob,
    values: JsValue,
) -> Result<Vec<u8>, JsValue> {
    let values: Vec<String> = from_js(values, "names of values")?;
    session::with_outputs(read(&name, file).await?, &values).map_err(error)
}

/// The nodes between `{ name, element, shape }`s and some values, as a model file of its own.
#[wasm_bindgen]
pub async fn excerpt(
    name: String,
    file: web_sys::Blob,
    inputs: JsValue,
    outputs: JsValue,
) -> Result<Vec<u8>, JsValue> {
    let inputs: Vec<SeenValue> = from_js(inputs, "values that were seen")?;
    let outputs: Vec<String> = from_js(outputs, "names of values")?;
    session::excerpt(read(&name, file).await?, &inputs, &outputs).map_err(error)
}

#[wasm_bindgen(js_class = Session)]
impl ModelSession {
    /// Decodes one sample, an array of `{ path, blob }`s, into `{ name, element, shape, data }`s:
    /// the tensors that the model is run on.
    pub async fn tensors(
        &self,
        name: String,
        files: Array,
        settings: JsValue,
    ) -> Result<Array, JsValue> {
        let decoded = self.decoded(&name, &files, settings).await?;
        let names = self.inner.input_specs().into_iter().map(|input| input.name);
        tensors::to_js(&names.zip(decoded).collect::<Vec<_>>())
    }
}
