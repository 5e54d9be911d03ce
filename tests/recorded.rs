//! The native build gives the bytes that the browser tests (`tests/wasm/`) expect of the wasm
//! builds.
#![allow(clippy::unwrap_used)]

#[path = "wasm/recorded.rs"]
mod recorded;

use octet::stats::TensorStatistics;

#[test]
fn the_model_file_is_the_recorded_one() {
    assert_eq!(recorded::sha256(&recorded::model()), recorded::FILE);
}

#[test]
fn the_model_file_is_read_and_written_equal() {
    let file = recorded::model();
    let model = octet::onnx::read(file.clone().into()).unwrap();
    assert_eq!(octet::onnx::write(&model).unwrap(), file);
}

#[test]
fn the_quantized_model_is_the_recorded_one_for_any_portions() {
    recorded::check_quantized();
}

#[test]
fn the_histogram_is_the_recorded_one() {
    let mut seen = TensorStatistics::new();
    seen.observe(&recorded::numbers(4096, 7));
    assert_eq!(
        recorded::sha256(&recorded::histogram_bytes(&seen)),
        recorded::HISTOGRAM
    );
}
