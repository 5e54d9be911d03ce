//! Memory accounting in the browser: live memory, the peak, and wasm memory.

use octet::allocator;
use octet::profile::memory;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
fn what_is_allocated_is_live_and_what_is_freed_is_only_in_the_peak() {
    const SIZE: usize = 8 << 20;
    allocator::restart_peak();
    let before = allocator::live();
    let block = std::hint::black_box(vec![1u8; SIZE]);
    assert!(allocator::live() >= before + SIZE);
    drop(block);
    assert!(allocator::live() < before + SIZE);
    assert!(allocator::peak() >= before + SIZE);
    let wasm = memory::usage().process.expect("wasm knows its own size");
    assert!(wasm >= allocator::peak() as u64 && wasm % 65_536 == 0);
}

#[wasm_bindgen_test]
fn a_block_that_grows_and_shrinks_keeps_what_is_in_it() {
    let mut values: Vec<u32> = Vec::new();
    let mut others: Vec<Vec<u32>> = Vec::new();
    for value in 0..1_000_000 {
        values.push(value);
        // The allocation behind it forces it to move.
        if value % 100_000 == 0 {
            others.push(vec![value; 20_000]);
        }
    }
    for left in [700_000, 9_000, 8_000, 10] {
        values.truncate(left);
        values.shrink_to_fit();
        assert!((0..).zip(&values).all(|(wanted, &found)| found == wanted));
    }
    assert!(
        others
            .iter()
            .all(|other| other.iter().all(|&value| value == other[0]))
    );
}

#[wasm_bindgen_test]
fn what_was_given_back_is_zero_again_and_the_memory_does_not_grow() {
    const SIZES: [usize; 6] = [40 << 10, 3 << 20, 100 << 10, 5 << 20, 1 << 20, 700 << 10];
    let round = || {
        let mut blocks: Vec<Vec<u8>> = SIZES
            .iter()
            .map(|&size| std::hint::black_box(vec![0; size]))
            .collect();
        assert!(
            blocks
                .iter()
                .all(|block| block.iter().all(|&byte| byte == 0))
        );
        blocks.iter_mut().for_each(|block| block.fill(7));
        memory::usage().process
    };
    let first = round();
    assert!((0..20).all(|_| round() == first));
}
