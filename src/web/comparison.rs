//! Comparisons of the float model with a quantized one, sample by sample.

use js_sys::{Array, Float32Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use super::control::SharedControl;
use super::convert::{error, to_js};
use super::{ModelSession, files, tensors};
use crate::compare::{DetectedBox, SampleAnswers};
use crate::samples::InputSpec;
use crate::session::{self, ModelFile, OrderError};
use crate::tensor::Tensor;

#[wasm_bindgen(js_class = Session)]
impl ModelSession {
    /// Begins a comparison with a model that was quantized from this one. With `split`, the errors
    /// of weights alone and of activations alone are measured, too, if possible. Without `layers` only
    /// the outputs are compared, and the report stays as it is.
    #[wasm_bindgen(js_name = beginComparison)]
    pub async fn begin_comparison(
        &mut self,
        quantized: web_sys::Blob,
        split: bool,
        layers: bool,
    ) -> Result<(), JsValue> {
        self.comparing = None;
        let name = "the quantized model";
        let bytes = files::read(name, quantized).await?;
        let quantized = session::Session::open(ModelFile::new(name, bytes)).map_err(error)?;
        let runner = quantized.runner().map_err(error)?;
        let comparing = match layers {
            true => self.inner.begin_comparison(&runner),
            false => self.inner.begin_output_comparison(&runner),
        };
        let mut comparing = comparing.map_err(error)?;
        if split {
            comparing.split();
        }
        self.comparing = Some(comparing);
        Ok(())
    }

    /// Compares both models on one sample, an array of `{ path, blob }`s. `label` is its class
    /// number, if known. With `answers`, it returns the inputs, and what both models answer.
    #[wasm_bindgen(js_name = compareSample)]
    pub async fn compare_sample(
        &mut self,
        name: String,
        files: Array,
        settings: JsValue,
        label: Option<u32>,
        answers: bool,
    ) -> Result<JsValue, JsValue> {
        let inputs = self.decoded(&name, &files, settings).await?;
        let comparing = self.comparing.as_mut().ok_or_else(not_comparing)?;
        let label = label.map(|label| label as usize);
        let found = session::compare_sample(comparing, &inputs, label, &SharedControl);
        let found = found.map_err(error)?;
        match answers {
            true => answers_to_js(self.inner.input_specs(), inputs, found),
            false => Ok(JsValue::NULL),
        }
    }

    /// Ends the comparison; its result goes into the report if it has layers.
    #[wasm_bindgen(js_name = finishComparison)]
    pub fn finish_comparison(&mut self) -> Result<JsValue, JsValue> {
        let comparing = self.comparing.take().ok_or_else(not_comparing)?;
        let partial = comparing.is_of_outputs();
        let found = comparing.finish();
        match partial {
            true => self.inner.leave_comparison(),
            false => self.inner.finish_comparison(&found),
        }
        to_js(&found)
    }
}

/// Outputs with more elements than this stay behind: their copies would need too much memory.
const MAX_ELEMENTS: usize = 1 << 24;

/// `{ inputs, outputs, boxes, prototypes }`: tensors, `{ kind, float, quantized }`s, and for a
/// detector two arrays with six numbers for each box (corners, score, class), else null.
/// `prototypes` is the name of the output with prototypes of masks, or null; then the coefficients
/// of each box follow its class.
fn answers_to_js(
    specs: Vec<InputSpec>,
    inputs: Vec<Tensor>,
    answers: SampleAnswers,
) -> Result<JsValue, JsValue> {
    let object = |entries: &[(&str, JsValue)]| -> Result<JsValue, JsValue> {
        let object = Object::new();
        for (key, value) in entries {
            Reflect::set(&object, &(*key).into(), value)?;
        }
        Ok(object.into())
    };
    let names = specs.into_iter().map(|input| input.name);
    let inputs: Vec<(String, Tensor)> = names.zip(inputs).collect();
    let outputs = Array::new();
    let prototypes = answers.prototypes.map(|at| answers.outputs[at].0.clone());
    let both = answers.float.into_iter().zip(answers.quantized);
    for ((name, kind), (float, quantized)) in answers.outputs.into_iter().zip(both) {
        if float.values().len().max(quantized.values().len()) > MAX_ELEMENTS {
            continue;
        }
        let pair = tensors::to_js(&[(name.clone(), float), (name, quantized)])?;
        outputs.push(&object(&[
            ("kind", to_js(&kind)?),
            ("float", pair.get(0)),
            ("quantized", pair.get(1)),
        ])?);
    }
    let flat = |boxes: &Vec<DetectedBox>| {
        let mut rows: Vec<f32> = Vec::new();
        for one in boxes.iter().filter(|one| one.item == 0) {
            rows.extend(one.coordinates);
            rows.extend([one.score, one.class as f32]);
            rows.extend(&one.coefficients);
        }
        Float32Array::from(&rows[..])
    };
    let boxes = answers
        .boxes
        .map(|boxes| boxes.iter().map(flat).collect::<Array>());
    object(&[
        ("inputs", tensors::to_js(&inputs)?.into()),
        ("outputs", outputs.into()),
        ("boxes", boxes.map_or(JsValue::NULL, JsValue::from)),
        (
            "prototypes",
            prototypes.map_or(JsValue::NULL, JsValue::from),
        ),
    ])
}

fn not_comparing() -> JsValue {
    error(OrderError::NotComparing.into())
}
