//! A model that runs many times. It is planned once for each set of input shapes.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::control::SharedControl;
use super::convert::{error, to_js};
use super::files::{parts, read};
use super::tensors;
use crate::samples::InputSpec;
use crate::session::{self, ModelFile, Runner};

/// A model, float or quantized, with the plans of its runs.
#[wasm_bindgen]
pub struct Inference {
    runner: Runner,
    inputs: Vec<InputSpec>,
    card: JsValue,
}

#[wasm_bindgen]
impl Inference {
    /// Reads a model. `data` are its files of external data, as `{ path, blob }`s.
    pub async fn open(
        name: String,
        file: web_sys::Blob,
        data: Array,
    ) -> Result<Inference, JsValue> {
        let bytes = read(&name, file).await?;
        let mut opened = session::Session::open(ModelFile::new(&name, bytes)).map_err(error)?;
        if data.length() > 0 {
            let files = parts(&data, None).await?.into_iter().collect();
            opened.attach(&files).map_err(error)?;
        }
        Ok(Inference {
            runner: opened.runner().map_err(error)?,
            inputs: opened.input_specs(),
            card: to_js(opened.summary())?,
        })
    }

    /// The summary of the model.
    pub fn card(&self) -> JsValue {
        self.card.clone()
    }

    /// Runs once: `{ name, shape, data }`s in, `{ name, element, shape, data }`s out.
    pub fn run(&self, inputs: Array) -> Result<Array, JsValue> {
        let inputs = tensors::from_js(&inputs, &self.inputs)?;
        let outputs = self.runner.run(inputs, &SharedControl).map_err(error)?;
        tensors::to_js(&outputs)
    }
}
