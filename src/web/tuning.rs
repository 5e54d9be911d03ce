//! Learned rounding for the page: the samples are decoded one by one, then one call learns.

use std::cell::RefCell;
use std::io;

use js_sys::{Array, Function, Uint8Array};
use wasm_bindgen::prelude::*;

use super::ModelSession;
use super::control::SharedControl;
use super::convert::{error, settings_from_js, text_of, to_js};
use crate::session::{Event, OrderError, ProgressMonitor};
use crate::tune::ValueFile;

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

#[wasm_bindgen]
extern "C" {
    /// A file that the worker opened for the values between two layers.
    #[wasm_bindgen(
        typescript_type = "{ write(bytes: Uint8Array, at: number): void, read(into: Uint8Array, at: number): void }"
    )]
    pub type OpenedFile;
    #[wasm_bindgen(method, catch)]
    fn write(this: &OpenedFile, bytes: &Uint8Array, at: f64) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn read(this: &OpenedFile, into: &Uint8Array, at: f64) -> Result<(), JsValue>;
}

thread_local! {
    static OPENED: RefCell<Option<OpenedFile>> = const { RefCell::new(None) };
}

/// The opened file, by way of the worker that runs the learning.
struct OpenedByPage;

impl OpenedByPage {
    fn call(work: impl FnOnce(&OpenedFile) -> Result<(), JsValue>) -> io::Result<()> {
        OPENED.with_borrow(|file| match file {
            Some(file) => work(file).map_err(|error| io::Error::other(text_of(&error))),
            None => Err(io::Error::other("it is closed")),
        })
    }
}

impl ValueFile for OpenedByPage {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        // A copy, as browsers write no shared memory.
        OpenedByPage::call(|file| file.write(&Uint8Array::from(bytes), at as f64))
    }

    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = Uint8Array::new_with_length(into.len() as u32);
        OpenedByPage::call(|file| file.read(&bytes, at as f64))?;
        bytes.copy_to(into);
        Ok(())
    }
}

#[wasm_bindgen(js_class = Session)]
impl ModelSession {
    /// Begins to learn the constants of these settings; returns the number of layers. Settings with
    /// `mem_opt_level: 2` take a file, which stays open until the run ends.
    #[wasm_bindgen(js_name = beginTuning)]
    pub fn begin_tuning(
        &mut self,
        settings: JsValue,
        file: Option<OpenedFile>,
    ) -> Result<usize, JsValue> {
        self.tuning = None;
        OPENED.set(file);
        let settings = settings_from_js(settings)?;
        let opened = || match OPENED.with_borrow(Option::is_some) {
            true => Ok(Box::new(OpenedByPage) as Box<dyn ValueFile>),
            false => Err(io::Error::other("there is no storage here")),
        };
        let tuning = self.inner.begin_tuning(&settings, &opened);
        let tuning = tuning.map_err(error)?;
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
        OPENED.set(None);
        to_js(&summary.map_err(error)?)
    }
}

fn not_tuning() -> JsValue {
    error(OrderError::NotTuned.into())
}
