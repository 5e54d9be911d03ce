//! Equalization in a session. It lies between a first pass over the samples, which collects the
//! abs-max of each channel, and the calibration itself. The calibration then observes the equalized
//! model.

use super::error::Error;
use crate::graph::Model;
use crate::prepare::equalize::ChannelFactors;

/// Equalization of a calibration.
pub(super) enum Equalization {
    /// The settings have none.
    Off,
    /// The samples must run once before the model can be equalized with this strength.
    Pending(f32),
    /// The calibration observes the equalized model.
    Applied(EqualizedModel),
}

/// A model after equalization.
pub(super) struct EqualizedModel {
    pub(super) strength: f32,
    factors: ChannelFactors,
    pub(super) model: Model,
}

impl EqualizedModel {
    /// Equalizes a model with the greatest magnitude of each channel, by value.
    pub(super) fn new<'r>(
        model: &Model,
        greatest: impl Fn(&str) -> Option<&'r [f32]>,
        strength: f32,
    ) -> Result<EqualizedModel, Error> {
        let factors = ChannelFactors::from_magnitudes(model, greatest, strength)?;
        Ok(EqualizedModel {
            strength,
            model: factors.applied(model)?,
            factors,
        })
    }

    /// True if any channel changed.
    pub(super) fn changes_any(&self) -> bool {
        !self.factors.is_empty()
    }

    /// Note on the equalization, as a sentence.
    pub(super) fn note(&self) -> String {
        let (values, least, greatest) = self.factors.extent();
        let layers = if values == 1 { "layer" } else { "layers" };
        match values {
            0 => "equalization changed nothing: no value lies between layers whose weights can absorb its factors".into(),
            _ => format!(
                "equalization scaled the output channels of {values} {layers} by factors from {least:.3} to {greatest:.3}, which \
                 the weights around them absorb"
            ),
        }
    }
}
