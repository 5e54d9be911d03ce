//! What this engine's relaxed dot does where the standard leaves it open.
//!
//! The second operand is defined for 0..=127 only. Above that an engine may read its bytes as unsigned or as
//! signed, and may add pairs in i16 that saturate or wrap; but it must always do the same. Processors differ in
//! this way: `vpdpbusd` (x86 with VNNI) multiplies u8 by i8 and adds four products exactly; `pmaddubsw` (older x86)
//! saturates each pair's sum; ARM's `sdot` multiplies i8 by i8 exactly, its older way adds pairs in i16 that wrap.
//! What extreme bytes give tells which it is; where it is none of these, the form isn't used.

use super::form::Operands;

/// The four ways known: bytes read as signed or not, and whether pairs are held in i16.
///
/// With pairs in i16, the weights' magnitude has a limit. Unsigned: `2 · 255 · 64 = 32640` fits, 65 would not.
/// Signed: `2 · 128 · 127 = 32512` fits, 128 would not.
const WAYS: [(Operands, bool); 4] = [
    (
        Operands {
            signed: false,
            limit: 128,
        },
        false,
    ),
    (
        Operands {
            signed: true,
            limit: 128,
        },
        false,
    ),
    (
        Operands {
            signed: false,
            limit: 64,
        },
        true,
    ),
    (
        Operands {
            signed: true,
            limit: 127,
        },
        true,
    ),
];

/// Bytes of weights and activations at the ends of their ranges and between.
const WEIGHTS: [i8; 5] = [-128, -127, -64, 64, 127];
const ACTIVATIONS: [u8; 6] = [0, 1, 127, 128, 200, 255];

/// Four weights and four activations each.
fn samples() -> impl Iterator<Item = ([i8; 4], [u8; 4])> {
    let pick = |turn: usize, by: usize| {
        let weights = core::array::from_fn(|at| WEIGHTS[(turn + at * by) % WEIGHTS.len()]);
        let activations =
            core::array::from_fn(|at| ACTIVATIONS[(turn / 5 + at * by / 2) % ACTIVATIONS.len()]);
        (weights, activations)
    };
    (0..30).flat_map(move |turn| (0..5).map(move |by| pick(turn, by)))
}

/// The way that explains every sample. `dot` gives the sum of the four products, as the engine has it.
pub(super) fn operands(dot: impl Fn([i8; 4], [u8; 4]) -> i32) -> Option<Operands> {
    let seen: Vec<_> = samples()
        .map(|(weights, activations)| (weights, activations, dot(weights, activations)))
        .collect();
    let explains = |&(operands, in_pairs): &(Operands, bool)| {
        seen.iter().all(|&(weights, activations, sum)| {
            let products: [i32; 4] = core::array::from_fn(|at| {
                let activation = if operands.signed {
                    i32::from(activations[at] as i8)
                } else {
                    i32::from(activations[at])
                };
                // Beyond the limit a pair may be anything: such samples only tell the exact ways apart.
                activation * i32::from(weights[at])
            });
            let beyond = weights
                .iter()
                .any(|&weight| i32::from(weight).abs() > operands.limit);
            (in_pairs && beyond) || products.iter().sum::<i32>() == sum
        })
    };
    WAYS.into_iter()
        .find(explains)
        .map(|(operands, _)| operands)
}

#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
pub(super) use relaxed::{relaxed_fused, relaxed_split};

#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
mod relaxed {
    use core::arch::wasm32::{
        i16x8_relaxed_dot_i8x16_i7x16, i16x8_splat, i32x4_dot_i16x8, i32x4_extract_lane,
        i32x4_relaxed_dot_i8x16_i7x16_add, i32x4_splat, v128,
    };
    use core::hint::black_box;
    use std::sync::OnceLock;

    use super::{Operands, operands};

    /// Hidden from the compiler, which would otherwise compute what it believes the instruction gives.
    fn hidden(weights: [i8; 4], activations: [u8; 4]) -> [v128; 2] {
        let weights = i32::from_le_bytes(weights.map(|weight| weight as u8));
        [weights, i32::from_le_bytes(activations)].map(|bytes| black_box(i32x4_splat(bytes)))
    }

    /// How the fused dot reads its operands; asked of the engine once.
    pub(in super::super) fn relaxed_fused() -> Option<Operands> {
        static ANSWER: OnceLock<Option<Operands>> = OnceLock::new();
        *ANSWER.get_or_init(|| {
            operands(|weights, activations| {
                let [weights, activations] = hidden(weights, activations);
                let sums = i32x4_relaxed_dot_i8x16_i7x16_add(weights, activations, i32x4_splat(0));
                i32x4_extract_lane::<0>(sums)
            })
        })
    }

    /// How the dot to i16 reads its operands; asked of the engine once.
    pub(in super::super) fn relaxed_split() -> Option<Operands> {
        static ANSWER: OnceLock<Option<Operands>> = OnceLock::new();
        *ANSWER.get_or_init(|| {
            operands(|weights, activations| {
                let [weights, activations] = hidden(weights, activations);
                let pairs = i16x8_relaxed_dot_i8x16_i7x16(weights, activations);
                i32x4_extract_lane::<0>(i32x4_dot_i16x8(pairs, i16x8_splat(1)))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(weights: [i8; 4], activations: [u8; 4], signed: bool) -> [i32; 2] {
        core::array::from_fn(|pair| {
            (0..2)
                .map(|at| {
                    let activation = activations[pair * 2 + at];
                    let activation = if signed {
                        i32::from(activation as i8)
                    } else {
                        i32::from(activation)
                    };
                    activation * i32::from(weights[pair * 2 + at])
                })
                .sum()
        })
    }

    #[test]
    fn each_processors_way_is_recognised() {
        let exact = |signed| operands(move |w, a| pairs(w, a, signed).iter().sum());
        assert_eq!(
            exact(false),
            Some(Operands {
                signed: false,
                limit: 128
            })
        );
        assert_eq!(
            exact(true),
            Some(Operands {
                signed: true,
                limit: 128
            })
        );
        let saturating = operands(|w, a| {
            pairs(w, a, false)
                .iter()
                .map(|&pair| pair.clamp(-32768, 32767))
                .sum()
        });
        assert_eq!(
            saturating,
            Some(Operands {
                signed: false,
                limit: 64
            })
        );
        for signed in [false, true] {
            let wrapping = operands(move |w, a| {
                pairs(w, a, signed)
                    .iter()
                    .map(|&pair| i32::from(pair as i16))
                    .sum()
            });
            let limit = if signed { 127 } else { 64 };
            assert_eq!(wrapping, Some(Operands { signed, limit }));
        }
    }

    #[test]
    fn a_way_unknown_is_not_used() {
        assert_eq!(operands(|_, _| 0), None);
        assert_eq!(
            operands(|w, a| pairs(w, a, false).iter().sum::<i32>() + 1),
            None
        );
    }
}
