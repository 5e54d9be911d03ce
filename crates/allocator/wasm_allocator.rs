//! The allocator of wasm: large blocks come from [`crate::free_list`], small ones from the system's
//! allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::free_list::{FreeList, GRAIN, LARGE_BLOCK};

/// The allocator of wasm. Large blocks come from a [`FreeList`], small ones from the system.
pub struct WasmAllocator {
    locked: AtomicBool,
    free: UnsafeCell<FreeList>,
}

// SAFETY: only `with` accesses `free`, and it admits one thread at a time.
unsafe impl Sync for WasmAllocator {}

impl WasmAllocator {
    /// Starts with an empty free list.
    pub const fn new() -> Self {
        WasmAllocator {
            locked: AtomicBool::new(false),
            free: UnsafeCell::new(FreeList::new()),
        }
    }

    /// True if the free list serves this block. It aligns blocks to one grain.
    fn is_large(layout: Layout, size: usize) -> bool {
        size >= LARGE_BLOCK && layout.align() <= GRAIN
    }

    /// Calls `work` on the free list under the lock. Waiting threads spin, as in the system's
    /// allocator: the lock is held for less than a microsecond, and a page's main thread may not
    /// block.
    fn with<T>(&self, work: impl FnOnce(&mut FreeList) -> T) -> T {
        while self
            .locked
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        // SAFETY: the thread that swaps `locked` to true is alone until it stores false. The list's
        // own allocations are small and go to the system, so this function is not reentered.
        let done = work(unsafe { &mut *self.free.get() });
        self.locked.store(false, Ordering::Release);
        done
    }

    #[inline(never)]
    fn take(&self, bytes: usize) -> *mut u8 {
        const PAGE: usize = 65_536;
        self.with(|free| {
            loop {
                if let Some(at) = free.take(bytes) {
                    return at as *mut u8;
                }
                // The system's allocator may grow the memory at the same time. The new pages then
                // don't touch the last free range, and the next iteration grows the memory again.
                let end = core::arch::wasm32::memory_size::<0>() as u64 * PAGE as u64;
                let pages = (bytes - free.bytes_ending_at(end).min(bytes))
                    .div_ceil(PAGE)
                    .max(1);
                let first = core::arch::wasm32::memory_grow::<0>(pages);
                if first == usize::MAX {
                    return std::ptr::null_mut();
                }
                free.put(first * PAGE, pages * PAGE);
            }
        })
    }

    #[inline(never)]
    fn put(&self, block: *mut u8, bytes: usize) {
        self.with(|free| free.put(block as usize, bytes));
    }

    #[inline(never)]
    fn resize(&self, block: *mut u8, old: usize, new: usize) -> bool {
        self.with(|free| free.resize(block as usize, old, new))
    }
}

// SAFETY: a block of ours is memory that `memory.grow` gave to no one else, or a freed block. While
// it is allocated, no free range contains it. Other blocks are the system's. The layout alone
// decides which of the two a block is.
unsafe impl GlobalAlloc for WasmAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::is_large(layout, layout.size()) {
            return self.take(layout.size());
        }
        // SAFETY: the caller upholds the contract that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if Self::is_large(layout, layout.size()) {
            return self.put(pointer, layout.size());
        }
        // SAFETY: the pointer came from `System`, as all do that are not ours.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let old = layout.size();
        match (Self::is_large(layout, old), Self::is_large(layout, size)) {
            // SAFETY: the pointer came from `System`, and the new block is the system's, too.
            (false, false) => return unsafe { System.realloc(pointer, layout, size) },
            (true, true) if self.resize(pointer, old, size) => return pointer,
            _ => {}
        }
        // SAFETY: the caller guarantees that `size` and this alignment form a valid layout, and
        // that the old block has the layout's size. The new block is a different one.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(pointer, moved, old.min(size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}
