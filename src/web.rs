//! The wasm interface: one class over [`session`], without any decisions of its own.
//!
//! Settings, model summaries and results cross as plain objects. Files arrive as `Blob`s and are
//! copied once, slice by slice, into memory of exactly their size. Models and tensors leave as
//! typed arrays. Errors are JS `Error`s with the session's message and its `kind`. If memory is
//! shared, a few words of it ([`control`]) let the page stop a call and detect a panic while the
//! worker is busy.

mod comparison;
mod control;
mod convert;
mod excerpt;
mod files;
mod inference;
mod inspect;
mod observing;
mod ranges;
mod search;
mod searching;
mod statistics;
mod stream;
mod tensors;
mod tuning;

use std::collections::BTreeMap;

use js_sys::{Array, Float32Array, Function, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::compare::Comparing;
use crate::profile::Repeats;
use crate::runtime::FloatKernels;
use crate::samples::{self, Encoded};
use crate::session::TuningRun;
use crate::session::{self, ErrorKind, ModelFile};
use crate::shards::CompletePasses;
use crate::stats::Method;
use crate::tensor::Tensor;

#[cfg(feature = "threads")]
pub use wasm_bindgen_rayon::init_thread_pool;

pub use control::{record_panic, stop_requested, watch_stop_requests};

use control::SharedControl;
use convert::{error, failure, from_js, settings_from_js, to_js};
use files::{Sample, parts, read_with_checksum};
use observing::Observing;
use searching::Searching;

/// Groups paths into samples.
#[wasm_bindgen]
pub fn group(paths: JsValue) -> Result<JsValue, JsValue> {
    let paths: Vec<String> = from_js(paths, "paths")?;
    to_js(
        &samples::group(&paths)
            .map_err(session::Error::from)
            .map_err(error)?,
    )
}

/// Presets of image settings, by name.
#[wasm_bindgen(js_name = imagePresets)]
pub fn image_presets() -> Result<JsValue, JsValue> {
    let named = samples::ImageSettings::PRESETS.iter();
    let presets: BTreeMap<_, _> = named
        .map(|name| (name, samples::ImageSettings::preset(name)))
        .collect();
    to_js(&presets)
}

/// A model from opening to the quantized file.
#[wasm_bindgen(js_name = Session)]
pub struct ModelSession {
    inner: session::Session,
    comparing: Option<Comparing>,
    tuning: Option<TuningRun>,
    searching: Option<Searching>,
    statistics: Option<CompletePasses>,
    observing: Option<Observing>,
}

#[wasm_bindgen(js_class = Session)]
impl ModelSession {
    /// Reads a model. `progress` is called with the bytes read and their total.
    pub async fn open(
        name: String,
        file: web_sys::Blob,
        progress: Function,
    ) -> Result<ModelSession, JsValue> {
        let (bytes, sha256) = read_with_checksum(&name, file, &progress).await?;
        let inner = session::Session::open(ModelFile {
            name,
            bytes,
            sha256,
        })
        .map_err(error)?;
        Ok(ModelSession {
            inner,
            comparing: None,
            tuning: None,
            searching: None,
            statistics: None,
            observing: None,
        })
    }

    /// The summary of the model.
    pub fn card(&self) -> Result<JsValue, JsValue> {
        to_js(self.inner.summary())
    }

    /// The external data files that are missing.
    #[wasm_bindgen(js_name = wantedFiles)]
    pub fn wanted_files(&self) -> Vec<String> {
        self.inner.wanted_files().to_vec()
    }

    /// Attaches the external data: an array of `{ path, blob }`, all files at once.
    pub async fn attach(&mut self, files: Array, progress: Function) -> Result<(), JsValue> {
        let mut read_files = BTreeMap::new();
        for (path, bytes) in parts(&files, Some(&progress)).await? {
            read_files.insert(path, bytes);
        }
        self.inner.attach(&read_files).map_err(error)
    }

    /// Decodes one sample. Returns a description of each input, and the values of the first one if
    /// they are float.
    pub async fn preview(
        &self,
        name: String,
        files: Array,
        settings: JsValue,
    ) -> Result<JsValue, JsValue> {
        let settings: samples::SampleSettings = from_js(settings, "sample settings")?;
        let sample = Encoded {
            name,
            parts: parts(&files, None).await?,
        };
        let inputs = self.inner.input_specs();
        let decoded = samples::decode_with_notes(&sample, &inputs, &settings)
            .map_err(session::Error::from)
            .map_err(error)?;
        let previews = decoded.previews(&inputs);
        let first = decoded
            .tensors
            .first()
            .and_then(|tensor| tensor.as_f32())
            .map(Float32Array::from);
        let result = Object::new();
        Reflect::set(&result, &"previews".into(), &to_js(&previews)?)?;
        Reflect::set(
            &result,
            &"first".into(),
            &first.map_or(JsValue::NULL, JsValue::from),
        )?;
        Ok(result.into())
    }

    /// Random samples that fit the model, as `{ path, bytes }`s. They are for trying things out
    /// only.
    #[wasm_bindgen(js_name = demoSamples)]
    pub fn demo_samples(&self, count: u32, seed: u32) -> Result<Array, JsValue> {
        let files = Array::new();
        for index in 0..count {
            let sample = self.inner.demo_sample(seed.into(), index.into());
            for (path, bytes) in sample.map_err(error)?.parts {
                let file = Object::new();
                Reflect::set(&file, &"path".into(), &path.into())?;
                Reflect::set(&file, &"bytes".into(), &Uint8Array::from(&bytes[..]))?;
                files.push(&file);
            }
        }
        Ok(files)
    }

    /// The cost of calibrating with `samples` samples like this first one, an array of `{ path,
    /// blob }`s, and of quantizing. The files of `ahead` samples are in memory at once.
    pub async fn forecast(
        &mut self,
        name: String,
        files: Array,
        reading: JsValue,
        samples: u32,
        ahead: u32,
        method: JsValue,
        settings: JsValue,
    ) -> Result<JsValue, JsValue> {
        let reading: samples::SampleSettings = from_js(reading, "sample settings")?;
        let method: Method = from_js(method, "method")?;
        let settings = settings_from_js(settings)?;
        let first = Encoded {
            name,
            parts: parts(&files, None).await?,
        };
        let job = session::ForecastJob {
            samples: samples as usize,
            ahead: ahead as usize,
            threads: rayon::current_num_threads(),
            method,
            settings: &settings,
        };
        let found = self.inner.forecast(first, &reading, &job, &SharedControl);
        to_js(&found.map_err(error)?)
    }

    /// Prepares the model and begins a calibration. `equalize` has the form of the settings key and
    /// turns channel equalization on.
    #[wasm_bindgen(js_name = beginCalibration)]
    pub fn begin_calibration(
        &mut self,
        samples: JsValue,
        equalize: JsValue,
    ) -> Result<(), JsValue> {
        let samples = from_js(samples, "sample settings")?;
        let document = Object::new();
        Reflect::set(&document, &"equalize".into(), &equalize)?;
        self.inner
            .equalize(settings_from_js(document.into())?.equalizes());
        self.observing = None;
        self.inner.begin_calibration(samples).map_err(error)
    }

    /// Begins to run a sample and returns at once if a thread is free. The result is false if an
    /// earlier sample failed, so that this one was not begun.
    #[wasm_bindgen(js_name = beginSample)]
    pub fn begin_sample(&mut self, sample: Sample) -> Result<bool, JsValue> {
        if let Some(observing) = &mut self.observing {
            observing.seen.add(&sample.encoded);
        }
        let begun = self.inner.begin_sample(sample.encoded, &SharedControl);
        begun.map_err(error)
    }

    /// The number of samples that were begun and have not ended. `ENDED` in the control words
    /// changes with it.
    #[wasm_bindgen(js_name = samplesUnderWay)]
    pub fn samples_under_way(&self) -> usize {
        self.inner.samples_under_way()
    }

    /// The ranges so far: `[name, min, max]` of each observed value with data.
    #[wasm_bindgen(js_name = rangesSoFar)]
    pub fn ranges_so_far(&self) -> Array {
        let all = self.inner.ranges_so_far();
        let result = all
            .into_iter()
            .filter_map(|(name, range)| Some((name, range?)));
        result
            .map(|(name, range)| Array::of3(&name.into(), &range.min.into(), &range.max.into()))
            .collect()
    }

    /// Throws the error of the first sample that failed since it was begun.
    pub fn settle(&mut self) -> Result<(), JsValue> {
        self.inner.settle().map_err(error)
    }

    /// Begins an extra pass if this method, GPTQ rounding or equalization needs one. Returns true
    /// if the samples must be fed again.
    #[wasm_bindgen(js_name = beginFurtherPass)]
    pub fn begin_extra_pass(&mut self, method: JsValue, moments: bool) -> Result<bool, JsValue> {
        let method: Method = from_js(method, "method")?;
        self.inner.begin_extra_pass(method, moments).map_err(error)
    }

    /// Ends the calibration with a method, such as `minmax` or `percentile:99.9`.
    #[wasm_bindgen(js_name = finishCalibration)]
    pub fn finish_calibration(&mut self, method: JsValue) -> Result<JsValue, JsValue> {
        let method: Method = from_js(method, "method")?;
        to_js(&self.inner.finish_calibration(method).map_err(error)?)
    }

    /// The quantized model: `{ model, summary, ranges }`.
    pub fn quantize(&mut self, settings: JsValue) -> Result<JsValue, JsValue> {
        let settings = settings_from_js(settings)?;
        let outcome = self.inner.quantize(&settings).map_err(error)?;
        let result = Object::new();
        Reflect::set(
            &result,
            &"model".into(),
            &files::whole(&outcome.model)?.into(),
        )?;
        Reflect::set(&result, &"summary".into(), &to_js(&outcome.summary)?)?;
        Reflect::set(&result, &"ranges".into(), &to_js(&outcome.ranges)?)?;
        Ok(result.into())
    }

    /// Runs one sample several times and measures every layer: `{ outputs, table }`. The sample is
    /// an array of `{ path, blob }`s, or of `{ name, shape, data }`s with typed arrays. `kernels`
    /// selects the kernels of float convolutions.
    pub async fn run(
        &mut self,
        sample: Array,
        settings: JsValue,
        runs: u32,
        warm_up: u32,
        kernels: Option<String>,
    ) -> Result<JsValue, JsValue> {
        let kernels = kernels
            .as_deref()
            .map(str::parse::<FloatKernels>)
            .transpose();
        let kernels = kernels.map_err(|cause| failure(ErrorKind::Settings, &cause.to_string()))?;
        let inputs = match Reflect::has(&sample.get(0), &"data".into()).unwrap_or(false) {
            true => tensors::from_js(&sample, &self.inner.input_specs())?,
            false => self.decoded("sample", &sample, settings).await?,
        };
        let repeats = Repeats {
            runs: runs as usize,
            warm_up: warm_up as usize,
        };
        let profile = self
            .inner
            .profile(&inputs, repeats, kernels, &SharedControl)
            .map_err(error)?;
        let result = Object::new();
        let outputs = tensors::to_js(&profile.outputs)?;
        Reflect::set(&result, &"outputs".into(), &outputs)?;
        Reflect::set(&result, &"table".into(), &to_js(&profile.table)?)?;
        Ok(result.into())
    }

    /// Exports the measurements: `csv`, `trace`, `speedscope`, `modelExplorer` or `html`.
    pub fn export(&self, kind: JsValue) -> Result<String, JsValue> {
        let kind: session::Export = from_js(kind, "kind of file")?;
        self.inner.export(kind).map_err(error)
    }

    /// Begins a scope of the caller in the report.
    #[wasm_bindgen(js_name = beginScope)]
    pub fn begin_scope(&mut self, message: &str) {
        self.inner.begin_scope(message);
    }

    /// Ends the scope that was begun last.
    #[wasm_bindgen(js_name = endScope)]
    pub fn end_scope(&mut self) {
        self.inner.end_scope();
    }

    /// The report so far, as YAML.
    pub fn report(&self) -> String {
        self.inner.report()
    }
}

impl ModelSession {
    async fn decoded(
        &self,
        name: &str,
        files: &Array,
        settings: JsValue,
    ) -> Result<Vec<Tensor>, JsValue> {
        let settings: samples::SampleSettings = from_js(settings, "sample settings")?;
        let sample = Encoded {
            name: name.into(),
            parts: parts(files, None).await?,
        };
        self.inner.decode(&sample, &settings).map_err(error)
    }
}

/// The file of a small model. The worker runs the whole pipeline on it, so that the browser
/// compiles the code early.
#[wasm_bindgen(js_name = warmUp)]
pub fn warm_up() -> Result<Vec<u8>, JsValue> {
    session::warm_up().map_err(error)
}
