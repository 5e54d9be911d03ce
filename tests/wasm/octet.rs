//! The core in a worker of a real browser. Each file checks one promise that only a browser can
//! break.
#![cfg_attr(target_family = "wasm", no_main)]

#[cfg(target_family = "wasm")]
mod format;
#[cfg(target_family = "wasm")]
mod histogram;
#[cfg(target_family = "wasm")]
mod kernels;
#[cfg(target_family = "wasm")]
mod memory;
#[cfg(target_family = "wasm")]
mod pool;
#[cfg(target_family = "wasm")]
mod quantization;
#[cfg(target_family = "wasm")]
mod recorded;
#[cfg(all(target_family = "wasm", feature = "threads"))]
mod threads;

#[cfg(target_family = "wasm")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

#[cfg(not(target_family = "wasm"))]
fn main() {}
