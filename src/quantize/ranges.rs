//! Where ranges come from: a calibration, or the person.

use std::collections::BTreeMap;

use super::settings::Representation;
use crate::calibrate::{Observations, Range};

/// The ranges of activations.
#[derive(Clone, Copy, Debug)]
pub enum Ranges<'a> {
    /// Ready, by the name of the value.
    Given(&'a BTreeMap<String, Range>),
    /// To be made of what a calibration saw, by the method that the settings name for the tensor.
    Seen(&'a Observations),
}

impl Ranges<'_> {
    /// The range of what was seen of `value`, for a tensor represented like this.
    pub(super) fn of(&self, value: &str, represented: &Representation) -> Option<Range> {
        match self {
            Ranges::Given(ranges) => ranges.get(value).copied(),
            Ranges::Seen(observations) => Some(represented.method.range(observations.get(value)?)),
        }
    }
}
