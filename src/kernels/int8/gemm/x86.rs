//! The tile in AVX2: `vpmaddwd` multiplies two i16 of eight columns at once.

use core::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi32,
    _mm256_storeu_si256,
};

use super::super::output::Output;
use super::{Block, WIDE, Weights, portable};

/// Multiplies a block. Weights are packed for this form only where the processor has it.
pub(super) fn multiply(block: &Block, weights: &Weights, output: Output) {
    assert!(
        std::is_x86_feature_detected!("avx2"),
        "checked when packing"
    );
    // SAFETY: the processor has AVX2.
    unsafe { multiply_in_avx2(block, weights, output) }
}

#[target_feature(enable = "avx2")]
fn multiply_in_avx2(block: &Block, weights: &Weights, output: Output) {
    portable::multiply_with(block, weights, output, |rows, packed, sums| {
        tile(rows, packed, sums)
    });
}

#[target_feature(enable = "avx2")]
fn tile(rows: [&[u8]; 4], packed: &[u8], sums: &mut [[i32; WIDE]; 4]) {
    // SAFETY: each of the four holds eight i32.
    let mut lanes = sums
        .each_ref()
        .map(|sums| unsafe { _mm256_loadu_si256(sums.as_ptr().cast::<__m256i>()) });
    let rows = rows.map(|row| row.as_chunks::<4>().0);
    let steps = packed.as_chunks::<{ WIDE * 4 }>().0;
    for (step, weights) in steps.iter().enumerate() {
        // SAFETY: 32 bytes.
        let weights = unsafe { _mm256_loadu_si256(weights.as_ptr().cast::<__m256i>()) };
        for (lanes, row) in lanes.iter_mut().zip(rows) {
            let pair = _mm256_set1_epi32(i32::from_le_bytes(row[step]));
            *lanes = _mm256_add_epi32(*lanes, _mm256_madd_epi16(pair, weights));
        }
    }
    for (sums, lanes) in sums.iter_mut().zip(lanes) {
        // SAFETY: eight i32.
        unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast::<__m256i>(), lanes) };
    }
}
