//! The core starts in a worker of the browser.
#![cfg(target_family = "wasm")]

use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

#[wasm_bindgen_test]
fn an_empty_file_is_refused_in_words() {
    assert!(octet::tensor::Values::F32(vec![1.0]).len() == 1);
}
