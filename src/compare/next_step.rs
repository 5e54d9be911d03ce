//! The next steps after a verdict, by the cause of the error.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::LayerError;
use super::evidence::Evidence;
use super::verdict::{Decision, Measured, QualityMeasure};

/// A remedy, from the settings or the samples.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "step", rename_all = "camelCase")]
pub enum NextStep {
    /// Compare on at least this many samples: if they are like these, they decide.
    AddSamples {
        /// Number of samples in all.
        samples: usize,
    },
    /// Give the activations of these layers 16 bits.
    WiderActivations {
        /// Titles of the layers, the worst first.
        layers: Vec<String>,
        /// Their share of the error.
        share: f64,
    },
    /// Keep these layers float.
    KeepFloat {
        /// Titles of the layers, the worst first.
        layers: Vec<String>,
        /// Their share of the error.
        share: f64,
    },
    /// Choose the range of each tensor by the measured error: the method `auto`.
    AutoRanges,
    /// Give all activations 16 bits.
    WiderModel,
}

impl NextStep {
    /// The change of the settings document; `None` for a step that changes none.
    pub fn settings(&self) -> Option<Value> {
        let by_node = |layers: &[String], change: Value| {
            let each = layers.iter().map(|layer| (layer.clone(), change.clone()));
            json!({ "by_node": each.collect::<Map<String, Value>>() })
        };
        match self {
            NextStep::AddSamples { .. } => None,
            NextStep::WiderActivations { layers, .. } => {
                Some(by_node(layers, json!({ "activations": { "type": "u16" } })))
            }
            NextStep::KeepFloat { layers, .. } => Some(by_node(layers, json!({ "float": true }))),
            NextStep::AutoRanges => Some(json!({ "method": "auto" })),
            NextStep::WiderModel => Some(json!({ "activations": { "type": "u16" } })),
        }
    }
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = |layers: &[String], share: f64| {
            let them = if layers.len() == 1 {
                "it causes"
            } else {
                "they cause"
            };
            format!(
                "{}: {them} {:.0} % of the error",
                layers.join(", "),
                share * 100.0
            )
        };
        match self {
            NextStep::AddSamples { samples } => {
                write!(f, "compare on at least {samples} samples")
            }
            NextStep::WiderActivations { layers, share } => {
                write!(
                    f,
                    "use 16 bits for the activations of {}",
                    cause(layers, *share)
                )
            }
            NextStep::KeepFloat { layers, share } => {
                write!(f, "keep float {}", cause(layers, *share))
            }
            NextStep::AutoRanges => f.write_str("choose the range of each tensor by its error"),
            NextStep::WiderModel => f.write_str("use 16 bits for all activations"),
        }
    }
}

/// Share of the error that a few layers must cause, and the number of layers that are few.
const MOST: f64 = 0.5;
const FEW: usize = 3;
/// Limit on the samples that are asked for.
const MAX_SAMPLES: usize = 20_000;

pub(super) fn next_steps(
    measured: &Measured,
    decision: Decision,
    layers: &[LayerError],
) -> Vec<NextStep> {
    if decision == Decision::Ship {
        return Vec::new();
    }
    let samples = enough(measured).map(|samples| NextStep::AddSamples { samples });
    samples.into_iter().chain(by_layers(layers)).collect()
}

/// The number of samples that would show the required value, if more samples are like these.
fn enough(measured: &Measured) -> Option<usize> {
    let missing = measured.margin(measured.value) >= 0.0;
    if !missing || measured.decision() != Decision::Look {
        return None;
    }
    // The distance to the worse end shrinks with the root of the number of samples.
    let mut samples = measured.samples;
    while samples <= MAX_SAMPLES {
        samples += (samples / 20).max(1);
        if decides(measured, samples) {
            return Some(samples);
        }
    }
    None
}

/// True if so many samples with the same value and spread would show the required value.
fn decides(measured: &Measured, samples: usize) -> bool {
    let scale = samples as f64 / measured.samples as f64;
    let required = measured.measure.limits().0;
    match (measured.measure, measured.interval) {
        (QualityMeasure::Agreement | QualityMeasure::Boxes, _) => {
            Evidence::repeated(measured.value, samples).0 >= required
        }
        (QualityMeasure::AccuracyChange, Some((low, _))) if measured.value == 0.0 => {
            // Without a change, the interval shrinks with the number itself.
            low / scale >= required
        }
        (_, Some((low, high))) => {
            let worse = match measured.measure {
                QualityMeasure::PerplexityRatio => high,
                _ => low,
            };
            measured.margin(measured.value + (worse - measured.value) / scale.sqrt()) >= 0.0
        }
        // One sample shows no spread; two do.
        (_, None) => true,
    }
}

fn by_layers(layers: &[LayerError]) -> Vec<NextStep> {
    let mut worst: Vec<&LayerError> = layers.iter().filter(|layer| layer.harm > 0.0).collect();
    worst.sort_by(|a, b| b.harm.total_cmp(&a.harm));
    let few = &worst[..worst.len().min(FEW)];
    let mut share = 0.0;
    let mut named = 0;
    for layer in few {
        if share < MOST {
            share += layer.harm;
            named += 1;
        }
    }
    let mut steps = Vec::new();
    if named > 0 && share >= MOST {
        let few = &few[..named];
        let layers: Vec<String> = few.iter().map(|layer| layer.layer.clone()).collect();
        // The lower SQNR has the more noise.
        let by_activations =
            |layer: &&LayerError| match (layer.weights_only, layer.activations_only) {
                (Some(weights), Some(activations)) => activations < weights,
                _ => layer.rounded,
            };
        if few.iter().all(by_activations) {
            let layers = layers.clone();
            steps.push(NextStep::WiderActivations { layers, share });
        }
        steps.push(NextStep::KeepFloat { layers, share });
    }
    steps.extend([NextStep::AutoRanges, NextStep::WiderModel]);
    steps
}
