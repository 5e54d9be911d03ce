//! A model and samples give the same quantized file in the browser as natively, byte for byte.

use wasm_bindgen_test::wasm_bindgen_test;

use crate::{pool, recorded};

#[wasm_bindgen_test]
async fn the_quantized_model_is_the_native_one_for_any_portions() {
    pool::started().await;
    recorded::check_quantized();
}
