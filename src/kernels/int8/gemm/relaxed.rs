//! The tile's step in WebAssembly's relaxed SIMD, sixteen products an instruction.

#[cfg(target_feature = "relaxed-simd")]
pub(super) use available::multiply;
#[cfg(target_feature = "relaxed-simd")]
pub(in crate::int8) use available::{Fused, Split};

#[cfg(target_feature = "relaxed-simd")]
mod available {
    use core::arch::wasm32::{
        i8x16_splat, i16x8_relaxed_dot_i8x16_i7x16, i16x8_splat, i32x4_add, i32x4_dot_i16x8,
        i32x4_relaxed_dot_i8x16_i7x16_add, v128, v128_xor,
    };

    use super::super::super::form::Form;
    use super::super::super::output::Output;
    use super::super::simd128::{Dot, multiply_with};
    use super::super::{Block, Weights};

    /// Pairs to i16, and these pairs to i32.
    #[derive(Clone, Copy)]
    pub(in crate::int8) struct Split<const SIGNED: bool>;

    impl<const SIGNED: bool> Dot for Split<SIGNED> {
        const STEPS: usize = 2;

        #[inline(always)]
        fn dot(self, sums: v128, row: v128, weights: v128) -> v128 {
            let pairs = i16x8_relaxed_dot_i8x16_i7x16(weights, lowered::<SIGNED>(row));
            i32x4_add(sums, i32x4_dot_i16x8(pairs, i16x8_splat(1)))
        }
    }

    /// Four to i32 at once.
    #[derive(Clone, Copy)]
    pub(in crate::int8) struct Fused<const SIGNED: bool>;

    impl<const SIGNED: bool> Dot for Fused<SIGNED> {
        #[inline(always)]
        fn dot(self, sums: v128, row: v128, weights: v128) -> v128 {
            i32x4_relaxed_dot_i8x16_i7x16_add(weights, lowered::<SIGNED>(row), sums)
        }
    }

    /// Activations less 128 as i8, where the engine reads them so.
    #[inline(always)]
    fn lowered<const SIGNED: bool>(row: v128) -> v128 {
        if SIGNED {
            v128_xor(row, i8x16_splat(i8::MIN))
        } else {
            row
        }
    }

    /// Multiplies a block.
    pub(in super::super) fn multiply(block: &Block, weights: &Weights, output: Output) {
        let signed = weights
            .form
            .operands()
            .is_some_and(|operands| operands.signed);
        match (weights.form, signed) {
            (Form::RelaxedSplit, false) => {
                multiply_with(Split::<false>, block, weights, output);
            }
            (Form::RelaxedSplit, true) => multiply_with(Split::<true>, block, weights, output),
            (_, false) => multiply_with(Fused::<false>, block, weights, output),
            (_, true) => multiply_with(Fused::<true>, block, weights, output),
        }
    }
}
