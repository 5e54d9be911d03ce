//! The error of a quantized model's outputs, sample by sample.
//!
//! Each sample gives sums, so that any set of samples has its error and its interval without
//! another run.

use super::budget::Metric;
use super::interval::{Estimate, bootstrap, paired, wilson};
use crate::compare::{OutputKind, OutputTraits, floats, greatest, shape_of_rows};
use crate::graph::Model;
use crate::graph::operators::{Operator, Property};
use crate::tensor::Tensor;

/// The sums of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleSums {
    /// Power of the difference over that of the output, summed over the outputs.
    noise: f64,
    /// Number of outputs with a power.
    outputs: f64,
    /// Rows of class scores.
    rows: f64,
    /// Rows with another first class.
    other: f64,
    /// Sum of the KL divergences of the rows.
    kl: f64,
    /// 1 if the sample has a label.
    labelled: f64,
    /// 1 if only the float model is right.
    lost: f64,
    /// 1 if only the quantized model is right.
    won: f64,
}

impl SampleSums {
    /// Number of sums.
    pub const COUNT: usize = 8;

    /// All sums, in a fixed order.
    pub fn numbers(&self) -> [f64; Self::COUNT] {
        [
            self.noise,
            self.outputs,
            self.rows,
            self.other,
            self.kl,
            self.labelled,
            self.lost,
            self.won,
        ]
    }

    /// The sums of [`SampleSums::numbers`].
    pub fn of(numbers: [f64; Self::COUNT]) -> SampleSums {
        let [noise, outputs, rows, other, kl, labelled, lost, won] = numbers;
        SampleSums {
            noise,
            outputs,
            rows,
            other,
            kl,
            labelled,
            lost,
            won,
        }
    }
}

/// Judges the outputs of a model by their kinds.
pub struct Judge {
    outputs: Vec<(OutputTraits, bool)>,
}

impl Judge {
    /// Reads the kinds of the outputs from the graph.
    pub fn new(model: &Model) -> Judge {
        let squashes = |name: Option<&str>| {
            let maker = name.and_then(|name| model.graph.producer(name));
            maker.is_some_and(|maker| {
                Operator::of(&model.graph.nodes()[maker]).has(Property::Squashes)
            })
        };
        let traits = OutputTraits::all(model).into_iter();
        let ports = model.graph.outputs().iter();
        let squashed = ports.map(|port| squashes(port.name.as_deref()));
        Judge {
            outputs: traits.zip(squashed).collect(),
        }
    }

    /// True if some output of these shapes holds class scores.
    pub fn has_classes(&self, outputs: &[Tensor]) -> bool {
        let mut both = self.outputs.iter().zip(outputs);
        both.any(|((traits, _), tensor)| classes(traits, tensor.shape()).is_some())
    }

    /// For each output of these shapes, if it can be judged.
    pub fn judged(&self, outputs: &[Tensor]) -> Vec<bool> {
        let both = self.outputs.iter().zip(outputs);
        both.map(|((traits, _), tensor)| traits.kind(tensor.shape()).is_judged())
            .collect()
    }

    /// Compares the outputs of both models on a sample. `label` is its class, if known.
    pub fn compare(&self, float: &[Tensor], other: &[Tensor], label: Option<usize>) -> SampleSums {
        let mut sums = SampleSums::default();
        for ((traits, squashed), (a, b)) in self.outputs.iter().zip(float.iter().zip(other)) {
            if !traits.kind(a.shape()).is_judged() || a.shape() != b.shape() {
                continue;
            }
            let (first, second) = (floats(a), floats(b));
            let (noise, signal) = powers(&first, &second);
            if signal > 0.0 {
                sums.noise += noise / signal;
                sums.outputs += 1.0;
            }
            let Some(width) = classes(traits, a.shape()) else {
                continue;
            };
            for (a, b) in first.chunks(width).zip(second.chunks(width)) {
                let (best, chosen) = (greatest(a), greatest(b));
                sums.rows += 1.0;
                sums.other += f64::from(u8::from(best != chosen));
                sums.kl += divergence(a, b, *squashed);
                if let Some(label) = label.filter(|_| first.len() == width) {
                    sums.labelled = 1.0;
                    sums.lost += f64::from(u8::from(best == label && chosen != label));
                    sums.won += f64::from(u8::from(best != label && chosen == label));
                }
            }
        }
        sums
    }
}

/// The number of classes of an output that holds class scores.
fn classes(traits: &OutputTraits, shape: &[usize]) -> Option<usize> {
    let width = match (traits.kind(shape), shape_of_rows(shape)) {
        (OutputKind::Classes, &[_, width]) | (OutputKind::Steps, &[_, _, width]) => width,
        _ => return None,
    };
    (width > 1).then_some(width)
}

