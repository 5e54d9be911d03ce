//! Counts of live and peak memory, in bytes.

#[cfg(not(target_family = "wasm"))]
use std::alloc::System;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[cfg(target_family = "wasm")]
static BENEATH: crate::wasm_allocator::WasmAllocator = crate::wasm_allocator::WasmAllocator::new();
#[cfg(not(target_family = "wasm"))]
static BENEATH: System = System;

/// Counts allocations and passes them on to the allocator beneath.
#[derive(Clone, Copy, Debug)]
pub struct CountingAllocator;

fn grown(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    // Usually below the peak: a load is cheaper than a contended write.
    if live > PEAK.load(Relaxed) {
        PEAK.fetch_max(live, Relaxed);
    }
}

fn shrunk(bytes: usize) {
    LIVE.fetch_sub(bytes, Relaxed);
}

// SAFETY: each call goes to the allocator beneath with its arguments unchanged, and so does the
// result. Counting touches two atomics and never allocates. The functions are not inlined, since a
// thousand copies would make the wasm 30 kB larger.
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of every allocator.
        let pointer = unsafe { BENEATH.alloc(layout) };
        if !pointer.is_null() {
            grown(layout.size());
        }
        pointer
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of every allocator.
        let pointer = unsafe { BENEATH.alloc_zeroed(layout) };
        if !pointer.is_null() {
            grown(layout.size());
        }
        pointer
    }

    #[inline(never)]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: all our pointers came from that allocator with this layout.
        unsafe { BENEATH.dealloc(pointer, layout) };
        shrunk(layout.size());
    }

    #[inline(never)]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: all our pointers came from that allocator with this layout.
        let moved = unsafe { BENEATH.realloc(pointer, layout, size) };
        if !moved.is_null() {
            if size >= layout.size() {
                grown(size - layout.size());
            } else {
                shrunk(layout.size() - size);
            }
        }
        moved
    }
}

/// Bytes that are allocated now.
pub fn live() -> usize {
    LIVE.load(Relaxed)
}

/// Peak of live bytes since the start or the last [`restart_peak`].
pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

/// Restarts the peak at the current live bytes.
pub fn restart_peak() {
    PEAK.store(live(), Relaxed);
}

/// Raises the peak to at least this many bytes. A caller that restarted the peak thereby restores
/// the outer one.
pub fn raise_peak(bytes: usize) {
    PEAK.fetch_max(bytes, Relaxed);
}

/// Calls `work` and returns the peak of live memory during the call.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let outer = peak();
    restart_peak();
    let done = work();
    let inner = peak();
    raise_peak(outer);
    (done, inner as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    #[test]
    fn live_memory_counts_allocations_and_frees_keep_the_peak() {
        // Other tests run at the same time, so this block is larger than all of theirs.
        const BLOCK: usize = 1 << 28;
        let before = live();
        let mut block = Vec::<u8>::with_capacity(BLOCK);
        assert!(live() + (BLOCK >> 1) > before + BLOCK);
        block.push(1);
        block.shrink_to(1);
        drop(block);
        assert!(live() < before + (BLOCK >> 1));
        assert!(peak() + (BLOCK >> 1) > before + BLOCK);
    }
}
