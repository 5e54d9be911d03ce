//! Loops as the widest vector code that is worth it: where the compiler makes vectors of a loop by itself, but must not
//! take more of the processor for granted than all have.

/// Does the work, compiled once more for the vectors of AVX2, where the processor has these.
///
/// What works should be `#[inline(always)]` down to its loops: only what becomes part of this function is compiled for them.
#[inline(always)]
pub(crate) fn in_vectors<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn wide<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it.
            return unsafe { wide(work) };
        }
    }
    work()
}
