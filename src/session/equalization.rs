//! Equalization in a session. It lies between a first pass over the samples, which collects the
//! abs-max of each channel, and the calibration itself. The calibration then observes the equalized
//! model.

use std::sync::Arc;

use super::{Error, RangeSource, Session};
use crate::graph::Model;
use crate::prepare::equalize::ChannelFactors;
use crate::quantize::{Plan, Settings};
use crate::runtime::Engine;

/// A model after equalization.
pub(super) struct Equalized {
    strength: f32,
    factors: ChannelFactors,
    model: Model,
}

impl Session {
    /// Sets the strength of equalization for later calibrations; `None` turns it off. It needs one
    /// extra pass: see [`Session::begin_extra_pass`].
    pub fn equalize(&mut self, strength: Option<f32>) {
        self.equalize = strength;
    }

    /// True if the current calibration has yet to equalize the model.
    pub(super) fn awaits_equalization(&self) -> bool {
        self.equalize.is_some() && self.equalized.is_none()
    }

    /// Equalizes the model with the statistics so far. Returns true if any channel changed; the
    /// calibration has then been restarted on the new model.
    pub(super) fn apply_equalization(&mut self) -> Result<bool, Error> {
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrating)?;
        calibration.settle()?;
        if calibration.done() == 0 {
            return Err(calibration
                .first_error()
                .map_or(Error::NoSamples, Error::from));
        }
        let strength = self.equalize.unwrap_or_default();
        let abs_max = calibration.channel_abs_max();
        let greatest = |value: &str| abs_max.get(value).map(|channels| channels.greatest());
        let factors = ChannelFactors::from_magnitudes(&ready.model, greatest, strength)?;
        let model = factors.applied(&ready.model)?;
        let any = !factors.is_empty();
        if any {
            // The planned engine runs the model before equalization.
            self.planned = None;
            let watched = Plan::observed_values(&ready.model)?;
            calibration.restart(Arc::new(Engine::new(model.clone(), watched)))?;
        }
        self.equalized = Some(Equalized {
            strength,
            factors,
            model,
        });
        Ok(any)
    }

    /// The equalized model that the ranges belong to; `None` without equalization.
    pub(super) fn calibrated_model(&self) -> Option<&Model> {
        Some(&self.calibrated_equalization()?.model)
    }

    fn calibrated_equalization(&self) -> Option<&Equalized> {
        match self.range_source.as_ref()? {
            RangeSource::Statistics(_, _, equalized) => equalized.as_ref(),
            RangeSource::Fixed(_) => None,
        }
    }

    /// The model that these settings quantize.
    pub(super) fn model_for(&self, settings: &Settings) -> Result<&Model, Error> {
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrated)?;
        if !settings.needs_samples() {
            return Ok(&ready.model);
        }
        let equalized = self.calibrated_equalization();
        let (wanted, done) = (
            settings.equalizes(),
            equalized.map(|equalized| equalized.strength),
        );
        match wanted == done {
            true => Ok(equalized.map_or(&ready.model, |equalized| &equalized.model)),
            false => Err(Error::OtherEqualization { wanted, done }),
        }
    }

    /// Note on the equalization, as a sentence.
    pub(super) fn equalization_note(&self, settings: &Settings) -> Option<String> {
        settings.equalizes()?;
        let (values, least, greatest) = self.calibrated_equalization()?.factors.extent();
        let layers = if values == 1 { "layer" } else { "layers" };
        Some(match values {
            0 => "equalization changed nothing: no value lies between layers whose weights can absorb its factors".into(),
            _ => format!(
                "equalization scaled the output channels of {values} {layers} by factors from {least:.3} to {greatest:.3}, which \
                 the weights around them absorb"
            ),
        })
    }
}
