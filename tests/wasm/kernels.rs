//! The int8 kernels give the same integers in this browser with every instruction set it supports.

// The cases of the native tests, from the same seeds.
#[path = "../../crates/kernels/tests/checks/mod.rs"]
mod checks;

use checks::{Gemm, Random, Windowed};
use octet_kernels::int8::Form;
use wasm_bindgen_test::{console_log, wasm_bindgen_test};

#[wasm_bindgen_test]
fn the_forms_of_this_build_run() {
    let available: Vec<&str> = Form::available().into_iter().map(Form::name).collect();
    console_log!("kernel forms: {}", available.join(", "));
    assert!(Form::Simd128.is_available());
    // The relaxed dot product of every engine has a known behaviour.
    let relaxed = cfg!(target_feature = "relaxed-simd");
    assert_eq!(Form::RelaxedSplit.is_available(), relaxed);
    assert_eq!(Form::RelaxedFused.is_available(), relaxed);
}

#[wasm_bindgen_test]
fn a_gemm_is_the_same_in_every_form() {
    let mut random = Random(1);
    for _ in 0..300 {
        Gemm::random(&mut random).check();
    }
    for sizes in [[300, 5, 9], [70, 1000, 17], [9, 3000, 8], [1, 511, 130]] {
        for kind in 0..4 {
            Gemm {
                sizes,
                gaps: [3, 1],
                kind,
                zero_points: kind == 2,
                seed: kind as u64,
            }
            .check();
        }
    }
}

#[wasm_bindgen_test]
fn convolutions_are_the_same_in_every_form() {
    let mut random = Random(2);
    for _ in 0..200 {
        let case = Windowed::random(&mut random);
        case.check_conv();
        case.check_winograd();
        case.check_depthwise();
        case.check_transposed();
    }
    for _ in 0..40 {
        Windowed::random(&mut random).check_wide_depthwise();
    }
}

#[wasm_bindgen_test]
fn values_one_by_one_follow_the_definition() {
    let mut random = Random(3);
    for _ in 0..300 {
        checks::elementwise(&mut random);
        checks::block_gemm(&mut random);
        checks::layouts(&mut random);
    }
}

#[wasm_bindgen_test]
fn the_fastest_form_is_chosen() {
    // A stopped clock must not cause an endless loop. Plain loops are not worth timing.
    assert_eq!(Form::choose(|| 0.0).len(), Form::available().len() - 1);
    assert!(Form::best().is_available());
    assert_ne!(Form::best(), Form::Portable);
}
