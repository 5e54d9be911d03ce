//! Shared memory between page and worker. If memory is shared, a few words of it let the page stop
//! a call, follow the samples and detect a panic while the worker is busy.

use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use js_sys::{Int32Array, Uint8Array};
use wasm_bindgen::prelude::*;

use super::to_js;
use crate::allocator;
use crate::profile::memory;
use crate::session::{Event, ProgressMonitor};

/// The words shared with the page, at the indices of `www/shared-memory.js`.
static CONTROL: [AtomicI32; 5] = [const { AtomicI32::new(0) }; 5];
const CANCEL: u32 = 0;
const DONE: usize = 1;
const PANICKED: usize = 2;
const ENDED: usize = 3;
const WATCHING: usize = 4;

/// The message of the last panic, padded with zeros.
static PANIC_TEXT: [AtomicU8; 512] = [const { AtomicU8::new(0) }; 512];

/// Prepares a worker for its first call: the message of a panic goes to the console and to
/// [`panic_text`], as the trap that follows it carries none.
#[wasm_bindgen]
pub fn install() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        record_panic(&text);
        gloo::console::error!(text);
    }));
}

/// Stores the message of a panic in shared memory and sets the control word.
pub fn record_panic(text: &str) {
    let bytes = text.bytes().chain(std::iter::repeat(0));
    for (cell, byte) in PANIC_TEXT.iter().zip(bytes) {
        cell.store(byte, Ordering::Relaxed);
    }
    CONTROL[PANICKED].store(1, Ordering::Release);
}

/// Tells the other side that a request to stop will be followed. Until then it may end the process.
pub fn watch_stop_requests() {
    CONTROL[WATCHING].store(1, Ordering::Relaxed);
}

/// True after a request to stop.
pub fn stop_requested() -> bool {
    CONTROL[CANCEL as usize].load(Ordering::Relaxed) != 0
}

/// The control words as a view of wasm memory. If memory is not shared, growing it detaches the
/// view, so it must be used at once.
#[wasm_bindgen]
pub fn control() -> Int32Array {
    Int32Array::new_with_byte_offset_and_length(
        &memory_buffer(),
        CONTROL.as_ptr() as u32,
        CONTROL.len() as u32,
    )
}

/// The bytes of the last panic's message, under the same rule as [`control`].
#[wasm_bindgen(js_name = panicText)]
pub fn panic_text() -> Uint8Array {
    let length = PANIC_TEXT.len() as u32;
    Uint8Array::new_with_byte_offset_and_length(
        &memory_buffer(),
        PANIC_TEXT.as_ptr() as u32,
        length,
    )
}

/// Clears an old request to stop.
#[wasm_bindgen(js_name = resetControl)]
pub fn reset_control() -> Result<(), JsValue> {
    js_sys::Atomics::store(&control(), CANCEL, 0)?;
    CONTROL[DONE].store(0, Ordering::Relaxed);
    Ok(())
}

fn memory_buffer() -> JsValue {
    wasm_bindgen::memory()
        .unchecked_into::<js_sys::WebAssembly::Memory>()
        .buffer()
}

/// The memory of the engine. (wasm itself exports a `memory`.)
#[wasm_bindgen(js_name = memoryUsage)]
pub fn memory_usage() -> Result<JsValue, JsValue> {
    let pages = core::arch::wasm32::memory_size(0) * 65536;

    to_js(&memory::Memory {
        pages,
        live: allocator::live(),
        peak: allocator::peak(),
    })
}

/// Writes the progress of a calibration or a fine-tuning to the control words, from any thread.
pub(super) struct SharedControl;

impl ProgressMonitor for SharedControl {
    fn event(&self, _event: &Event) {
        CONTROL[DONE].fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        stop_requested()
    }

    /// Wakes waiters in JavaScript.
    fn ended(&self) {
        CONTROL[ENDED].fetch_add(1, Ordering::Release);
        // Only shared memory can be waited on; otherwise this does nothing.
        let _ = js_sys::Atomics::notify(&control(), ENDED as u32);
    }
}
