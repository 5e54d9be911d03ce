//! Equalization in a session. It lies between a first pass over the samples, which collects the
//! abs-max of each channel, and the calibration itself. The calibration then observes the equalized
//! model.

use std::sync::Arc;

use super::{Error, Found, Session};
use crate::engine::Engine;
use crate::graph::Model;
use crate::prepare::equalize::Factors;
use crate::quantize::{Plan, Settings};

/// A model after equalization.
pub(super) struct Equalized {
    strength: f32,
    factors: Factors,
    model: Model,
}

impl Session {
    /// Sets the strength of equalization for later calibrations; `None` turns it off. It needs one
    /// extra pass: see [`Session::begin_further_pass`].
    pub fn equalize(&mut self, strength: Option<f32>) {
        self.equalize = strength;
    }

    /// True if the current calibration has yet to equalize the model.
    pub(super) fn awaits_equalizing(&self) -> bool {
        self.equalize.is_some() && self.equalized.is_none()
    }

    /// Equalizes the model with the statistics so far. Returns true if any channel changed; the
    /// calibration has then been restarted on the new model.
    pub(super) fn make_alike(&mut self) -> Result<bool, Error> {
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrating)?;
        calibration.settle()?;
        if calibration.done() == 0 {
            return Err(calibration
                .first_error()
                .map_or(Error::NoSamples, Error::from));
        }
        let strength = self.equalize.unwrap_or_default();
        let reaches = calibration.channel_abs_max();
        let reach = |value: &str| reaches.get(value).map(|reach| reach.greatest());
        let factors = Factors::find(&ready.model, reach, strength)?;
        let model = factors.applied(&ready.model)?;
        let any = !factors.is_empty();
        if any {
            // The planned engine runs the model before equalization.
            self.planned = None;
            let watched = Plan::observable(&ready.model)?;
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
        Some(&self.calibrated_alike()?.model)
    }

    fn calibrated_alike(&self) -> Option<&Equalized> {
        match self.found.as_ref()? {
            Found::Seen(_, _, equalized) => equalized.as_ref(),
            Found::Given(_) => None,
        }
    }

    /// The model that these settings quantize.
    pub(super) fn model_for(&self, settings: &Settings) -> Result<&Model, Error> {
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrated)?;
        if !settings.need_samples() {
            return Ok(&ready.model);
        }
        let alike = self.calibrated_alike();
        let (wanted, done) = (settings.equalizes(), alike.map(|alike| alike.strength));
        match wanted == done {
            true => Ok(alike.map_or(&ready.model, |alike| &alike.model)),
            false => Err(Error::OtherChannels { wanted, done }),
        }
    }

    /// Note on the equalization, as a sentence.
    pub(super) fn said_of_channels(&self, settings: &Settings) -> Option<String> {
        settings.equalizes()?;
        let (values, least, greatest) = self.calibrated_alike()?.factors.extent();
        let layers = if values == 1 {
            "layer makes"
        } else {
            "layers make"
        };
        Some(match values {
            0 => "no channels were made alike: nothing lies between layers whose weights could take their factors up".into(),
            _ => format!(
                "the channels of what {values} {layers} were made alike, by factors from {least:.3} to {greatest:.3}, which the \
                 weights around them take up"
            ),
        })
    }
}
