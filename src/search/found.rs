//! The curve of a search that has ended, without its samples and values.

use super::choose::{SearchResult, settings_of};
use super::run::BudgetSearch;
use super::sensitivities::Sensitivities;
use crate::quantize::{ScaleGroups, Settings};

/// The curve of a search, with the settings of each point.
pub struct FoundCurve {
    /// The result.
    pub result: SearchResult,
    /// The sensitivities by which it was found.
    pub sensitivities: Sensitivities,
    base: Settings,
    groups: ScaleGroups,
}

impl FoundCurve {
    /// The settings of a point of the curve.
    pub fn settings_of(&self, point: usize) -> Option<Settings> {
        let names = self.result.tensors.iter().cloned();
        let bits = self.result.bits.get(point)?.iter().copied();
        let choice: Vec<_> = names.zip(bits).collect();
        Some(settings_of(&self.base, &self.groups, &choice))
    }
}

impl BudgetSearch {
    /// The curve, once the search is done; samples, float values and models are dropped.
    pub fn into_curve(self, name: &str) -> Option<FoundCurve> {
        let sensitivities = self.sensitivities(name)?;
        let (result, _) = self.result?;
        Some(FoundCurve {
            result,
            sensitivities,
            groups: self.known?.groups,
            base: self.base,
        })
    }
}
