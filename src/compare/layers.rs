//! The values of both models side by side in one engine, and the error of each layer.

use super::LayerError;
use super::combine::Combined;
use super::fake_quantization::FakeQuantization;
use super::value_statistics::{ValueStatistics, clamp_all};
use crate::graph::operators::{Operator, Property};
use crate::runtime::{Engine, EngineError};
use crate::tensor::Tensor;

/// The combined model and the differences of its values.
pub(super) struct Layers {
    pub(super) engine: Engine,
    pub(super) combined: Combined,
    pub(super) sums: Vec<ValueStatistics>,
}

impl Layers {
    /// Runs a sample and returns the outputs of both models.
    pub(super) fn feed(
        &mut self,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let (pairs, sums) = (&self.combined.pairs, &mut self.sums);
        let see = |slot: usize, values: &[&[f32]]| {
            let (pair, sums) = (&pairs[slot], &mut sums[slot]);
            if values.iter().any(|other| other.len() != values[0].len()) {
                sums.unlike = true;
                return;
            }
            let passed = pair.reader_clamp.map(|ends| clamp_all(values, ends));
            let passed: Option<Vec<&[f32]>> = passed
                .as_ref()
                .map(|all| all.iter().map(Vec::as_slice).collect());
            let values = passed.as_deref().unwrap_or(values);
            sums.observe(values[0], pair.rounding.as_ref());
            sums.accumulated.add(values[0], values[pair.accumulated]);
            for (place, sum) in [
                (pair.added, &mut sums.added),
                (pair.weights, &mut sums.weights),
                (pair.activations, &mut sums.activations),
            ] {
                if let Some(place) = place {
                    sum.add(values[0], values[place]);
                }
            }
        };
        self.engine.run_beside(inputs, see, stop)
    }

    /// The error of each layer, and the values whose number of elements differs.
    pub(super) fn errors(&self) -> (Vec<LayerError>, Vec<String>) {
        let seen = self.combined.pairs.iter().zip(&self.sums);
        let (unlike, seen): (Vec<_>, Vec<_>) = seen.partition(|(_, sums)| sums.unlike);
        let mut layers: Vec<LayerError> = seen
            .into_iter()
            .map(|(pair, sums)| {
                let moves = Operator::named(&pair.operator).has(Property::MovesData);
                LayerError {
                    layer: pair.layer.clone(),
                    operator: pair.operator.clone(),
                    value: pair.value.clone(),
                    rounded: pair.rounding.is_some(),
                    accumulated: sums.accumulated.metrics(),
                    added: pair.added.filter(|_| !moves).map(|_| sums.added.metrics()),
                    weights_only: pair.weights.map(|_| sums.weights.metrics().sqnr),
                    activations_only: pair.activations.map(|_| sums.activations.metrics().sqnr),
                    clipped: sums.outside as f64 / sums.count.max(1) as f64,
                    min: sums.ends.map_or(0.0, |(min, _)| min),
                    max: sums.ends.map_or(0.0, |(_, max)| max),
                    range: pair.rounding.as_ref().map(FakeQuantization::range),
                    harm: match moves {
                        true => 0.0,
                        // The float value is always zero, so the share is infinite. A cap of 100
                        // keeps the total finite.
                        false => sums.added.noise_share().min(100.0),
                    },
                }
            })
            .collect();
        let total: f64 = layers.iter().map(|layer| layer.harm).sum();
        for layer in layers.iter_mut().filter(|_| total > 0.0) {
            layer.harm /= total;
        }
        let unlike = unlike.into_iter().map(|(pair, _)| pair.value.clone());
        (layers, unlike.collect())
    }
}
