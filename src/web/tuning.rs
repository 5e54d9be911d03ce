//! Learned rounding for the page: the samples are decoded one by one, then one call learns.

use std::cell::RefCell;
use std::path::Path;

use js_sys::{Array, Function};
use wasm_bindgen::prelude::*;

use super::ModelSession;
use super::control::SharedControl;
use super::convert::{error, failure, settings_from_js, to_js};
use crate::session::{Error, ErrorKind, Event, OrderError, ProgressMonitor};

thread_local! {
    /// Receives each layer, on the thread that called `tune`. The others have none.
    static LEARNED: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Tells each layer to the caller, and its number to the control words.
struct LayersTold;

impl ProgressMonitor for LayersTold {
    fn event(&self, event: &Event) {
        SharedControl.event(event);
        let Event::Layer { report, .. } = event else {
            return;
        };
        LEARNED.with_borrow(|learned| {
            // The caller's function only posts a message; an error of it must not end the call.
            if let (Some(learned), Ok(report)) = (learned, to_js(report)) {
                let _ = learned.call1(&JsValue::NULL, &report);
            }
        });
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
        let layers = tuning.layers().count();
        self.tuning = Some((tuning, settings));
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
        let (tuning, _) = self.tuning.as_mut().ok_or_else(not_tuning)?;
        tuning
            .add(inputs)
            .map_err(|cause| error(Error::from(cause)))
    }

    /// Learns the constants. `learned` is called with each layer; the number of layers done is in
    /// the control words as well.
    pub fn tune(&mut self, learned: Function) -> Result<JsValue, JsValue> {
        let (tuning, settings) = self.tuning.take().ok_or_else(not_tuning)?;
        LEARNED.set(Some(learned));
        let summary = self.inner.tune(tuning, &settings, &LayersTold);
        LEARNED.set(None);
        to_js(&summary.map_err(error)?)
    }
}

fn not_tuning() -> JsValue {
    error(OrderError::NotTuned.into())
}
