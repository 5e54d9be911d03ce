//! The forms in which the hot kernels exist, which of them this machine can run, and which it runs fastest.

use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::error::Error;
use super::gemm::{Layout, Weights, gemm};
use super::output::{Output, Requantize};
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
use super::probe;
use super::shape::Rows;

/// A way to compute a sum of products of bytes. All forms give the same integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Form {
    /// Plain loops, which every machine can run.
    Portable = 1,
    /// WebAssembly's `i32x4.dot_i16x8_s`.
    Simd128 = 2,
    /// WebAssembly's relaxed dot to i16, then `i32x4.dot_i16x8_s` with ones.
    RelaxedSplit = 3,
    /// WebAssembly's relaxed dot that adds to i32: one instruction where the processor has one.
    RelaxedFused = 4,
    /// AVX2, natively on x86-64.
    Avx2 = 5,
}

/// 0 stands for "not chosen".
static BEST: AtomicU8 = AtomicU8::new(0);

/// The bits of what [`Form::words_over_bytes`] gives; infinite as long as nothing was measured.
static WORDS_OVER_BYTES: AtomicU32 = AtomicU32::new(f32::INFINITY.to_bits());

impl Form {
    /// Every form there is.
    pub const ALL: [Form; 5] = [
        Form::Portable,
        Form::Simd128,
        Form::RelaxedSplit,
        Form::RelaxedFused,
        Form::Avx2,
    ];

    /// The form's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Form::Portable => "portable",
            Form::Simd128 => "simd128",
            Form::RelaxedSplit => "relaxed-split",
            Form::RelaxedFused => "relaxed-fused",
            Form::Avx2 => "avx2",
        }
    }

    /// Whether this build on this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Form::Portable => true,
            Form::Simd128 => cfg!(all(target_arch = "wasm32", target_feature = "simd128")),
            Form::RelaxedSplit | Form::RelaxedFused => self.operands().is_some(),
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => std::is_x86_feature_detected!("avx2"),
            #[cfg(not(target_arch = "x86_64"))]
            Form::Avx2 => false,
        }
    }

    /// The forms this build on this machine can run.
    pub fn available() -> Vec<Form> {
        let all = Form::ALL.into_iter();
        all.filter(|form| form.is_available()).collect()
    }

    /// The form to pack weights for: the one chosen or set, or before that the likeliest.
    pub fn best() -> Form {
        let chosen = BEST.load(Ordering::Relaxed);
        let found = Form::ALL.into_iter().find(|&form| form as u8 == chosen);
        found.unwrap_or_else(|| {
            // The list goes from plain to special.
            let last = Form::ALL.into_iter().rev().find(|form| form.is_available());
            last.unwrap_or(Form::Portable)
        })
    }

    /// Makes a form the best one, if it can run. Weights packed before keep theirs.
    pub fn set_best(form: Form) -> Result<(), Error> {
        if !form.is_available() {
            return Err(Error::Unavailable(form));
        }
        BEST.store(form as u8, Ordering::Relaxed);
        Ok(())
    }

    /// Times the vector forms that run here on a small gemm, makes the fastest the best one, and gives the seconds that a
    /// call took, least first. `clock` gives seconds from any beginning; a few milliseconds a form are spent.
    pub fn choose(clock: impl FnMut() -> f64) -> Vec<(Form, f64)> {
        let times = timed(clock);
        if let Some(&(form, _)) = times.first() {
            BEST.store(form as u8, Ordering::Relaxed);
        }
        let time = |wanted| times.iter().find(|&&(form, _)| form == wanted);
        if let (Some(best), Some(words)) = (times.first(), time(Form::Simd128)) {
            let ratio = (words.1 / best.1) as f32;
            WORDS_OVER_BYTES.store(ratio.to_bits(), Ordering::Relaxed);
        }
        times
    }

    /// How many times as long as products of bytes in this form products of i16 take here, if their weights are as far from
    /// zero as i8 can be: what [`Form::choose`] measured.
    pub(super) fn words_over_bytes(self) -> f32 {
        match self.operands() {
            Some(operands) if operands.limit >= 128 => {
                f32::from_bits(WORDS_OVER_BYTES.load(Ordering::Relaxed))
            }
            // These multiply i16 then, if they don't always.
            _ => 1.0,
        }
    }

    /// How this machine's relaxed dot reads its operands; nothing for forms that multiply i16, and for those that
    /// can't run here.
    pub(super) fn operands(self) -> Option<Operands> {
        match self {
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Form::RelaxedSplit => probe::relaxed_split(),
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Form::RelaxedFused => probe::relaxed_fused(),
            _ => None,
        }
    }

    /// The form for weights that this one's operands can't take.
    pub(super) fn with_wide_weights(self) -> Form {
        match self {
            Form::RelaxedSplit | Form::RelaxedFused => Form::Simd128,
            form => form,
        }
    }
}

/// How a relaxed dot reads activations, and how large weights may be for it to be exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operands {
    /// Activations are read as i8: 128 is taken off them, and put back in the correction.
    pub(super) signed: bool,
    /// The greatest magnitude of a weight.
    pub(super) limit: i32,
}

/// Seconds a call of each form worth timing takes, least first.
fn timed(mut clock: impl FnMut() -> f64) -> Vec<(Form, f64)> {
    const SIZES: [usize; 3] = [64, 256, 64];
    /// Long against a clock's ticks, which are 0.1 ms on a page that is not isolated.
    const SECONDS: f64 = 1.5e-3;
    let [count, depth, columns] = SIZES;
    let activations: Vec<u8> = (0..count * depth).map(|at| (at * 37 % 256) as u8).collect();
    // Within the limits of every form.
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
    let mut forms = Form::available();
    // Plain loops are never the fastest where there is a vector form.
    if forms.len() > 1 {
        forms.retain(|&form| form != Form::Portable);
    }
    let mut times: Vec<(Form, Weights, f64)> = forms
        .into_iter()
        .filter_map(|form| {
            let packed = Weights::pack(form, &values, Layout::DepthFirst, [depth, columns], &[]);
            Some((form, packed.ok()?, f64::INFINITY))
        })
        .collect();
    // In turns, since a machine's speed drifts, and the least of each: what disturbs only adds. Often enough for a
    // browser to compile meanwhile what it first ran in a simple form.
    let rounds = if cfg!(target_family = "wasm") { 8 } else { 3 };
    for _ in 0..rounds {
        for (_, weights, least) in &mut times {
            // A first run for the caches and for an engine that compiles what is hot.
            let _ = run(weights);
            let (begin, mut calls) = (clock(), 0);
            let mut seconds = 0.0;
            // The end of the counting is for a clock that stands still.
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
    let mut times: Vec<(Form, f64)> = times
        .into_iter()
        .map(|(form, _, time)| (form, time))
        .collect();
    // Where a clock stands still all are equal, and the most special comes first.
    times.reverse();
    times.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    times
}

impl fmt::Display for Form {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}