/// Power of the difference and of the signal. Values that are not finite in `float` don't count; in
/// `other` they are zero.
pub fn powers(float: &[f32], other: &[f32]) -> (f64, f64) {
    let (mut noise, mut signal) = (0.0, 0.0);
    for (&a, &b) in float.iter().zip(other) {
        if !a.is_finite() {
            continue;
        }
        let b = if b.is_finite() { b } else { 0.0 };
        let apart = f64::from(a) - f64::from(b);
        noise += apart * apart;
        signal += f64::from(a) * f64::from(a);
    }
    (noise, signal)
}

/// KL divergence of two rows of scores; `squashed` rows are probabilities already.
fn divergence(float: &[f32], other: &[f32], squashed: bool) -> f64 {
    // The least probability that counts, so that a zero of the quantized model is not infinite.
    const LEAST: f64 = 1e-9;
    let shares = |row: &[f32]| -> Vec<f64> {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let value = |&x: &f32| match squashed {
            true => f64::from(x).max(0.0),
            false => f64::from(x - most).exp(),
        };
        let values: Vec<f64> = row.iter().map(value).collect();
        let sum: f64 = values.iter().sum();
        values
            .iter()
            .map(|v| (v / sum.max(LEAST)).max(LEAST))
            .collect()
    };
    let (p, q) = (shares(float), shares(other));
    let sum: f64 = p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum();
    sum.max(0.0)
}

/// The error of samples by a metric, with its interval; `None` if no sample shows it.
pub fn estimate(samples: &[SampleSums], metric: Metric) -> Option<Estimate> {
    let sum = |of: fn(&SampleSums) -> f64| samples.iter().map(of).sum::<f64>();
    let pairs = |noise: fn(&SampleSums) -> f64, signal: fn(&SampleSums) -> f64| {
        let pairs: Vec<_> = samples.iter().map(|s| (noise(s), signal(s))).collect();
        bootstrap(&pairs)
    };
    match metric {
        Metric::Labels => {
            let whole = sum(|s| s.labelled);
            (whole > 0.0)
                .then(|| paired(sum(|s| s.lost) as u64, sum(|s| s.won) as u64, whole as u64))
        }
        Metric::Agreement => {
            let (other, rows) = (sum(|s| s.other), sum(|s| s.rows));
            (rows > 0.0).then(|| {
                let simple = wilson(other, rows);
                // The rows of one sample are alike, so the samples are drawn too.
                match samples.iter().any(|s| s.rows > 1.0) {
                    true => {
                        let drawn = pairs(|s| s.other, |s| s.rows);
                        Estimate {
                            value: simple.value,
                            low: simple.low.min(drawn.low),
                            high: simple.high.max(drawn.high.min(1.0)),
                            high_of_others: simple.high_of_others.max(drawn.high_of_others),
                        }
                    }
                    false => simple,
                }
            })
        }
        Metric::Kl => (sum(|s| s.rows) > 0.0).then(|| pairs(|s| s.kl, |s| s.rows)),
        Metric::Sqnr => (sum(|s| s.outputs) > 0.0).then(|| pairs(|s| s.noise, |s| s.outputs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Values;
    use octet_test_models::networks;

    fn row(values: &[f32]) -> Tensor {
        Tensor::new(vec![1, values.len()], Values::F32(values.to_vec())).unwrap()
    }

    #[test]
    fn answers_probabilities_and_powers_are_compared() {
        let model = Model::from_proto(networks::classifier(&["1", "3", "8", "8"])).unwrap();
        let judge = Judge::new(&model);
        let (right, wrong) = (
            row(&[0.7, 0.2, 0.1, 0.0, 0.0]),
            row(&[0.2, 0.7, 0.1, 0.0, 0.0]),
        );
        assert!(judge.has_classes(std::slice::from_ref(&right)));
        let compare = |other: &Tensor, label| {
            judge.compare(
                std::slice::from_ref(&right),
                std::slice::from_ref(other),
                label,
            )
        };
        let same = compare(&right, Some(0));
        assert_eq!(
            (same.other, same.lost, same.won, same.noise),
            (0.0, 0.0, 0.0, 0.0)
        );
        let lost = compare(&wrong, Some(0));
        assert_eq!((lost.other, lost.lost, lost.won), (1.0, 1.0, 0.0));
        assert!((lost.kl - 0.5 * (3.5f64).ln()).abs() < 1e-6, "{}", lost.kl);
        assert!((lost.noise - 0.5 / 0.54).abs() < 1e-6, "{}", lost.noise);
        let won = compare(&wrong, Some(1));
        assert_eq!((won.lost, won.won), (0.0, 1.0));
        let all = [same, lost, won];
        let labels = estimate(&all, Metric::Labels).unwrap();
        assert_eq!(labels.value, 0.0);
        let agreement = estimate(&all, Metric::Agreement).unwrap();
        assert!((agreement.value - 2.0 / 3.0).abs() < 1e-9 && agreement.high < 1.0);
        assert!(estimate(&all, Metric::Kl).unwrap().value > 0.1);
        assert_eq!(estimate(&[compare(&wrong, None)], Metric::Labels), None);
    }
}
