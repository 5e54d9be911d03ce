//! The tile kernel in AVX2: `vpmaddwd` multiplies two i16 values of eight columns at once.

use core::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi32,
    _mm256_storeu_si256,
};

use super::super::output::Output;
use super::{Block, NR, Weights, portable};

/// Multiplies a block. Weights are packed for this ISA only if the processor supports it.
pub(super) fn multiply(block: &Block, weights: &Weights, output: Output) {
    assert!(
        std::is_x86_feature_detected!("avx2"),
        "checked when packing"
    );
    // SAFETY: the processor supports AVX2.
    unsafe { multiply_in_avx2(block, weights, output) }
}

#[target_feature(enable = "avx2")]
fn multiply_in_avx2(block: &Block, weights: &Weights, output: Output) {
    portable::multiply_with(block, weights, output, |rows, packed, sums| {
        tile(rows, packed, sums)
    });
}

// No closures: they are separate functions, which are not compiled for AVX2.
#[target_feature(enable = "avx2")]
fn tile(rows: [&[u8]; 4], packed: &[u8], sums: &mut [[i32; NR]; 4]) {
    let [a, b, c, d] = rows;
    let (a, b) = (a.as_chunks::<4>().0, b.as_chunks::<4>().0);
    let (c, d) = (c.as_chunks::<4>().0, d.as_chunks::<4>().0);
    let mut lanes = [
        load(&sums[0]),
        load(&sums[1]),
        load(&sums[2]),
        load(&sums[3]),
    ];
    let steps = packed.as_chunks::<{ NR * 4 }>().0;
    for ((((weights, a), b), c), d) in steps.iter().zip(a).zip(b).zip(c).zip(d) {
        // SAFETY: 32 bytes.
        let weights = unsafe { _mm256_loadu_si256(weights.as_ptr().cast::<__m256i>()) };
        lanes = [
            add_product(lanes[0], a, weights),
            add_product(lanes[1], b, weights),
            add_product(lanes[2], c, weights),
            add_product(lanes[3], d, weights),
        ];
    }
    for (sums, lanes) in sums.iter_mut().zip(lanes) {
        // SAFETY: eight i32.
        unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast::<__m256i>(), lanes) };
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(sums: &[i32; NR]) -> __m256i {
    // SAFETY: eight i32.
    unsafe { _mm256_loadu_si256(sums.as_ptr().cast::<__m256i>()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_product(sums: __m256i, row: &[u8; 4], weights: __m256i) -> __m256i {
    let pair = _mm256_set1_epi32(i32::from_le_bytes(*row));
    _mm256_add_epi32(sums, _mm256_madd_epi16(pair, weights))
}
