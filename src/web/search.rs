//! The search under a budget, for the page: samples one by one, then steps. What it found is an
//! object of its own, which outlives the session.

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use super::ModelSession;
use super::control::SharedControl;
use super::convert::{error, failure, from_js, settings_from_js, to_js};
use super::searching::{PageOptions, Searching};
use crate::search::{self, FoundCurve, SearchSample};
use crate::session::{ErrorKind, OrderError};

/// The places of the samples that choose; all others verify.
#[wasm_bindgen(js_name = choosingHalf)]
pub fn choosing_half(count: u32, seed: u32) -> Vec<u32> {
    let (choosing, _) = search::halves(count as usize, seed.into());
    choosing.into_iter().map(|place| place as u32).collect()
}

#[wasm_bindgen(js_class = Session)]
impl ModelSession {
    /// Takes the settings and the choices of a search. Its samples follow.
    #[wasm_bindgen(js_name = beginSearch)]
    pub fn begin_search(&mut self, settings: JsValue, options: JsValue) -> Result<(), JsValue> {
        self.searching = None;
        self.inner.refuse_quantized().map_err(error)?;
        let wanted: PageOptions = from_js(options, "options of the search")?;
        let profile = wanted.profile.unwrap_or(false);
        let options = wanted
            .read()
            .map_err(|text| failure(ErrorKind::Settings, &text))?;
        self.searching = Some(Searching {
            settings: settings_from_js(settings)?,
            options,
            profile,
            choosing: Vec::new(),
            held: Vec::new(),
            profiled: None,
            begun: None,
        });
        Ok(())
    }

    /// Adds a sample, an array of `{ path, blob }`s. `label` is its class number, if known; samples
    /// that are `held` out verify.
    #[wasm_bindgen(js_name = addSearchSample)]
    pub async fn add_search_sample(
        &mut self,
        name: String,
        files: Array,
        reading: JsValue,
        label: Option<u32>,
        held: bool,
    ) -> Result<(), JsValue> {
        let inputs = self.decoded(&name, &files, reading).await?;
        let searching = self.searching.as_mut().ok_or_else(not_searching)?;
        let sample = SearchSample {
            name,
            inputs,
            label: label.map(|label| label as usize),
        };
        match held {
            true => searching.held.push(sample),
            false => searching.choosing.push(sample),
        }
        Ok(())
    }

    /// Makes one step; returns the progress, or `null` once the search is done.
    #[wasm_bindgen(js_name = searchStep)]
    pub fn search_step(&mut self) -> Result<JsValue, JsValue> {
        let searching = self.searching.as_mut().ok_or_else(not_searching)?;
        let search = match &mut searching.begun {
            Some(search) => search,
            None => {
                let choosing = std::mem::take(&mut searching.choosing);
                let held = std::mem::take(&mut searching.held);
                let profiled = choosing.first().filter(|_| searching.profile);
                searching.profiled = profiled.map(|sample| sample.inputs.clone());
                let (settings, options) = (&searching.settings, searching.options.clone());
                let search = self.inner.begin_search(settings, options, choosing, held);
                let search = searching.begun.insert(search.map_err(error)?);
                return to_js(&search.progress());
            }
        };
        let profiled = searching.profiled.as_deref();
        let more = self.inner.search_step(search, profiled, &SharedControl);
        match more.map_err(error)? {
            true => to_js(&search.progress()),
            false => Ok(JsValue::NULL),
        }
    }

    /// The curve that the search found. The session keeps nothing of it.
    #[wasm_bindgen(js_name = takeCurve)]
    pub fn take_curve(&mut self) -> Result<SearchCurve, JsValue> {
        let search = self.searching.take().and_then(|searching| searching.begun);
        let name = self.inner.summary().name.clone();
        let found = search.and_then(|search| search.into_curve(&name));
        let found = found.ok_or_else(not_searching)?;
        Ok(SearchCurve { found })
    }
}

/// The curve of a search.
#[wasm_bindgen]
pub struct SearchCurve {
    found: FoundCurve,
}

#[wasm_bindgen]
impl SearchCurve {
    /// The result without `bits`, which would be large; `settings` tells them for a point.
    pub fn result(&self) -> Result<JsValue, JsValue> {
        let result = search::SearchResult {
            bits: Vec::new(),
            ..self.found.result.clone()
        };
        let result = to_js(&result)?;
        Reflect::delete_property(result.unchecked_ref::<Object>(), &"bits".into())?;
        Ok(result)
    }

    /// The settings of a point.
    pub fn settings(&self, point: usize) -> Result<JsValue, JsValue> {
        let settings = self.found.settings_of(point);
        let count = self.found.result.points.len();
        let missing = || format!("the curve has no point {point}: it has {count}, the first is 0");
        to_js(&settings.ok_or_else(|| failure(ErrorKind::Settings, &missing()))?)
    }

    /// The file of sensitivities.
    pub fn sensitivities(&self) -> Result<String, JsValue> {
        let text = self.found.sensitivities.text();
        text.map_err(|cause| failure(ErrorKind::Internal, &cause.to_string()))
    }
}

fn not_searching() -> JsValue {
    error(OrderError::NotSearching.into())
}
