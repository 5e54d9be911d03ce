//! Live and peak memory, counted at every allocation. The size of wasm memory would not do, since
//! it only grows. Quantities that cannot be measured are `None`.

#[cfg(not(target_family = "wasm"))]
use std::alloc::System;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use serde::Serialize;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[cfg(target_family = "wasm")]
static BENEATH: super::wasm_allocator::WasmAllocator = super::wasm_allocator::WasmAllocator::new();
#[cfg(not(target_family = "wasm"))]
static BENEATH: System = System;

/// Counts allocations and passes them on to the allocator beneath.
struct Counting;

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
unsafe impl GlobalAlloc for Counting {
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

/// Makes glibc map each block from 1 MiB on separately, from here on. Otherwise small long-lived
/// blocks fragment its heap where large ones come and go: a network with activations of 10 MiB took
/// four times its allocations. The cost is a quarter of the time for a model of small layers, and
/// little for a large one.
pub fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// `M_MMAP_THRESHOLD` of glibc's malloc.h.
        const THRESHOLD: i32 = -3;
        unsafe extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        // SAFETY: glibc lets any thread set this at any time; existing blocks stay in place.
        unsafe {
            mallopt(THRESHOLD, 1 << 20);
        }
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

/// Memory and disk use at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Live memory.
    pub live: u64,
    /// Peak of live memory.
    pub peak: u64,
    /// Memory of the process: resident memory natively, all pages of the memory in wasm.
    pub process: Option<u64>,
    /// Peak of the process's memory.
    pub process_peak: Option<u64>,
    /// Bytes read from disk since the process began.
    pub disk_read: Option<u64>,
    /// Bytes written to disk since the process began.
    pub disk_write: Option<u64>,
}

/// Wasm memory as the page shows it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Memory {
    /// Size of the wasm memory, which never shrinks.
    pub pages: usize,
    /// Live memory.
    pub live: usize,
    /// Peak of the live memory.
    pub peak: usize,
}

/// Memory limit, live bytes included, if known: the address space in wasm, the available memory of
/// the system natively.
pub fn limit() -> Option<u64> {
    if cfg!(target_family = "wasm") {
        return Some(1 << 32);
    }
    let system = std::fs::read_to_string("/proc/meminfo").ok()?;
    let available = number(&system, "MemAvailable")? * 1024;
    Some(available + live() as u64)
}

/// Number after a key in a table of Linux's `/proc`.
fn number(text: &str, key: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Usage now, as far as it costs next to nothing to read.
pub fn glance() -> Usage {
    Usage {
        live: live() as u64,
        peak: peak() as u64,
        process: wasm_bytes(),
        process_peak: wasm_bytes(),
        ..Usage::default()
    }
}

/// Size of the wasm memory; `None` natively.
fn wasm_bytes() -> Option<u64> {
    #[cfg(target_family = "wasm")]
    return Some(core::arch::wasm32::memory_size(0) as u64 * 65_536);
    #[cfg(not(target_family = "wasm"))]
    None
}

/// Size of the wasm memory at the last call of [`growth`].
static SIZE: AtomicU64 = AtomicU64::new(0);

/// Old and new size if the wasm memory grew since the last call. Only one of several threads gets
/// the answer.
pub fn growth() -> Option<(u64, u64)> {
    grown_from(&SIZE, wasm_bytes()?)
}

fn grown_from(last: &AtomicU64, now: u64) -> Option<(u64, u64)> {
    let before = last.fetch_max(now, Relaxed);
    (before != 0 && now > before).then_some((before, now))
}

/// Usage now.
pub fn usage() -> Usage {
    Usage {
        live: live() as u64,
        peak: peak() as u64,
        ..system()
    }
}

#[cfg(target_family = "wasm")]
fn system() -> Usage {
    // Wasm memory never shrinks.
    Usage {
        process: wasm_bytes(),
        process_peak: wasm_bytes(),
        ..Usage::default()
    }
}

#[cfg(target_os = "linux")]
fn system() -> Usage {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    Usage {
        process: number(&status, "VmRSS").map(|kib| kib * 1024),
        process_peak: number(&status, "VmHWM").map(|kib| kib * 1024),
        disk_read: number(&io, "read_bytes"),
        disk_write: number(&io, "write_bytes"),
        ..Usage::default()
    }
}

#[cfg(not(any(target_family = "wasm", target_os = "linux")))]
fn system() -> Usage {
    Usage::default()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn each_growth_is_reported_once_and_the_first_call_is_none() {
        let size = AtomicU64::new(0);
        let told: Vec<_> = [5, 5, 7, 7, 9].map(|now| grown_from(&size, now)).into();
        assert_eq!(told, [None, None, Some((5, 7)), None, Some((7, 9))]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_reports_resident_memory_and_its_peak() {
        let usage = usage();
        assert!(usage.process.unwrap() > 0 && usage.process_peak >= usage.process);
    }
}
