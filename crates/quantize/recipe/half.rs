//! A constant as float16.

use octet_onnx::schema::DataType;
use rayon::prelude::*;

use super::{Emitted, Recipe, RecipeError, RecipeOutput, RecipeSummary, Slices};
use octet_kernels::half::{HalfCounts, narrow_fitting};

/// Numbers that one task converts.
const TASK: usize = 1 << 16;

/// Converts a constant of floats to float16. Fails at a number that float16 can't hold; those that
/// stand for infinity, as masks have them, become the largest float16.
pub struct HalfRecipe {
    source: DataType,
    output: [RecipeOutput; 1],
    slices: Slices,
    summary: RecipeSummary,
}

impl HalfRecipe {
    /// Converts a constant of this type and shape; `None` if it is not of floats.
    pub fn new(source: DataType, shape: &[usize]) -> Option<HalfRecipe> {
        if !source.is_float() {
            return None;
        }
        let bytes = RecipeOutput::new(source, shape).bytes;
        Some(HalfRecipe {
            source,
            output: [RecipeOutput::new(DataType::Float16, shape)],
            slices: Slices::new(bytes, (source.bits()? / 8) as u64, 1),
            summary: RecipeSummary::default(),
        })
    }
}

impl Recipe for HalfRecipe {
    fn outputs(&self) -> &[RecipeOutput] {
        &self.output
    }

    fn slices(&self) -> &Slices {
        &self.slices
    }

    fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Emitted)) -> Result<(), RecipeError> {
        let size = self.slices.unit as usize;
        let offset = self.slices.position / self.slices.unit * 2;
        self.slices.advance(bytes)?;
        let mut result = vec![0; bytes.len() / size * 2];
        let (halves, _) = result.as_chunks_mut();
        let counts: Vec<HalfCounts> = bytes
            .par_chunks(TASK * size)
            .zip(halves.par_chunks_mut(TASK))
            .filter_map(|(part, halves)| {
                Some(narrow_fitting(self.source.float_bytes(part)?, halves))
            })
            .collect();
        for counts in counts {
            self.summary.out_of_range += counts.out_of_range;
            self.summary.too_large += counts.too_large;
            self.summary.too_small += counts.too_small;
        }
        if self.summary.out_of_range > 0 {
            return Err(RecipeError::TooLarge);
        }
        emit(Emitted {
            output: 0,
            offset,
            bytes: result,
        });
        Ok(())
    }

    fn memory(&self) -> u64 {
        0
    }

    fn summary(&self) -> RecipeSummary {
        self.summary.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::run_in_memory;
    use super::*;
    use crate::float16_numbers::to_float16;

    #[test]
    fn floats_of_every_type_become_float16_and_those_out_of_range_are_counted() {
        let values = [1.0f32, -2.5, -1e30, 1e-20, 0.0];
        for source in [DataType::Float, DataType::Double, DataType::Bfloat16] {
            let bytes = source.bytes_of(values.iter().copied());
            let mut recipe = HalfRecipe::new(source, &[5]).unwrap();
            let outputs = run_in_memory(&mut recipe, &bytes).unwrap();
            assert_eq!(outputs[0], to_float16(&source.floats(&bytes)));
            let summary = recipe.summary();
            assert_eq!((summary.too_large, summary.too_small), (1, 1), "{source:?}");
        }
        assert!(HalfRecipe::new(DataType::Int64, &[5]).is_none());
        let far = DataType::Float.bytes_of([1.0, -70_000.0].into_iter());
        let mut recipe = HalfRecipe::new(DataType::Float, &[2]).unwrap();
        assert_eq!(run_in_memory(&mut recipe, &far), Err(RecipeError::TooLarge));
    }

    #[test]
    fn a_long_constant_takes_several_slices() {
        let count = (super::super::SLICE / 4) as usize + 3;
        let values: Vec<f32> = (0..count).map(|at| (at % 1000) as f32).collect();
        let bytes = DataType::Float.bytes_of(values.iter().copied());
        let mut recipe = HalfRecipe::new(DataType::Float, &[count]).unwrap();
        assert!(
            recipe
                .next()
                .is_some_and(|first| first.end < bytes.len() as u64)
        );
        let outputs = run_in_memory(&mut recipe, &bytes).unwrap();
        assert_eq!(outputs[0], to_float16(&values));
        let wrong = HalfRecipe::new(DataType::Float, &[2])
            .unwrap()
            .feed(&[0; 3], &mut |_| ());
        assert_eq!(
            wrong,
            Err(RecipeError::Slice {
                expected: 8,
                actual: 3
            })
        );
    }
}
