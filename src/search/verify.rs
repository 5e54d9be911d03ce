//! Verification of a choice on the samples that were held out, and the answer on the budget.

use std::collections::HashMap;

use super::budget::Metric;
use super::choose::{BudgetVerdict, Chosen, SearchPoint, SearchResult, counts, decibels};
use super::divided::PendingPass;
use super::interval::{Estimate, wilson};
use super::judge::SampleSums;
use super::measurements::{Half, JudgedModel};
use super::run::{BudgetSearch, SearchStage};
use super::tensors::SearchTensor;
use super::{Bits, SearchError, SearchedModel};
use crate::onnx::schema::DataType;
use crate::quantize::{Quantized, Settings};

impl BudgetSearch {
    /// An error in the words of its metric.
    pub(super) fn in_words(&self, error: f64) -> String {
        match self.metric {
            Metric::Labels => format!("{:.2} % of the answers lost", 100.0 * error),
            Metric::Agreement => format!("{:.2} % of the answers changed", 100.0 * error),
            Metric::Kl => format!("a KL divergence of {error:.4}"),
            Metric::Sqnr => format!("{:.1} dB", decibels(error)),
        }
    }

    /// Verifies the choice on the held-out samples and writes the result.
    pub(super) fn finish(
        &mut self,
        model: &dyn SearchedModel,
        choice: &[Bits],
        settings: &Settings,
        bound_sqnr: f64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SearchError> {
        let quantized = model.quantize(settings)?;
        let plain = model.quantize(&self.base)?;
        let errors = match &self.shared {
            Some(shared) => [JudgedModel::Chosen, JudgedModel::Plain]
                .map(|judged| shared.known.errors(Half::Held, judged)),
            None => [
                Some(self.errors(&quantized, Half::Held, stop)?),
                Some(self.errors(&plain, Half::Held, stop)?),
            ],
        };
        let [Some(chosen), Some(without_search)] = errors else {
            let models = vec![
                (JudgedModel::Chosen, settings.clone()),
                (JudgedModel::Plain, self.base.clone()),
            ];
            let half = Half::Held;
            self.wait_for(PendingPass::Errors { half, models });
            return Ok(());
        };
        let samples = [self.counts()[0], chosen.len()];
        let chosen = self.verified(model, &quantized, &chosen)?;
        let without_search = self.verified(model, &plain, &without_search)?;
        let (known, choices) = (self.known()?, self.choices()?);
        let mut all = choices.points.clone();
        let point = match all.iter().position(|point| point == choice) {
            Some(point) => point,
            // A choice beside the curve takes its place by its predicted noise.
            None => {
                let noise = choices.noise(choice);
                let at = all.iter().position(|point| choices.noise(point) < noise);
                let at = at.unwrap_or(all.len());
                all.insert(at, choice.to_vec());
                at
            }
        };
        let on_curve = all.len() == choices.points.len();
        let float_bytes = model.float_bytes().max(1) as f64;
        let float_time = known.costs.float_time().max(f64::MIN_POSITIVE);
        let describe = |(index, choice): (usize, &Vec<Bits>)| {
            let measured = self.measured_points.get(&index).filter(|_| on_curve);
            let bytes = known.costs.bytes(choice);
            SearchPoint {
                bytes,
                share_of_bytes: bytes / float_bytes,
                share_of_time: known.costs.time(choice) / float_time,
                predicted_sqnr: decibels(choices.noise(choice)),
                counts: counts(choice),
                chosen_error: measured.map(|(error, _)| *error),
                chosen_sqnr: measured.map(|(_, sqnr)| *sqnr),
            }
        };
        let limit = self.options.budget.error_limit();
        let (verdict, samples_needed) = self.verdict(limit, &chosen.held_error, samples[1]);
        let result = SearchResult {
            budget: self.options.budget.to_string(),
            limit,
            metric: self.metric,
            times: known.times,
            samples,
            points: all.iter().enumerate().map(describe).collect(),
            point,
            bound_sqnr,
            answer: self.answer(verdict, &chosen, samples[1], samples_needed),
            chosen,
            without_search,
            verdict,
            samples_needed,
            tensors: known
                .tensors
                .iter()
                .map(|tensor| tensor.group.name.clone())
                .collect(),
            bits: all,
            settings: settings.clone(),
        };
        self.result = Some((result, quantized));
        self.stage = SearchStage::Done;
        Ok(())
    }

    fn verified(
        &self,
        model: &dyn SearchedModel,
        quantized: &Quantized,
        errors: &[SampleSums],
    ) -> Result<Chosen, SearchError> {
        let (held_error, held_sqnr) = self.estimate(errors)?;
        let wide = quantized.tensors.iter().filter(|t| {
            let bits = t.element.bits().unwrap_or(0);
            bits == 16
        });
        let names: std::collections::BTreeSet<&str> = wide.map(|t| t.name.as_str()).collect();
        let costs = &self.known()?.costs;
        Ok(Chosen {
            bytes: model.file_bytes(quantized)?,
            share_of_time: costs.time(&self.bits_of(quantized)?)
                / costs.float_time().max(f64::MIN_POSITIVE),
            wide: names.len(),
            held_error,
            held_sqnr,
        })
    }

    /// The bits of each tensor of the search in a quantized model.
    fn bits_of(&self, quantized: &Quantized) -> Result<Vec<Bits>, SearchError> {
        let elements: HashMap<&str, DataType> = quantized
            .tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor.element))
            .collect();
        let bits = |tensor: &SearchTensor| match elements.get(tensor.group.name.as_str()) {
            Some(element) => match element.bits() {
                Some(16) => Bits::Sixteen,
                Some(5..) => Bits::Eight,
                _ => Bits::Four,
            },
            None => Bits::Float,
        };
        Ok(self.known()?.tensors.iter().map(bits).collect())
    }

    fn verdict(
        &self,
        limit: Option<f64>,
        found: &Estimate,
        held: usize,
    ) -> (BudgetVerdict, Option<usize>) {
        let Some(limit) = limit else {
            return (BudgetVerdict::Met, None);
        };
        if found.high <= limit {
            return (BudgetVerdict::Holds, None);
        }
        if found.low > limit {
            return (BudgetVerdict::Fails, None);
        }
        let counted = matches!(self.metric, Metric::Labels | Metric::Agreement);
        let needed = (counted && found.value < limit).then(|| {
            let decides = |samples: &usize| {
                let whole = *samples as f64;
                wilson(found.value.max(0.0) * whole, whole).high <= limit
            };
            let mut sizes = (0..40).map(|power| held.max(1) << power.min(40));
            sizes.find(decides)
        });
        (BudgetVerdict::Undecidable, needed.flatten())
    }

    fn answer(
        &self,
        verdict: BudgetVerdict,
        chosen: &Chosen,
        held: usize,
        needed: Option<usize>,
    ) -> String {
        let error = &chosen.held_error;
        let (worst, best) = (self.in_words(error.high), self.in_words(error.low));
        let found = format!(
            "{held} held-out samples show {}, with 95 % confidence no better than {best} and no worse than {worst}",
            self.in_words(error.value)
        );
        let budget = self.options.budget;
        match verdict {
            BudgetVerdict::Holds => format!("The budget {budget} holds: {found}."),
            BudgetVerdict::Fails => format!(
                "The budget {budget} does not hold: {found}. Choose a more accurate point, or give more samples."
            ),
            BudgetVerdict::Undecidable => {
                let more = needed.map_or(String::new(), |needed| {
                    format!(" About {needed} such samples would decide.")
                });
                format!("The budget {budget} is not decidable with so few samples: {found}.{more}")
            }
            BudgetVerdict::Met => format!("The choice keeps the budget {budget}: {found}."),
        }
    }
}
