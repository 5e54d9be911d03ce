//! Run-time dispatch of auto-vectorized loops. The build targets baseline x86-64, and processors
//! with AVX2 run a second copy.

/// The value of an expression, computed in a copy compiled for AVX2 if the processor supports it.
///
/// All that the expression calls must be `#[inline(always)]`, down to its loops. Only code inlined
/// into [`in_copies`] is compiled for AVX2.
macro_rules! vectorized {
    ($work:expr) => {
        $crate::dispatch::in_copies(
            #[inline(always)]
            || $work,
        )
    };
}

pub(crate) use vectorized;

/// Runs `work`; [`vectorized`] makes it an `#[inline(always)]` closure, without which the compiler
/// may leave it outside of both copies.
#[inline(always)]
pub(crate) fn in_copies<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn wide<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports AVX2.
            return unsafe { wide(work) };
        }
    }
    work()
}
