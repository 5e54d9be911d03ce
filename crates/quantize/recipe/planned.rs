//! Recipes of a model, before a byte of its large constants is read.

use bytes::Bytes;
use octet_onnx::schema::{DataLocation, DataType, TensorProto};
use octet_onnx::tensor::TensorError;

use super::{
    BlocksRecipe, CopyRecipe, FourBitFloatsRecipe, HalfRecipe, IntegersPlan, IntegersRecipe,
    MatrixLayout, Recipe, RecipeOutput,
};
use crate::BlockSettings;
use octet_kernels::block_weights::FourBitFloat;

/// The computation of a recipe.
#[derive(Clone, Debug, PartialEq)]
pub enum RecipeKind {
    /// The bytes as they are.
    Copy,
    /// float16.
    Half,
    /// Block-wise integers of a matrix, with scales of this type.
    Blocks(MatrixLayout, BlockSettings, DataType),
    /// Floats of 4 bits of a matrix, in blocks of this size.
    FourBitFloats(MatrixLayout, FourBitFloat, usize),
    /// Integers with scales and zero points from minimum and maximum.
    Integers(IntegersPlan),
}

/// A constant of the source and the constants that are computed from it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRecipe {
    /// The constant, in the model or in a file.
    pub source: TensorProto,
    /// The computation.
    pub kind: RecipeKind,
    /// Names of the computed constants, in the recipe's order.
    pub outputs: Vec<String>,
    /// Constants with the bytes of an output and another shape: name, output and shape.
    pub views: Vec<(String, usize, Vec<usize>)>,
}

impl PlannedRecipe {
    /// A constant that stays as it is.
    pub fn copy(source: &TensorProto) -> PlannedRecipe {
        PlannedRecipe {
            outputs: vec![source.name.clone().unwrap_or_default()],
            source: source.clone(),
            kind: RecipeKind::Copy,
            views: Vec::new(),
        }
    }

    /// The recipe at its beginning.
    pub fn start(&self) -> Result<Box<dyn Recipe>, TensorError> {
        let (element, shape) = (self.source.element()?, self.source.shape()?);
        Ok(match &self.kind {
            RecipeKind::Copy => Box::new(CopyRecipe::new(element, &shape)),
            RecipeKind::Half => match HalfRecipe::new(element, &shape) {
                Some(recipe) => Box::new(recipe),
                None => Box::new(CopyRecipe::new(element, &shape)),
            },
            RecipeKind::Blocks(matrix, settings, scales) => {
                let origin = self.source.widened_from().unwrap_or(element);
                Box::new(BlocksRecipe::new(*matrix, element, settings, *scales).made_of(origin))
            }
            RecipeKind::FourBitFloats(matrix, kind, block) => {
                Box::new(FourBitFloatsRecipe::new(*matrix, element, *kind, *block))
            }
            RecipeKind::Integers(plan) => Box::new(IntegersRecipe::new(element, plan)),
        })
    }

    /// The computed constants, without their bytes.
    pub fn placeholders(&self) -> Result<Vec<TensorProto>, TensorError> {
        let recipe = self.start()?;
        let outputs = recipe.outputs().iter().zip(&self.outputs);
        Ok(outputs
            .map(|(output, name)| placeholder(name, output, &output.shape))
            .collect())
    }

    /// The computed constants and their views, from the bytes of the recipe's outputs.
    pub fn constants(&self, results: Vec<Vec<u8>>) -> Result<Vec<TensorProto>, TensorError> {
        let results: Vec<Bytes> = results.into_iter().map(Bytes::from).collect();
        let whole = |(mut constant, bytes): (TensorProto, &Bytes)| {
            constant.raw_data = Some(bytes.clone());
            constant.data_location = None;
            constant
        };
        let placeholders = self.placeholders()?.into_iter();
        let mut constants: Vec<TensorProto> = placeholders.zip(&results).map(whole).collect();
        for (view, (_, output, _)) in self.views.iter().enumerate() {
            let bytes = results.get(*output);
            constants.extend(self.view_placeholder(view)?.zip(bytes).map(whole));
        }
        Ok(constants)
    }

    /// The constants with the bytes of an output, without their bytes.
    pub fn view_placeholder(&self, view: usize) -> Result<Option<TensorProto>, TensorError> {
        let recipe = self.start()?;
        Ok(self.views.get(view).and_then(|(name, output, shape)| {
            Some(placeholder(name, recipe.outputs().get(*output)?, shape))
        }))
    }
}

/// An external tensor that has no location yet.
fn placeholder(name: &str, output: &RecipeOutput, shape: &[usize]) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: shape.iter().map(|&size| size as i64).collect(),
        data_type: Some(output.element as i32),
        data_location: Some(DataLocation::External as i32),
        ..TensorProto::default()
    }
}
