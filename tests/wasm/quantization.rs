//! The same model and samples give the same quantized file in the browser as natively, byte for byte.

use wasm_bindgen_test::wasm_bindgen_test;

use crate::{pool, recorded};

#[wasm_bindgen_test]
async fn the_quantized_model_is_the_native_one_for_any_portions() {
    pool::started().await;
    for portions in [&[5][..], &[1, 1, 1, 1, 1], &[2, 3]] {
        let model = recorded::quantized(portions);
        assert_eq!(
            recorded::sha256(&model),
            recorded::QUANTIZED,
            "{portions:?}"
        );
    }
}
