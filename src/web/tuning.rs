//! Learned rounding for the page: the samples are decoded one by one, then one call learns.

use std::cell::RefCell;
use std::path::Path;

use js_sys::{Array, Function, Uint8Array};
use wasm_bindgen::prelude::*;

use super::ModelSession;
use super::control::SharedControl;
use super::convert::{error, failure, settings_from_js, to_js};
use crate::session::{ErrorKind, Event, OrderError, ProgressMonitor};

/// Functions of the caller.
struct Callbacks {
    /// Receives the report of each layer.
    told: Function,
    /// Receives its record for the journal, and writes it before it returns.
    recorded: Function,
}

thread_local! {
    /// Those of the thread that called `tune`. The others have none.
    static CALLBACKS: RefCell<Option<Callbacks>> = const { RefCell::new(None) };
}

/// Calls the caller's function with a value. An error of it must not end the run.
fn call(which: fn(&Callbacks) -> &Function, value: &JsValue) {
    CALLBACKS.with_borrow(|callbacks| {
        if let Some(callbacks) = callbacks {
            let _ = which(callbacks).call1(&JsValue::NULL, value);
        }
    });
}

/// Tells each layer to the caller, and its number to the control words.
struct LayersTold;

impl ProgressMonitor for LayersTold {
    fn event(&self, event: &Event) {
        SharedControl.event(event);
        let Event::Layer { report, .. } = event else {
            return;
        };
        if let Ok(report) = to_js(report) {
            call(|callbacks| &callbacks.told, &report);
        }
    }

    fn learned(&self, record: &[u8]) {
        let copy = Uint8Array::from(record);
        call(|callbacks| &callbacks.recorded, &copy);
    }

    fn cancelled(&self) -> bool {
        SharedControl.cancelled()
    }
}

#[wasm_bindgen(js_class = Session)]
impl ModelSession {
    /// Begins to learn the constants of these settings; returns the number of layers.
    #[wasm_bindgen(js_name = beginTuning)]
    pub fn begin_tuning(&mut self, settings: JsValue) -> Result<usize, JsValue> {
        self.tuning = None;
        let settings = settings_from_js(settings)?;
        let level = settings
            .finetune
            .as_ref()
            .and_then(|finetune| finetune.mem_opt_level);
        if level == Some(2) {
            let text = "finetune: mem_opt_level 2 needs a file, which the page does not write: choose 0 or 1, or use the command line";
            return Err(failure(ErrorKind::Settings, text));
        }
        let tuning = self
            .inner
            .begin_tuning(&settings, Path::new(""))
            .map_err(error)?;
        let layers = tuning.layers();
        self.tuning = Some(tuning);
        Ok(layers)
    }

    /// Adds a sample, an array of `{ path, blob }`s.
    #[wasm_bindgen(js_name = addTuningSample)]
    pub async fn add_tuning_sample(
        &mut self,
        name: String,
        files: Array,
        reading: JsValue,
    ) -> Result<(), JsValue> {
        let inputs = self.decoded(&name, &files, reading).await?;
        let tuning = self.tuning.as_mut().ok_or_else(not_tuning)?;
        tuning.add(inputs).map_err(error)
    }

    /// The beginning of a journal of this run, after all samples.
    #[wasm_bindgen(js_name = tuningJournal)]
    pub fn tuning_journal(&self) -> Result<Vec<u8>, JsValue> {
        Ok(self.tuning.as_ref().ok_or_else(not_tuning)?.journal())
    }

    /// Takes over the parts of a journal, after all samples. Returns their number, and the bytes of
    /// the journal that are whole.
    #[wasm_bindgen(js_name = resumeTuning)]
    pub fn resume_tuning(&mut self, journal: &[u8]) -> Result<Vec<f64>, JsValue> {
        let tuning = self.tuning.as_mut().ok_or_else(not_tuning)?;
        let resumed = tuning.resume(journal);
        Ok(vec![resumed.parts as f64, resumed.bytes as f64])
    }

    /// Learns the constants. `told` is called with the report of each layer, `recorded` with its
    /// record for the journal. The number of layers done is in the control words as well.
    pub fn tune(&mut self, told: Function, recorded: Function) -> Result<JsValue, JsValue> {
        let tuning = self.tuning.take().ok_or_else(not_tuning)?;
        CALLBACKS.set(Some(Callbacks { told, recorded }));
        let summary = self.inner.tune(tuning, &LayersTold);
        CALLBACKS.set(None);
        to_js(&summary.map_err(error)?)
    }
}

fn not_tuning() -> JsValue {
    error(OrderError::NotTuned.into())
}
