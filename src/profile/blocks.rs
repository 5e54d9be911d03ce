//! The allocator of wasm: large blocks lie where [`super::holes`] says, small ones where the system's allocator puts them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use super::holes::{GRAIN, Holes, LARGE};

/// The allocator of wasm: large blocks from [`Holes`], small ones from the system.
pub struct Blocks {
    held: AtomicBool,
    holes: UnsafeCell<Holes>,
}

// SAFETY: `holes` is only touched by `with`, which lets in one at a time.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Nothing is free yet.
    pub const fn new() -> Self {
        Blocks {
            held: AtomicBool::new(false),
            holes: UnsafeCell::new(Holes::new()),
        }
    }

    /// Whether a block is ours: none needs to lie better than on a grain.
    fn ours(layout: Layout, size: usize) -> bool {
        size >= LARGE && layout.align() <= GRAIN
    }

    /// Does something with the holes, alone. Whoever waits turns on the spot, as for the system's allocator: it takes less than a
    /// microsecond, and the main thread of a page may not sleep.
    fn with<T>(&self, work: impl FnOnce(&mut Holes) -> T) -> T {
        while self
            .held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        // SAFETY: who has swapped `held` to true is alone until it is false again. What `Holes` allocates for its list is small
        // and not ours, so that nothing comes here twice.
        let done = work(unsafe { &mut *self.holes.get() });
        self.held.store(false, Ordering::Release);
        done
    }

    #[inline(never)]
    fn take(&self, bytes: usize) -> *mut u8 {
        const PAGE: usize = 65_536;
        self.with(|holes| {
            loop {
                if let Some(at) = holes.take(bytes) {
                    return at as *mut u8;
                }
                // The system's allocator may grow the memory at the same time. Then the new pages don't touch the last hole, and
                // the next turn grows it once more.
                let end = core::arch::wasm32::memory_size::<0>() as u64 * PAGE as u64;
                let pages = (bytes - holes.before(end).min(bytes)).div_ceil(PAGE).max(1);
                let first = core::arch::wasm32::memory_grow::<0>(pages);
                if first == usize::MAX {
                    return std::ptr::null_mut();
                }
                holes.put(first * PAGE, pages * PAGE);
            }
        })
    }

    #[inline(never)]
    fn put(&self, block: *mut u8, bytes: usize) {
        self.with(|holes| holes.put(block as usize, bytes));
    }

    #[inline(never)]
    fn resize(&self, block: *mut u8, old: usize, new: usize) -> bool {
        self.with(|holes| holes.resize(block as usize, old, new))
    }
}

// SAFETY: a block of ours is memory that `memory.grow` gave to nobody else or that came back, and it is in no hole while it is
// taken; the others are the system's. Which of the two a block is follows from its layout alone.
unsafe impl GlobalAlloc for Blocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::ours(layout, layout.size()) {
            return self.take(layout.size());
        }
        // SAFETY: the caller's promises are those `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if Self::ours(layout, layout.size()) {
            return self.put(pointer, layout.size());
        }
        // SAFETY: the pointer came from `System`, as all do that are not ours.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let old = layout.size();
        match (Self::ours(layout, old), Self::ours(layout, size)) {
            // SAFETY: the pointer came from `System`, and what is asked for is the system's, too.
            (false, false) => return unsafe { System.realloc(pointer, layout, size) },
            (true, true) if self.resize(pointer, old, size) => return pointer,
            _ => {}
        }
        // SAFETY: the caller promises that `size` makes a layout with this alignment, and that the old block is as long as its
        // layout says; the new one is another block.
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
