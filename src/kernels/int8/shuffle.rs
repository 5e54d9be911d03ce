//! Looks bytes up in a table of 256 by shuffles, where they are x86's.
//!
//! One at a time each byte is a load, another load and a store. A shuffle looks sixteen up at once, in sixteen entries. So the
//! table is sixteen parts, and a byte is moved down by sixteen from part to part.
//!
//! x86's shuffle gives zero where a byte is negative, else what its lowest four bits say. So parts answer too early: `16 h + l` is `l` to
//! the parts 0 to h, until it has become negative. If part k holds `table[k] xor table[k - 1]`, all answers together, by `xor`, are
//! `table[h]`. Bytes from 128 on are negative from the start; they go the same way through the other half, with their top bit
//! flipped. Subtractions saturate, so that what is negative stays it.
//!
//! That is three operations a part. `i8x16.swizzle`, which is zero for all bytes from 16 on, takes four on x86, and is slower than one byte at a time.

use core::arch::wasm32::{
    i8x16_relaxed_swizzle, i8x16_splat, i8x16_sub_sat, v128, v128_load, v128_store, v128_xor,
};
use core::hint::black_box;
use std::sync::OnceLock;

/// Bytes that are looked up in one turn: four vectors, for which a part is loaded once.
pub(super) const TURN: usize = 64;

/// A table in parts of sixteen entries, each but the first of a half less the one before it.
pub(super) struct Parts([v128; 16]);

/// Four vectors of bytes.
#[derive(Clone, Copy)]
struct Four(v128, v128, v128, v128);

impl Four {
    #[inline(always)]
    fn load(bytes: &[u8; TURN]) -> Four {
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
    fn store(self, bytes: &mut [u8; TURN]) {
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

impl Parts {
    /// The parts of a table that so many bytes are looked up in; nothing where they are too few to be worth it, or shuffles are not
    /// x86's.
    pub(super) fn of(table: &[u8; 256], count: usize) -> Option<Parts> {
        static OF_X86: OnceLock<bool> = OnceLock::new();
        if count < 4 * TURN || !*OF_X86.get_or_init(is_of_x86) {
            return None;
        }
        let (sixteens, _) = table.as_chunks();
        let part = |at: usize| load(&sixteens[at]);
        Some(Parts(core::array::from_fn(|at| match at % 8 {
            0 => part(at),
            _ => v128_xor(part(at), part(at - 1)),
        })))
    }

    /// Looks every byte up.
    pub(super) fn look_up(&self, values: &[[u8; TURN]], output: &mut [[u8; TURN]]) {
        for (values, output) in values.iter().zip(output) {
            let low = self.half(0, Four::load(values));
            // Loaded again, since sixteen registers hold no more.
            let flipped = Four::load(black_box(values)).map(|v| v128_xor(v, i8x16_splat(-128)));
            self.half(8, flipped).xor(low).store(output);
        }
    }

    /// What the eight parts from this one on say of bytes that are not negative; zero of others.
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

/// Whether this engine's shuffle is x86's: the standard leaves open what bytes from 16 to 127 give, but an engine must always do the
/// same.
fn is_of_x86() -> bool {
    let entries: [u8; 16] = core::array::from_fn(|at| at as u8 + 1);
    (0..=u8::MAX).step_by(16).all(|from| {
        let bytes: [u8; 16] = core::array::from_fn(|at| from + at as u8);
        // Hidden from the compiler, which would compute what it believes the instruction gives.
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
