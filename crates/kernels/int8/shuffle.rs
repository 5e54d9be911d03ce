//! Lookup of bytes in a 256-entry table by x86-style shuffles.
//!
//! A scalar lookup is a load, a dependent load and a store per byte. A shuffle looks up sixteen
//! bytes at once, but in sixteen entries. The table is therefore split into sixteen parts. From
//! part to part, 16 is subtracted from the bytes.
//!
//! x86's shuffle returns zero for negative bytes, and otherwise the entry that the low four bits
//! select. Byte `16 h + l` thus selects entry `l` in parts 0 to h, until it becomes negative. Part
//! k holds `table[k] xor table[k - 1]`, so the xor of all results telescopes to `table[h]`. Bytes
//! from 128 on are negative from the start. They take the same path through the upper half, with
//! their top bit flipped. Subtractions saturate, so negative bytes stay negative.
//!
//! This costs three operations per part. `i8x16.swizzle` returns zero for all bytes from 16 on. It
//! takes four operations on x86, and is slower than scalar lookups.

use core::arch::wasm32::{
    i8x16_relaxed_swizzle, i8x16_splat, i8x16_sub_sat, v128, v128_load, v128_store, v128_xor,
};
use core::hint::black_box;
use std::sync::OnceLock;

/// Bytes per iteration: four vectors, for which a part is loaded once.
pub(super) const CHUNK: usize = 64;

/// A table in parts of sixteen entries. Each part but the first of a half is xored with its
/// predecessor.
pub(super) struct ShuffleTable([v128; 16]);

/// Four vectors of bytes.
#[derive(Clone, Copy)]
struct Four(v128, v128, v128, v128);

impl Four {
    #[inline(always)]
    fn load(bytes: &[u8; CHUNK]) -> Four {
        let at = bytes.as_ptr();
        // SAFETY: four times sixteen bytes.
        unsafe {
            Four(
                v128_load(at.cast()),
                v128_load(at.add(16).cast()),
                v128_load(at.add(32).cast()),
                v128_load(at.add(48).cast()),
            )
        }
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; CHUNK]) {
        let at = bytes.as_mut_ptr();
        // SAFETY: four times sixteen bytes.
        unsafe {
            v128_store(at.cast(), self.0);
            v128_store(at.add(16).cast(), self.1);
            v128_store(at.add(32).cast(), self.2);
            v128_store(at.add(48).cast(), self.3);
        }
    }

    #[inline(always)]
    fn map(self, change: impl Fn(v128) -> v128) -> Four {
        let Four(a, b, c, d) = self;
        Four(change(a), change(b), change(c), change(d))
    }

    #[inline(always)]
    fn xor(self, other: Four) -> Four {
        Four(
            v128_xor(self.0, other.0),
            v128_xor(self.1, other.1),
            v128_xor(self.2, other.2),
            v128_xor(self.3, other.3),
        )
    }
}

impl ShuffleTable {
    /// Splits a table for `count` lookups. `None` if they are too few to pay off, or if the
    /// engine's shuffle is not x86's.
    pub(super) fn new(table: &[u8; 256], count: usize) -> Option<ShuffleTable> {
        static OF_X86: OnceLock<bool> = OnceLock::new();
        if count < 4 * CHUNK || !*OF_X86.get_or_init(is_x86_shuffle) {
            return None;
        }
        let (sixteens, _) = table.as_chunks();
        let part = |at: usize| load(&sixteens[at]);
        Some(ShuffleTable(core::array::from_fn(|at| match at % 8 {
            0 => part(at),
            _ => v128_xor(part(at), part(at - 1)),
        })))
    }

    /// Looks up every byte.
    pub(super) fn look_up(&self, values: &[[u8; CHUNK]], output: &mut [[u8; CHUNK]]) {
        for (values, output) in values.iter().zip(output) {
            let low = self.half(0, Four::load(values));
            // Loaded again, since sixteen registers hold no more.
            let flipped = Four::load(black_box(values)).map(|v| v128_xor(v, i8x16_splat(-128)));
            self.half(8, flipped).xor(low).store(output);
        }
    }

    /// Returns the lookups in the eight parts from this one on for non-negative bytes, and zero for
    /// others.
    #[inline(always)]
    fn half(&self, first: usize, mut left: Four) -> Four {
        let mut found = left.map(|left| i8x16_relaxed_swizzle(self.0[first], left));
        for at in first + 1..first + 8 {
            left = left.map(|left| i8x16_sub_sat(left, i8x16_splat(16)));
            found = found.xor(left.map(|left| i8x16_relaxed_swizzle(self.0[at], left)));
        }
        found
    }
}

/// Returns true if the engine's relaxed swizzle is x86's shuffle. The standard leaves results for
/// bytes 16 to 127 open, but requires consistency.
fn is_x86_shuffle() -> bool {
    let entries: [u8; 16] = core::array::from_fn(|at| at as u8 + 1);
    (0..=u8::MAX).step_by(16).all(|from| {
        let bytes: [u8; 16] = core::array::from_fn(|at| from + at as u8);
        // Hidden from the compiler, which would otherwise fold the instruction with assumed
        // semantics.
        let [entries, bytes] = black_box([load(&entries), load(&bytes)]);
        let mut found = [0; 16];
        // SAFETY: sixteen bytes.
        unsafe {
            let answers = i8x16_relaxed_swizzle(entries, bytes);
            v128_store(found.as_mut_ptr().cast(), answers);
        }
        found
            == core::array::from_fn(|at| match from {
                0..128 => at as u8 + 1,
                _ => 0,
            })
    })
}

fn load(bytes: &[u8; 16]) -> v128 {
    // SAFETY: sixteen bytes.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}
