//! Settings of glibc's allocator, which keeps freed memory. On other systems they do nothing.

/// Returns freed memory to the system. glibc's allocator keeps much of it otherwise; afterwards the
/// process takes about as much as is live.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(keep: usize) -> i32;
        }
        // SAFETY: glibc lets any thread call it at any time.
        unsafe {
            malloc_trim(0);
        }
    }
}

/// Makes glibc map each block of at least so many bytes separately, from here on. Otherwise small
/// long-lived blocks fragment its heap where large ones come and go: a network with activations of
/// 10 MiB took four times its allocations. With 1 MiB, the cost is a quarter of the time for a model
/// of small layers, and little for a large one.
#[cfg_attr(
    not(all(target_os = "linux", target_env = "gnu")),
    allow(unused_variables)
)]
pub fn give_back_large_blocks(bytes: i32) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// `M_MMAP_THRESHOLD` of glibc's malloc.h.
        const THRESHOLD: i32 = -3;
        unsafe extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        // SAFETY: glibc lets any thread set this at any time; existing blocks stay in place.
        unsafe {
            mallopt(THRESHOLD, bytes);
        }
    }
}
