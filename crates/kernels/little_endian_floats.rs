//! Floats as they lie in a file: little-endian, of a type.

use crate::dispatch::vectorized;
use crate::half::{widen_brain, widen_half};

/// Little-endian floats of a type.
#[derive(Clone, Copy, Debug)]
pub enum LittleEndianFloats<'a> {
    /// 32 bits.
    Float(&'a [[u8; 4]]),
    /// float16.
    Half(&'a [[u8; 2]]),
    /// bfloat16.
    Brain(&'a [[u8; 2]]),
    /// 64 bits.
    Double(&'a [[u8; 8]]),
}

impl LittleEndianFloats<'_> {
    /// Returns the number of floats.
    pub fn len(self) -> usize {
        match self {
            LittleEndianFloats::Float(raw) => raw.len(),
            LittleEndianFloats::Half(raw) | LittleEndianFloats::Brain(raw) => raw.len(),
            LittleEndianFloats::Double(raw) => raw.len(),
        }
    }

    /// Returns true without floats.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Reads floats from an index on. Doubles are rounded.
    #[inline(always)]
    pub(crate) fn read(self, at: usize, to: &mut [f32]) {
        match self {
            LittleEndianFloats::Float(raw) => decode(raw, at, to, f32::from_le_bytes),
            LittleEndianFloats::Half(raw) => {
                decode(raw, at, to, |raw| widen_half(u16::from_le_bytes(raw)));
            }
            LittleEndianFloats::Brain(raw) => {
                decode(raw, at, to, |raw| widen_brain(u16::from_le_bytes(raw)));
            }
            LittleEndianFloats::Double(raw) => {
                decode(raw, at, to, |raw| f64::from_le_bytes(raw) as f32)
            }
        }
    }

    /// Reads all floats. Stops at the shorter slice.
    pub fn read_all(self, to: &mut [f32]) {
        let count = to.len().min(self.len());
        vectorized!(self.read(0, &mut to[..count]));
    }
}

#[inline(always)]
fn decode<const SIZE: usize>(
    raw: &[[u8; SIZE]],
    at: usize,
    to: &mut [f32],
    widen: impl Fn([u8; SIZE]) -> f32,
) {
    let raw = &raw[at..][..to.len()];
    for (to, &raw) in to.iter_mut().zip(raw) {
        *to = widen(raw);
    }
}
