//! Instruction sets of the GEMM kernels, and their availability on this machine.

use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
use super::probe;
use super::relaxed_dot::RelaxedDot;

/// Instruction set of a kernel's inner product. Those in [`Isa::ALL`] return the same integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Isa {
    /// Scalar loops, available on every machine.
    Portable = 1,
    /// WebAssembly's `i32x4.dot_i16x8_s`.
    Simd128 = 2,
    /// WebAssembly's relaxed dot to i16, then `i32x4.dot_i16x8_s` with ones.
    RelaxedSplit = 3,
    /// WebAssembly's relaxed dot with i32 accumulation, a single instruction on processors that
    /// have one.
    RelaxedFused = 4,
    /// AVX2, native x86-64 only.
    Avx2 = 5,
    /// ONNX Runtime's kernels on x86 without VNNI, emulated in scalar loops: the sum of two adjacent
    /// products is cut off at 16 bits. For comparisons only.
    CutPairs = 6,
}

/// The selected ISA; 0 if none is selected yet.
static BEST: AtomicU8 = AtomicU8::new(0);

/// Bits of the result of [`Isa::i16_slowdown`]; infinite until measured.
static I16_SLOWDOWN: AtomicU32 = AtomicU32::new(f32::INFINITY.to_bits());

impl Isa {
    /// All ISAs with exact sums, from the most general to the most specialized.
    pub const ALL: [Isa; 5] = [
        Isa::Portable,
        Isa::Simd128,
        Isa::RelaxedSplit,
        Isa::RelaxedFused,
        Isa::Avx2,
    ];

    /// Name of the ISA in reports.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Simd128 => "simd128",
            Isa::RelaxedSplit => "relaxed-split",
            Isa::RelaxedFused => "relaxed-fused",
            Isa::Avx2 => "avx2",
            Isa::CutPairs => "cut-pairs",
        }
    }

    /// Returns true if this build can run it on this machine.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable | Isa::CutPairs => true,
            Isa::Simd128 => cfg!(all(target_arch = "wasm32", target_feature = "simd128")),
            Isa::RelaxedSplit | Isa::RelaxedFused => self.relaxed_dot().is_some(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => std::is_x86_feature_detected!("avx2"),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 => false,
        }
    }

    /// Lists the ISAs that this build can run on this machine.
    pub fn available() -> Vec<Isa> {
        let all = Isa::ALL.into_iter();
        all.filter(|isa| isa.is_available()).collect()
    }

    /// Returns the ISA to pack weights for: the selected one, otherwise the most specialized one
    /// available.
    pub fn best() -> Isa {
        let chosen = BEST.load(Ordering::Relaxed);
        let selected = Isa::ALL.into_iter().find(|&isa| isa as u8 == chosen);
        selected.unwrap_or_else(|| {
            // The list is ordered from general to specialized.
            let last = Isa::ALL.into_iter().rev().find(|isa| isa.is_available());
            last.unwrap_or(Isa::Portable)
        })
    }

    /// Selects this ISA, which is available.
    pub(super) fn select(self) {
        BEST.store(self as u8, Ordering::Relaxed);
    }

    /// Stores the result of [`Isa::i16_slowdown`].
    pub(super) fn set_i16_slowdown(ratio: f32) {
        I16_SLOWDOWN.store(ratio.to_bits(), Ordering::Relaxed);
    }

    /// Returns the measured time of i16 products relative to this ISA's byte products, for weights
    /// over the whole i8 range. [`Isa::choose`] measures it.
    pub(super) fn i16_slowdown(self) -> f32 {
        match self.relaxed_dot() {
            Some(dot) if dot.limit >= 128 => f32::from_bits(I16_SLOWDOWN.load(Ordering::Relaxed)),
            // These ISAs multiply i16, always or for such weights.
            _ => 1.0,
        }
    }

    /// Returns the semantics of this machine's relaxed dot. `None` for ISAs that multiply i16 or
    /// are not available.
    pub(super) fn relaxed_dot(self) -> Option<RelaxedDot> {
        match self {
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Isa::RelaxedSplit => probe::relaxed_split(),
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Isa::RelaxedFused => probe::relaxed_fused(),
            _ => None,
        }
    }

    /// Returns the ISA for weights beyond the limit of this ISA's dot.
    pub(super) fn wide_weight_fallback(self) -> Isa {
        match self {
            Isa::RelaxedSplit | Isa::RelaxedFused => Isa::Simd128,
            isa => isa,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}
