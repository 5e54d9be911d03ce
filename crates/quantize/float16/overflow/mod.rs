//! Activations beyond float16 on the samples: a rewrite of the float32 model that brings them into its
//! range, before the model becomes half precision.
//!
//! Values inside of bodies keep their nodes float32.

mod clip;
mod far;
mod powers;
mod rescale;

pub(crate) use far::far_activations;
pub use rescale::DIVIDED;

use super::super::planned_model::RefusedConstants;
use super::super::settings::{Overflow, Settings};
use crate::QuantizeError;
use octet_graph::Model;

/// A model whose far activations were brought into the range of float16.
pub(crate) struct BroughtNear {
    /// The rewritten model.
    pub(crate) model: Model,
    /// A sentence for each activation.
    pub(crate) notes: Vec<String>,
}

/// Rewrites a model with typed values as the settings say, and takes the activations that are in range
/// now from `refused`. `None` if nothing changes.
pub(crate) fn brought_near(
    model: &Model,
    settings: &Settings,
    refused: &mut RefusedConstants,
) -> Result<Option<BroughtNear>, QuantizeError> {
    if !settings.makes_halves() || refused.far_activations().is_empty() {
        return Ok(None);
    }
    match settings.overflow {
        Overflow::Float32 => Ok(None),
        Overflow::Clip => Ok(clip::clipped(model, refused)),
        Overflow::Rescale if settings.needs_gram_matrices() => Ok(Some(BroughtNear {
            model: model.clone(),
            notes: vec![
                "nothing is rescaled: `gptq` and `awq` need the activations as they were observed; nodes beyond float16 \
                 stay float32"
                    .into(),
            ],
        })),
        Overflow::Rescale => rescale::rescaled(model, refused),
    }
}

/// The note on what is not known without samples; `None` where samples showed the activations.
pub(super) fn without_samples(refused: &RefusedConstants) -> Option<String> {
    (!refused.saw_samples()).then(|| {
        "only the constants were checked for numbers beyond float16 (±65504): activations may exceed it, which samples \
         would show"
            .into()
    })
}
