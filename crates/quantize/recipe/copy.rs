//! A constant that stays as it is.

use octet_onnx::schema::DataType;

use super::{Emitted, Recipe, RecipeError, RecipeOutput, RecipeSummary, Slices};

/// Copies a constant.
pub struct CopyRecipe {
    output: [RecipeOutput; 1],
    slices: Slices,
}

impl CopyRecipe {
    /// Copies a constant of this type and shape.
    pub fn new(element: DataType, shape: &[usize]) -> CopyRecipe {
        let output = RecipeOutput::new(element, shape);
        CopyRecipe {
            slices: Slices::new(output.bytes, 1, 1),
            output: [output],
        }
    }
}

impl Recipe for CopyRecipe {
    fn outputs(&self) -> &[RecipeOutput] {
        &self.output
    }

    fn slices(&self) -> &Slices {
        &self.slices
    }

    fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Emitted)) -> Result<(), RecipeError> {
        let offset = self.slices.position;
        self.slices.advance(bytes)?;
        emit(Emitted {
            output: 0,
            offset,
            bytes: bytes.to_vec(),
        });
        Ok(())
    }

    fn memory(&self) -> u64 {
        0
    }

    fn summary(&self) -> RecipeSummary {
        RecipeSummary::default()
    }
}
