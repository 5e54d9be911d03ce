//! A search of the page before and while it runs, and the choices of the page.

use serde::Deserialize;

use crate::quantize::Settings;
use crate::search::{
    Amount, Bits, Budget, BudgetError, BudgetSearch, Metric, SearchOptions, SearchSample,
    Sensitivities,
};
use crate::tensor::Tensor;

/// The choices of the page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PageOptions {
    budget: String,
    metric: Option<Metric>,
    weight_bits: Option<Vec<Bits>>,
    activation_bits: Option<Vec<Bits>>,
    sensitivities: Option<String>,
    /// True to measure the times of layers in this browser.
    pub(super) profile: Option<bool>,
}

/// A search of a session: first its samples are added, then it makes steps.
pub(super) struct Searching {
    pub(super) settings: Settings,
    pub(super) options: SearchOptions,
    pub(super) profile: bool,
    pub(super) choosing: Vec<SearchSample>,
    pub(super) held: Vec<SearchSample>,
    pub(super) profiled: Option<Vec<Tensor>>,
    pub(super) begun: Option<BudgetSearch>,
}

impl PageOptions {
    pub(super) fn read(self) -> Result<SearchOptions, String> {
        let budget: Budget = self
            .budget
            .parse()
            .map_err(|e: BudgetError| e.to_string())?;
        if matches!(budget, Budget::Time(Amount::Absolute(_))) && self.profile != Some(true) {
            return Err(
                "a budget in milliseconds needs measured times: choose to measure them, or \
                        give a share such as time=60%"
                    .into(),
            );
        }
        let mut options = SearchOptions::new(budget);
        options.metric = self.metric;
        options.weights = self.weight_bits.unwrap_or(options.weights);
        options.activations = self.activation_bits.unwrap_or(options.activations);
        let file = self.sensitivities.as_deref().map(Sensitivities::read);
        options.sensitivities = file.transpose().map_err(|e| e.to_string())?;
        Ok(options)
    }
}
