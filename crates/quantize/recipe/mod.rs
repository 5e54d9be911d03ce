//! Recipes: constants of the result, computed from the bytes of a constant of the source.
//!
//! A recipe sees the bytes in slices, in one or several passes, and emits finished stretches of its
//! outputs. The sizes of the outputs are known before. So a tensor of any size takes bounded memory,
//! and a file of constants can be laid out before a byte is read. A recipe does no input and no
//! output itself.

mod blocks;
mod copy;
mod four_bit_floats;
mod half;
mod integers;
mod planned;
#[cfg(test)]
mod tests;

use std::ops::Range;

use octet_onnx::schema::DataType;
use serde::{Deserialize, Serialize};

pub use blocks::{BlocksRecipe, MatrixLayout};
pub use copy::CopyRecipe;
pub use four_bit_floats::FourBitFloatsRecipe;
pub use half::HalfRecipe;
pub use integers::{IntegersPlan, IntegersRecipe};
pub use planned::{PlannedRecipe, RecipeKind};

/// The greatest number of bytes in a slice.
pub const SLICE: u64 = 8 << 20;

/// Bytes that a recipe keeps at most, beside a slice and what it emits.
pub const MEMORY: usize = 64 << 20;

/// A constant that a recipe computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeOutput {
    /// Element type.
    pub element: DataType,
    /// Size of each axis.
    pub shape: Vec<usize>,
    /// Number of bytes.
    pub bytes: u64,
}

impl RecipeOutput {
    fn new(element: DataType, shape: &[usize]) -> RecipeOutput {
        let bits = element.bits().unwrap_or(0) as u64;
        let count = shape.iter().map(|&size| size as u64).product::<u64>();
        RecipeOutput {
            element,
            shape: shape.to_vec(),
            bytes: (count * bits).div_ceil(8),
        }
    }
}

/// A finished stretch of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// Index of the output.
    pub output: usize,
    /// Offset in the output's bytes.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Reasons why a constant can't be computed from its source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// A number without an integer.
    #[error("one of its numbers is infinite or NaN, which no integer represents")]
    NotFinite,
    /// A number beyond float16, in a constant that becomes float16.
    #[error("one of its numbers is too large for float16")]
    TooLarge,
    /// A scale beyond the type of scales.
    #[error("the range of a block is too large for a {} scale", .0.name())]
    Scale(DataType),
    /// A slice of another size than asked for.
    #[error("the recipe asked for {expected} bytes and got {actual}")]
    Slice {
        /// Bytes asked for.
        expected: u64,
        /// Bytes passed.
        actual: usize,
    },
}

/// Facts about a computed constant, for the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecipeSummary {
    /// The scale of largest magnitude.
    pub scale: f32,
    /// Its zero point.
    pub zero_point: f32,
    /// Numbers that the output type can't hold.
    pub out_of_range: u64,
    /// Numbers that stand for infinity, which became the nearest end of the output type.
    pub too_large: u64,
    /// Numbers that would have become zero, and became the least number instead.
    pub too_small: u64,
}

/// The computation of one or several constants from one constant of the source.
pub trait Recipe: Send {
    /// The constants that it computes.
    fn outputs(&self) -> &[RecipeOutput];

    /// The slices of the source constant that it has yet to read. They do not depend on the bytes.
    fn slices(&self) -> &Slices;

    /// Bytes of the source constant that it needs next; `None` at the end.
    fn next(&self) -> Option<Range<u64>> {
        self.slices().wanted()
    }

    /// Takes the bytes that [`Self::next`] asked for, and emits what is finished.
    fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Emitted)) -> Result<(), RecipeError>;

    /// Bytes that it keeps between two slices, at most.
    fn memory(&self) -> u64;

    /// Facts about the outputs, complete at the end.
    fn summary(&self) -> RecipeSummary;
}

/// The position in a source that is read in slices, pass after pass.
#[derive(Clone, Debug)]
pub struct Slices {
    bytes: u64,
    /// A slice is a multiple of this, except the last.
    unit: u64,
    position: u64,
    passes: usize,
    /// Passes that are complete.
    passed: usize,
}

impl Slices {
    fn new(bytes: u64, unit: u64, passes: usize) -> Slices {
        Slices {
            bytes,
            unit,
            position: 0,
            passes: if bytes > 0 { passes } else { 0 },
            passed: 0,
        }
    }

    /// The next slice.
    fn wanted(&self) -> Option<Range<u64>> {
        let whole = (SLICE / self.unit).max(1) * self.unit;
        let end = self.bytes.min(self.position + whole);
        (self.passed < self.passes).then_some(self.position..end)
    }

    /// The number of passes.
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// Bytes of all passes.
    pub fn total(&self) -> u64 {
        self.bytes * self.passes as u64
    }

    /// Checks a slice and moves on. True at the end of a pass.
    fn advance(&mut self, bytes: &[u8]) -> Result<bool, RecipeError> {
        let wanted = self.wanted().unwrap_or_default();
        let expected = wanted.end - wanted.start;
        if expected != bytes.len() as u64 {
            return Err(RecipeError::Slice {
                expected,
                actual: bytes.len(),
            });
        }
        self.next();
        Ok(self.position == 0)
    }
}

impl Iterator for Slices {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let slice = self.wanted()?;
        self.position = slice.end;
        if self.position == self.bytes {
            self.passed += 1;
            self.position = 0;
        }
        Some(slice)
    }
}

/// Runs a recipe on a constant in memory; returns its outputs.
pub fn run_in_memory(recipe: &mut dyn Recipe, source: &[u8]) -> Result<Vec<Vec<u8>>, RecipeError> {
    let outputs = recipe.outputs().iter();
    let mut results: Vec<Vec<u8>> = outputs.map(|o| vec![0; o.bytes as usize]).collect();
    while let Some(range) = recipe.next() {
        let slice = &source[range.start as usize..range.end as usize];
        recipe.feed(slice, &mut |emitted| {
            let at = emitted.offset as usize;
            results[emitted.output][at..at + emitted.bytes.len()].copy_from_slice(&emitted.bytes);
        })?;
    }
    Ok(results)
}
