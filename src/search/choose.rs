//! The curve of choices, its points, and the settings of a choice.

use schemars::JsonSchema;
use serde::Serialize;

use super::budget::{Budget, Metric};
use super::costs::{Costs, TimeSource};
use super::interval::Estimate;
use super::knapsack::{Candidate, Curve};
use super::sensitivities::Sensitivity;
use super::{Bits, Prefer, SearchOptions};
use crate::quantize::{GuardSettings, ScaleGroup, ScaleGroups, Settings, TensorSettings};

/// A point of the curve: a choice of bits for every tensor, with its costs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchPoint {
    /// Bytes of the file.
    pub bytes: f64,
    /// Bytes of the file over those of the float model.
    pub share_of_bytes: f64,
    /// Time of a run over that of the float model.
    pub share_of_time: f64,
    /// SQNR in decibels that the sensitivities predict.
    pub predicted_sqnr: f64,
    /// Number of tensors with 4 bits, 8 bits, 16 bits, and in float.
    pub counts: [usize; 4],
    /// Error on the samples that chose, if this point was measured.
    pub chosen_error: Option<Estimate>,
    /// SQNR in decibels on those samples.
    pub chosen_sqnr: Option<f64>,
}

/// The answer on a budget, from samples that neither calibrated nor chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BudgetVerdict {
    /// The whole interval is within the budget.
    Holds,
    /// The whole interval is beyond the budget.
    Fails,
    /// The interval holds the budget: so few samples can't decide.
    Undecidable,
    /// The budget is one of bytes, time or tensors; it is met by the choice itself.
    Met,
}

/// A quantized model with its errors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Chosen {
    /// Bytes of the file, measured.
    pub bytes: usize,
    /// Time of a run over that of the float model.
    pub share_of_time: f64,
    /// Tensors with more than 8 bits.
    pub wide: usize,
    /// Error on the held-out samples.
    pub held_error: Estimate,
    /// SQNR in decibels on the held-out samples.
    pub held_sqnr: f64,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// The budget, as it is written on the command line.
    pub budget: String,
    /// The limit on the error, if the budget is one.
    pub limit: Option<f64>,
    /// The metric of all errors.
    pub metric: Metric,
    /// The source of the times.
    pub times: TimeSource,
    /// Number of samples that chose, and number of held-out ones.
    pub samples: [usize; 2],
    /// The curve, from the cheapest point to the most accurate.
    pub points: Vec<SearchPoint>,
    /// Index of the chosen point.
    pub point: usize,
    /// The predicted noise that no choice within the same cost could go below, as SQNR in decibels.
    pub bound_sqnr: f64,
    /// The chosen model.
    pub chosen: Chosen,
    /// The model by the settings without a search, for comparison.
    pub without_search: Chosen,
    /// The verdict on the budget.
    pub verdict: BudgetVerdict,
    /// One sentence on the verdict.
    pub answer: String,
    /// About how many held-out samples would decide, if these can't.
    pub samples_needed: Option<usize>,
    /// Name of each tensor.
    pub tensors: Vec<String>,
    /// For each point, the bits of each tensor.
    pub bits: Vec<Vec<Bits>>,
    /// The settings of the chosen point.
    pub settings: Settings,
}

/// Decibels of a noise share.
pub fn decibels(noise: f64) -> f64 {
    match noise > 0.0 {
        true => (-10.0 * noise.log10()).clamp(-200.0, 200.0),
        false => 200.0,
    }
}

/// The candidates of the tensors and the curve through them.
pub struct Choices {
    /// For each tensor its bits, in the order of the curve's candidates.
    bits: Vec<Vec<Bits>>,
    curve: Curve,
    /// The bits of each tensor at each point of the curve.
    pub points: Vec<Vec<Bits>>,
    /// For a budget of wide tensors: the choice, which may lie beside the curve.
    pub within: Option<(Vec<Bits>, f64)>,
}

