//! Where ranges come from: a calibration, or the person.

use std::collections::BTreeMap;

use super::settings::{Representation, Settings};
use crate::calibrate::{Method, Observations, Range, SecondPassMissing};

/// The ranges of activations.
#[derive(Clone, Copy, Debug)]
pub enum Ranges<'a> {
    /// Ready, by the name of the value.
    Given(&'a BTreeMap<String, Range>),
    /// To be made of what a calibration saw, by the method that the settings name for the tensor, or else by
    /// this one.
    Seen(&'a Observations, Method),
}

impl Ranges<'_> {
    /// The method that finds them where nothing else is said of a tensor; `None` where they come from elsewhere.
    pub(super) fn method(&self, settings: &Settings) -> Option<Method> {
        match self {
            Ranges::Given(_) => None,
            Ranges::Seen(_, method) => Some(settings.method.unwrap_or(*method)),
        }
    }

    /// The method that finds the range of a tensor that is represented like this; `None` where it comes from elsewhere.
    pub(super) fn method_of(&self, represented: &Representation) -> Option<Method> {
        match self {
            Ranges::Given(_) => None,
            Ranges::Seen(_, method) => Some(represented.method.unwrap_or(*method)),
        }
    }

    /// The range of `value` for a tensor that is represented like this; `None` where nothing is known of it.
    pub(super) fn of(
        &self,
        value: &str,
        represented: &Representation,
    ) -> Result<Option<Range>, SecondPassMissing> {
        match self {
            Ranges::Given(ranges) => Ok(ranges.get(value).copied()),
            Ranges::Seen(observations, method) => {
                let method = represented.method.unwrap_or(*method);
                let seen = observations.get(value);
                seen.map(|seen| method.range(seen, &represented.target()))
                    .transpose()
            }
        }
    }
}
