//! Tile steps in WebAssembly's relaxed SIMD, sixteen products per instruction.

#[cfg(target_feature = "relaxed-simd")]
pub(super) use available::multiply;
#[cfg(target_feature = "relaxed-simd")]
pub(in crate::int8) use available::{RelaxedFused, RelaxedSplit};

#[cfg(target_feature = "relaxed-simd")]
mod available {
    use core::arch::wasm32::{
        i8x16_splat, i16x8_relaxed_dot_i8x16_i7x16, i16x8_splat, i32x4_add, i32x4_dot_i16x8,
        i32x4_relaxed_dot_i8x16_i7x16_add, v128, v128_xor,
    };

    use super::super::super::isa::Isa;
    use super::super::super::output::Output;
    use super::super::dot::Dot;
    use super::super::simd128::multiply_with;
    use super::super::{Block, Weights};

    /// Products summed pairwise to i16, then to i32.
    #[derive(Clone, Copy)]
    pub(in crate::int8) struct RelaxedSplit<const SIGNED: bool>;

    impl<const SIGNED: bool> Dot for RelaxedSplit<SIGNED> {
        const UNROLL: usize = 2;

        #[inline(always)]
        fn dot(self, sums: v128, row: v128, weights: v128) -> v128 {
            let pairs = i16x8_relaxed_dot_i8x16_i7x16(weights, offset::<SIGNED>(row));
            i32x4_add(sums, i32x4_dot_i16x8(pairs, i16x8_splat(1)))
        }
    }

    /// Four products summed to i32 in one instruction.
    #[derive(Clone, Copy)]
    pub(in crate::int8) struct RelaxedFused<const SIGNED: bool>;

    impl<const SIGNED: bool> Dot for RelaxedFused<SIGNED> {
        #[inline(always)]
        fn dot(self, sums: v128, row: v128, weights: v128) -> v128 {
            i32x4_relaxed_dot_i8x16_i7x16_add(weights, offset::<SIGNED>(row), sums)
        }
    }

    /// Subtracts 128 from the activations, if the engine reads them as i8.
    #[inline(always)]
    fn offset<const SIGNED: bool>(row: v128) -> v128 {
        if SIGNED {
            v128_xor(row, i8x16_splat(i8::MIN))
        } else {
            row
        }
    }

    /// Multiplies a block.
    pub(in super::super) fn multiply(block: &Block, weights: &Weights, output: Output) {
        let signed = weights.isa.relaxed_dot().is_some_and(|dot| dot.signed);
        match (weights.isa, signed) {
            (Isa::RelaxedSplit, false) => {
                multiply_with(RelaxedSplit::<false>, block, weights, output);
            }
            (Isa::RelaxedSplit, true) => {
                multiply_with(RelaxedSplit::<true>, block, weights, output)
            }
            (_, false) => multiply_with(RelaxedFused::<false>, block, weights, output),
            (_, true) => multiply_with(RelaxedFused::<true>, block, weights, output),
        }
    }
}
