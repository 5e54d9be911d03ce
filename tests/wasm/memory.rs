//! Memory is counted in the browser: what is live, the peak, and the wasm memory behind it.

use octet::profile::memory;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
fn what_is_allocated_is_live_and_what_is_freed_is_only_in_the_peak() {
    const SIZE: usize = 8 << 20;
    memory::restart_peak();
    let before = memory::live();
    let block = std::hint::black_box(vec![1u8; SIZE]);
    assert!(memory::live() >= before + SIZE);
    drop(block);
    assert!(memory::live() < before + SIZE);
    assert!(memory::peak() >= before + SIZE);
    let wasm = memory::usage().process.expect("wasm knows its own size");
    assert!(wasm >= memory::peak() as u64 && wasm % 65_536 == 0);
}
