//! The allocator of every build. It counts live and peak memory at every allocation; the size of
//! wasm memory would not do, since that only grows. In wasm it also places large blocks.
//!
//! The root crate registers [`CountingAllocator`] as the global allocator.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod counting;
#[cfg(any(test, target_family = "wasm"))]
mod free_list;
mod glibc;
#[cfg(target_family = "wasm")]
mod wasm_allocator;

pub use counting::{CountingAllocator, live, peak, peak_of, raise_peak, restart_peak};
pub use glibc::{give_back, give_back_large_blocks};