impl Choices {
    /// Lists candidates and computes the curve.
    pub fn new(
        groups: &[ScaleGroup],
        found: &[Sensitivity],
        costs: &Costs,
        float_bytes: f64,
        options: &SearchOptions,
    ) -> Choices {
        let wide = matches!(options.budget, Budget::Wide(_));
        let allowed = |group: &ScaleGroup, known: &Sensitivity, bits: Bits| {
            let wanted = match group.is_constant {
                true => options.weights.contains(&bits),
                false => options.activations.contains(&bits),
            };
            match bits {
                Bits::Eight | Bits::Sixteen if wide => true,
                // Integers can't represent a tensor that 16 bits don't help, such as masked scores.
                Bits::Float if wide => {
                    let noise = |bits: Bits| known.noise.get(&bits).copied().unwrap_or(0.0);
                    wanted && noise(Bits::Sixteen) > 0.5 * noise(Bits::Eight)
                }
                Bits::Four if wide => false,
                _ => wanted,
            }
        };
        let (size, speed) = match options.prefer {
            Prefer::Both => (1.0, 1.0),
            Prefer::Size => (1.0, 0.01),
            Prefer::Time => (0.01, 1.0),
        };
        let float_time = costs.float_time().max(f64::MIN_POSITIVE);
        let mut bits = Vec::new();
        let mut candidates = Vec::new();
        for (place, (group, known)) in groups.iter().zip(found).enumerate() {
            let all: Vec<Bits> = known
                .noise
                .keys()
                .copied()
                .filter(|&bits| allowed(group, known, bits))
                .collect();
            let all = match all.is_empty() {
                true => known.noise.keys().copied().take(1).collect(),
                false => all,
            };
            let bytes = |bits: Bits| match bits {
                // A float activation saves the bytes of its scale. That alone is no reason for floats.
                Bits::Float if !group.is_constant && all.contains(&Bits::Sixteen) => {
                    costs.bytes_of(place, Bits::Sixteen)
                }
                _ => costs.bytes_of(place, bits),
            };
            let candidate = |&bits: &Bits| {
                let time = known.time.get(&bits).copied().unwrap_or(0.0);
                let cost = match wide {
                    true => f64::from(u8::from(bits > Bits::Eight)),
                    false => size * bytes(bits) / float_bytes.max(1.0) + speed * time / float_time,
                };
                Candidate {
                    cost,
                    noise: known.noise[&bits],
                }
            };
            candidates.push(all.iter().map(candidate).collect());
            bits.push(all);
        }
        let curve = Curve::new(candidates);
        let of = |choice: &[usize]| -> Vec<Bits> {
            choice.iter().zip(&bits).map(|(&at, all)| all[at]).collect()
        };
        let points = (0..curve.len())
            .map(|state| of(&curve.choice(state)))
            .collect();
        let within = match options.budget {
            Budget::Wide(count) => curve.within(count as f64).map(|found| {
                let choice = of(&found.choice);
                (choice, found.bound)
            }),
            _ => None,
        };
        Choices {
            within,
            points,
            curve,
            bits,
        }
    }

    /// The predicted noise of a choice.
    pub fn noise(&self, choice: &[Bits]) -> f64 {
        let at = |(all, bits): (&Vec<Bits>, &Bits)| all.iter().position(|b| b == bits).unwrap_or(0);
        let places: Vec<usize> = self.bits.iter().zip(choice).map(at).collect();
        self.curve.totals(&places).noise
    }
}

/// Counts of a choice, by bits.
pub fn counts(choice: &[Bits]) -> [usize; 4] {
    Bits::ALL.map(|bits| choice.iter().filter(|chosen| **chosen == bits).count())
}

/// The settings in which every tensor has its type without mixed precision.
pub fn without_rules(base: &Settings, infinite: &[String]) -> Settings {
    let mut settings = base.clone();
    settings.guard = GuardSettings {
        ranges: base.guard.ranges,
        ..GuardSettings::NONE
    };
    settings.fine_first = Some(0);
    for name in infinite {
        settings.tensors.entry(name.clone()).or_default().float = Some(true);
    }
    settings
}

/// The settings of a choice: those without rules, and each tensor whose bits differ.
pub fn settings_of(base: &Settings, groups: &ScaleGroups, choice: &[(String, Bits)]) -> Settings {
    let mut settings = without_rules(base, &groups.infinite);
    for (name, bits) in choice {
        let Some(group) = groups.groups.iter().find(|group| group.name == *name) else {
            continue;
        };
        let wanted = match bits {
            Bits::Float => TensorSettings {
                float: Some(true),
                ..TensorSettings::default()
            },
            bits if bits.count() == group.element.bits() => continue,
            bits => TensorSettings {
                element: group.element.with_bits(bits.count()),
                ..TensorSettings::default()
            },
        };
        let own = settings.tensors.entry(name.clone()).or_default();
        own.element = wanted.element.or(own.element);
        own.float = wanted.float.or(own.float);
    }
    settings
}
