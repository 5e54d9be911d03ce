//! A small model with arithmetic that is exact in any order, so that every build and thread count
//! must give the same bytes. `tests/recorded.rs` checks the native build against the same
//! constants; `octet doctor` checks an installed build.

use octet::session::self_check;
use octet::stats::TensorStatistics;

pub use octet::session::self_check::{QUANTIZED, numbers};

/// sha256 of the model's file.
pub const FILE: &str = "231938ce3f6cc1d69436dc3f1f16ae6a6bf2a19ff810511e33f429ba8a5092d5";
/// sha256 of the histogram of `numbers(4096, 7)`.
pub const HISTOGRAM: &str = "7f0d9382afa3eed9284b6fa0e06c8d2fe3b3cb3ab1f20f38ba6b63911f052a31";

/// Checks that the quantized model is the recorded one for any batching of the samples, and that it
/// runs as recorded.
pub fn check_quantized() {
    for portions in [&[5][..], &[1, 1, 1, 1, 1], &[2, 3]] {
        let bytes = self_check::quantized(portions).expect("our own model can be quantized");
        assert_eq!(sha256(&bytes), QUANTIZED, "{portions:?}");
    }
    let check = self_check::self_check().expect("our own model runs");
    assert!(check.passed, "{check:?}");
}

/// image → conv → relu → conv, added to the relu → scores.
pub fn model() -> Vec<u8> {
    self_check::model().expect("a small model can be written")
}

/// A histogram's bins as (from, to, count), eight bytes each.
pub fn histogram_bytes(seen: &TensorStatistics) -> Vec<u8> {
    seen.histogram()
        .bins()
        .flat_map(|(from, to, count)| [from.to_bits(), to.to_bits(), count])
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// Lower-case hexadecimal sha256.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
