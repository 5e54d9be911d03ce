//! Instruction sets of the GEMM kernels: availability on this machine and selection of the fastest.

use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::error::Error;
use super::gemm::{WeightLayout, Weights, gemm};
use super::output::{Output, Requantize};
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
use super::probe;
use super::shape::Rows;

/// Instruction set of a kernel's inner product. All return the same integers.
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
}

/// The selected ISA; 0 if none is selected yet.
static BEST: AtomicU8 = AtomicU8::new(0);

/// Bits of the result of [`Isa::i16_slowdown`]; infinite until measured.
static I16_SLOWDOWN: AtomicU32 = AtomicU32::new(f32::INFINITY.to_bits());

impl Isa {
    /// All ISAs, from the most general to the most specialized.
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
        }
    }

    /// Returns true if this build can run it on this machine.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable => true,
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

    /// Selects an ISA, if it is available. Weights packed earlier keep theirs.
    pub fn set_best(isa: Isa) -> Result<(), Error> {
        if !isa.is_available() {
            return Err(Error::Unavailable(isa));
        }
        BEST.store(isa as u8, Ordering::Relaxed);
        Ok(())
    }

    /// Times the vector ISAs on a small GEMM and selects the fastest. Returns seconds per call,
    /// fastest first.
    ///
    /// `clock` returns seconds from any origin. The run takes a few milliseconds per ISA.
    pub fn choose(clock: impl FnMut() -> f64) -> Vec<(Isa, f64)> {
        let times = timed(clock);
        if let Some(&(isa, _)) = times.first() {
            BEST.store(isa as u8, Ordering::Relaxed);
        }
        let time = |wanted| times.iter().find(|&&(isa, _)| isa == wanted);
        if let (Some(best), Some(words)) = (times.first(), time(Isa::Simd128)) {
            let ratio = (words.1 / best.1) as f32;
            I16_SLOWDOWN.store(ratio.to_bits(), Ordering::Relaxed);
        }
        times
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

/// Semantics of a relaxed dot: the signedness of activations and the weight range in which it is
/// exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RelaxedDot {
    /// True if activations are read as i8. Then 128 is subtracted from them, and the initial
    /// accumulators compensate.
    pub(super) signed: bool,
    /// Maximum magnitude of a weight.
    pub(super) limit: i32,
}

/// Returns the seconds per call of each ISA worth timing, fastest first.
fn timed(mut clock: impl FnMut() -> f64) -> Vec<(Isa, f64)> {
    const SIZES: [usize; 3] = [64, 256, 64];
    /// Long compared to a clock tick, which is 0.1 ms on a page without cross-origin isolation.
    const SECONDS: f64 = 1.5e-3;
    let [count, depth, columns] = SIZES;
    let activations: Vec<u8> = (0..count * depth).map(|at| (at * 37 % 256) as u8).collect();
    // Within the weight limit of every ISA.
    let values: Vec<i8> = (0..depth * columns)
        .map(|at| (at * 29 % 128) as i8 - 64)
        .collect();
    let multipliers = vec![1e-3; columns];
    let mut bytes = vec![0; count * columns];
    let rows = Rows {
        values: &activations,
        count,
        stride: depth,
        zero_point: 128,
    };
    let mut run = |weights: &Weights| {
        let output = Output::Requantized {
            values: &mut bytes,
            stride: columns,
            by: Requantize {
                multipliers: &multipliers,
                zero_point: 128,
                low: 0,
                high: u8::MAX,
            },
        };
        gemm(&rows, weights, None, output)
    };
    let mut isas = Isa::available();
    // Scalar loops are never the fastest if a vector ISA is available.
    if isas.len() > 1 {
        isas.retain(|&isa| isa != Isa::Portable);
    }
    let mut times: Vec<(Isa, Weights, f64)> = isas
        .into_iter()
        .filter_map(|isa| {
            let packed = Weights::pack(
                isa,
                &values,
                WeightLayout::DepthFirst,
                [depth, columns],
                &[],
            );
            Some((isa, packed.ok()?, f64::INFINITY))
        })
        .collect();
    // ISAs take turns, since the clock speed drifts, and the minimum counts, since noise only adds.
    // The rounds in wasm give the browser time to compile with its optimizing tier.
    let rounds = if cfg!(target_family = "wasm") { 8 } else { 3 };
    for _ in 0..rounds {
        for (_, weights, least) in &mut times {
            // A warm-up run for the caches and the engine's compiler.
            let _ = run(weights);
            let (begin, mut calls) = (clock(), 0);
            let mut seconds = 0.0;
            // The call limit ends the loop if the clock stands still.
            while seconds < SECONDS && calls < 500 {
                if run(weights).is_err() {
                    break;
                }
                calls += 1;
                seconds = clock() - begin;
            }
            *least = least.min(seconds / f64::from(calls.max(1)));
        }
    }
    let mut times: Vec<(Isa, f64)> = times
        .into_iter()
        .map(|(isa, _, time)| (isa, time))
        .collect();
    // A frozen clock makes all times equal; then the most specialized ISA comes first.
    times.reverse();
    times.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    times
}

impl fmt::Display for Isa {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}
