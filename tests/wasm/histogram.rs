//! Tensor statistics have identical bits in the browser, for any division of the data.

use octet::stats::TensorStatistics;
use wasm_bindgen_test::wasm_bindgen_test;

use crate::recorded;

fn seen(values: &[f32]) -> TensorStatistics {
    let mut observation = TensorStatistics::new();
    observation.observe(values);
    observation
}

#[wasm_bindgen_test]
fn any_cut_and_order_gives_the_same_bits() {
    // Magnitudes that differ widely, so that the range doubles many times.
    let values: Vec<f32> = recorded::numbers(4096, 7)
        .iter()
        .enumerate()
        .map(|(index, value)| value * 2f32.powi(index as i32 % 40 - 20))
        .collect();
    let whole = seen(&values);
    for size in [1, 7, 1000, 4095] {
        let mut forwards = TensorStatistics::new();
        values
            .chunks(size)
            .for_each(|part| forwards.merge(&seen(part)));
        let mut backwards = TensorStatistics::new();
        values
            .chunks(size)
            .rev()
            .for_each(|part| backwards.merge(&seen(part)));
        assert_eq!(forwards, whole, "parts of {size}");
        assert_eq!(backwards, whole, "parts of {size}, backwards");
    }
}

#[wasm_bindgen_test]
fn the_bits_are_those_of_the_native_build() {
    let seen = seen(&recorded::numbers(4096, 7));
    assert_eq!(
        recorded::sha256(&recorded::histogram_bytes(&seen)),
        recorded::HISTOGRAM
    );
}
