//! ONNX files are read and written in the browser as they are by the native build.

use bytes::Bytes;
use octet::onnx;
use wasm_bindgen_test::wasm_bindgen_test;

use crate::recorded;

#[wasm_bindgen_test]
fn a_model_is_written_as_natively() {
    assert_eq!(recorded::sha256(&recorded::model()), recorded::FILE);
}

#[wasm_bindgen_test]
fn what_is_read_and_written_comes_out_equal() {
    let file = recorded::model();
    let model = onnx::read(Bytes::from(file.clone())).expect("our own file");
    assert_eq!(onnx::write(&model).expect("small"), file);
}

#[wasm_bindgen_test]
fn tensor_bytes_are_shared_with_the_file() {
    let file = Bytes::from(recorded::model());
    let model = onnx::read(file.clone()).expect("our own file");
    let graph = model.graph.expect("it has a graph");
    let raw = graph.initializer[0].raw_data.as_ref().expect("raw data");
    assert!(
        file.as_ptr_range().contains(&raw.as_ptr()),
        "the tensor was copied"
    );
}

#[wasm_bindgen_test]
fn bad_files_are_refused_in_words() {
    let whole = recorded::model();
    for (what, file) in [
        ("empty", Vec::new()),
        ("a web page", b"<!DOCTYPE html><html></html>".to_vec()),
        ("cut short", whole[..whole.len() - 7].to_vec()),
    ] {
        let error = onnx::read(Bytes::from(file)).expect_err(what);
        assert!(error.to_string().len() > 20, "{what}: {error}");
    }
}
