//! Inner products of the vector kernels.

use core::arch::wasm32::{i32x4_add, i32x4_dot_i16x8, v128};

/// Rows whose sums are buffered before the epilogue.
pub(super) const EPILOGUE_ROWS: usize = 64;

/// Inner product of a row's broadcast four bytes with four columns' weights.
pub(in crate::int8) trait Dot: Copy {
    /// Unroll factor of the depth loop. Unrolling reduces loop overhead, but makes the compiler
    /// load ahead. Only products of several instructions leave enough registers for that. Unrolled
    /// by two, simd128 and the fused dot measured half their speed.
    const UNROLL: usize = 1;

    fn dot(self, sums: v128, row: v128, weights: v128) -> v128;
}

/// Two i16 products per lane.
#[derive(Clone, Copy)]
pub(in crate::int8) struct I16Pairs;

impl Dot for I16Pairs {
    #[inline(always)]
    fn dot(self, sums: v128, row: v128, weights: v128) -> v128 {
        i32x4_add(sums, i32x4_dot_i16x8(row, weights))
    }
}
