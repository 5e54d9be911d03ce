//! Run-time detection of the engine's relaxed dot semantics.
//!
//! The standard defines the second operand only for 0..=127. Above that, an engine may read it as
//! unsigned or signed, and may add pairs in i16 with saturation or wrapping. It must always do so
//! consistently.
//!
//! Processors differ. `vpdpbusd` (x86 with VNNI) multiplies u8 by i8 and adds four products
//! exactly. `pmaddubsw` (older x86) saturates each pair's sum. ARM's `sdot` multiplies i8 by i8
//! exactly; older ARM code adds pairs in i16 that wrap. Extreme bytes distinguish these. If none
//! matches, the ISA is not used.

use super::relaxed_dot::RelaxedDot;

/// Known semantics: signedness of activations, weight limit, and true if pairs are summed in i16.
///
/// Sums of pairs in i16 limit the weights. Unsigned: `2 · 255 · 64 = 32640` fits, 65 does not.
/// Signed: `2 · 128 · 127 = 32512` fits, 128 does not.
const KNOWN_DOTS: [(RelaxedDot, bool); 4] = [
    (
        RelaxedDot {
            signed: false,
            limit: 128,
        },
        false,
    ),
    (
        RelaxedDot {
            signed: true,
            limit: 128,
        },
        false,
    ),
    (
        RelaxedDot {
            signed: false,
            limit: 64,
        },
        true,
    ),
    (
        RelaxedDot {
            signed: true,
            limit: 127,
        },
        true,
    ),
];

/// Weights and activations at the ends of their ranges and between.
const WEIGHTS: [i8; 5] = [-128, -127, -64, 64, 127];
const ACTIVATIONS: [u8; 6] = [0, 1, 127, 128, 200, 255];

/// Groups of four weights and four activations.
fn samples() -> impl Iterator<Item = ([i8; 4], [u8; 4])> {
    let pick = |turn: usize, by: usize| {
        let weights = core::array::from_fn(|at| WEIGHTS[(turn + at * by) % WEIGHTS.len()]);
        let activations =
            core::array::from_fn(|at| ACTIVATIONS[(turn / 5 + at * by / 2) % ACTIVATIONS.len()]);
        (weights, activations)
    };
    (0..30).flat_map(move |turn| (0..5).map(move |by| pick(turn, by)))
}

/// Returns the semantics that explain every sample. `dot` returns the engine's sum of four
/// products.
pub(super) fn detect(dot: impl Fn([i8; 4], [u8; 4]) -> i32) -> Option<RelaxedDot> {
    let results: Vec<_> = samples()
        .map(|(weights, activations)| (weights, activations, dot(weights, activations)))
        .collect();
    let explains = |&(semantics, in_pairs): &(RelaxedDot, bool)| {
        results.iter().all(|&(weights, activations, sum)| {
            let products: [i32; 4] = core::array::from_fn(|at| {
                let activation = if semantics.signed {
                    i32::from(activations[at] as i8)
                } else {
                    i32::from(activations[at])
                };
                // Beyond the limit a pair may be anything. Such samples only distinguish the exact
                // semantics.
                activation * i32::from(weights[at])
            });
            let beyond = weights
                .iter()
                .any(|&weight| i32::from(weight).abs() > semantics.limit);
            (in_pairs && beyond) || products.iter().sum::<i32>() == sum
        })
    };
    KNOWN_DOTS
        .into_iter()
        .find(explains)
        .map(|(semantics, _)| semantics)
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

    use super::{RelaxedDot, detect};

    /// Hides the operands from the compiler, which would otherwise fold the instruction with
    /// assumed semantics.
    fn opaque(weights: [i8; 4], activations: [u8; 4]) -> [v128; 2] {
        let weights = i32::from_le_bytes(weights.map(|weight| weight as u8));
        [weights, i32::from_le_bytes(activations)].map(|bytes| black_box(i32x4_splat(bytes)))
    }

    /// Semantics of the fused dot, detected once.
    pub(in super::super) fn relaxed_fused() -> Option<RelaxedDot> {
        static ANSWER: OnceLock<Option<RelaxedDot>> = OnceLock::new();
        *ANSWER.get_or_init(|| {
            detect(|weights, activations| {
                let [weights, activations] = opaque(weights, activations);
                let sums = i32x4_relaxed_dot_i8x16_i7x16_add(weights, activations, i32x4_splat(0));
                i32x4_extract_lane::<0>(sums)
            })
        })
    }

    /// Semantics of the dot to i16, detected once.
    pub(in super::super) fn relaxed_split() -> Option<RelaxedDot> {
        static ANSWER: OnceLock<Option<RelaxedDot>> = OnceLock::new();
        *ANSWER.get_or_init(|| {
            detect(|weights, activations| {
                let [weights, activations] = opaque(weights, activations);
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
    fn semantics_of_each_processor_are_recognised() {
        let exact = |signed| detect(move |w, a| pairs(w, a, signed).iter().sum());
        assert_eq!(
            exact(false),
            Some(RelaxedDot {
                signed: false,
                limit: 128
            })
        );
        assert_eq!(
            exact(true),
            Some(RelaxedDot {
                signed: true,
                limit: 128
            })
        );
        let saturating = detect(|w, a| {
            pairs(w, a, false)
                .iter()
                .map(|&pair| pair.clamp(-32768, 32767))
                .sum()
        });
        assert_eq!(
            saturating,
            Some(RelaxedDot {
                signed: false,
                limit: 64
            })
        );
        for signed in [false, true] {
            let wrapping = detect(move |w, a| {
                pairs(w, a, signed)
                    .iter()
                    .map(|&pair| i32::from(pair as i16))
                    .sum()
            });
            let limit = if signed { 127 } else { 64 };
            assert_eq!(wrapping, Some(RelaxedDot { signed, limit }));
        }
    }

    #[test]
    fn unknown_semantics_are_not_used() {
        assert_eq!(detect(|_, _| 0), None);
        assert_eq!(
            detect(|w, a| pairs(w, a, false).iter().sum::<i32>() + 1),
            None
        );
    }
}
