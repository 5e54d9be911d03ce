//! A model that runs many times. It is planned once for each set of input shapes.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::control::SharedControl;
use super::convert::{error, to_js};
use super::files::{parts, read};
use super::tensors;
use crate::samples::InputSpec;
use crate::session::{self, ModelFile, Runner};
use crate::tensor::Tensor;

/// A model, float or quantized, with the plans of its runs.
#[wasm_bindgen]
pub struct Inference {
    runner: Runner,
    inputs: Vec<InputSpec>,
    card: JsValue,
    /// Inputs of the next run, in memory that the page writes.
    staged: Vec<Tensor>,
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
            staged: Vec::new(),
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

    /// Keeps these inputs for [`Inference::run_staged`] and returns them as `{ name, data }`s, whose
    /// arrays are views of this memory. With shared memory, the page writes the inputs of later
    /// runs there. Empty if an input has half precision, whose values have to be rounded.
    pub fn stage(&mut self, inputs: Array) -> Result<Array, JsValue> {
        self.staged.clear();
        let views = Array::new();
        if self.inputs.iter().any(|input| input.element.is_half()) {
            return Ok(views);
        }
        self.staged = tensors::from_js(&inputs, &self.inputs)?;
        for (input, tensor) in self.inputs.iter().zip(&self.staged) {
            views.push(&tensors::view(&input.name, tensor)?);
        }
        Ok(views)
    }

    /// Runs once with the values in the memory of [`Inference::stage`].
    #[wasm_bindgen(js_name = runStaged)]
    pub fn run_staged(&self) -> Result<Array, JsValue> {
        let outputs = self.runner.run(&self.staged[..], &SharedControl);
        tensors::to_js(&outputs.map_err(error)?)
    }
}
