//! Run-time dispatch of auto-vectorized loops. The build targets baseline x86-64, and processors
//! with AVX2 run a second copy.

/// Runs `work`, in a copy compiled for AVX2 if the processor supports it.
///
/// `work` must be `#[inline(always)]` down to its loops. Only code inlined into this function is
/// compiled for AVX2.
#[inline(always)]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
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
