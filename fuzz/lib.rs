//! A program of libFuzzer for a target of `octet-fuzz`.

pub use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use octet_fuzz::{FuzzTarget, damaged_model};
use octet_test_models::RandomChoice;

/// The target of this name.
pub fn target(name: &str) -> &'static FuzzTarget {
    octet_fuzz::named(name).expect("the program has the name of a target")
}

/// Changes an input in place and returns its new length. Models are damaged with knowledge of their
/// grammar in three of four cases; libFuzzer's own changes remain.
pub fn mutated(target: &FuzzTarget, data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    if target.models && seed % 4 > 0 {
        let damaged = damaged_model(&data[..size], &mut RandomChoice(seed.into()));
        if !damaged.is_empty() && damaged.len() <= most {
            data[..damaged.len()].copy_from_slice(&damaged);
            return damaged.len();
        }
    }
    fuzzer_mutate(data, size, most)
}

/// The program of a target.
#[macro_export]
macro_rules! program {
    ($name:literal) => {
        $crate::fuzz_target!(|bytes: &[u8]| ($crate::target($name).run)(bytes));
        $crate::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::mutated($crate::target($name), data, size, max_size, seed)
        });
    };
}
