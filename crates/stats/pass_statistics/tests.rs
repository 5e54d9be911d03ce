//! Tests of the binary form and of merging.

use super::*;
use crate::Im2colView;

/// Statistics of two values, with everything that a first pass collects.
fn tensors(samples: &[Vec<f32>]) -> PassStatistics {
    let mut all = CalibrationStatistics::new();
    for name in ["x", "y"] {
        let mut stats = TensorStatistics::new();
        for sample in samples {
            let mut one = TensorStatistics::new();
            one.observe(sample);
            one.observe_channel_means(sample, &[1, 2, sample.len() / 2], 1);
            one.observe_abs_max(sample, &[1, 2, sample.len() / 2], 1);
            one.observe_variance(sample, &[1, 2, sample.len() / 2], 1);
            one.end_sample();
            stats.merge(&one);
        }
        all.insert(name.into(), stats);
    }
    PassStatistics::Tensors(all)
}

fn samples() -> Vec<Vec<f32>> {
    let sample =
        |at: usize| (0..64).map(move |i| ((i * 37 + at * 11) as f32).sin() * (at + 1) as f32);
    let mut samples: Vec<Vec<f32>> = (0..7).map(|at| sample(at).collect()).collect();
    samples[3][5] = f32::NAN;
    samples[4][7] = f32::NEG_INFINITY;
    samples
}

/// Edges and steps follow from all samples, as in a second pass.
fn histograms(samples: &[Vec<f32>], all: &TensorStatistics) -> PassStatistics {
    let layout = HistogramLayout {
        bins: 32,
        magnitudes: true,
    };
    let mut counted = NumpyHistogram::new(layout, all);
    samples.iter().for_each(|sample| counted.count(sample));
    PassStatistics::Histograms([("x".to_string(), counted)].into())
}

fn grams(samples: &[Vec<f32>], all: &TensorStatistics) -> PassStatistics {
    let mut gram = InputGram::new(Im2colView::Rows, all.magnitude());
    samples
        .iter()
        .for_each(|sample| gram.observe(sample, &[8, 8]));
    PassStatistics::InputGrams([("x".to_string(), vec![gram])].into())
}

fn first(statistics: &PassStatistics) -> TensorStatistics {
    match statistics {
        PassStatistics::Tensors(all) => all["x"].clone(),
        _ => unreachable!(),
    }
}

/// A pass over samples.
type Observation<'a> = &'a dyn Fn(&[Vec<f32>]) -> PassStatistics;

#[test]
fn parts_in_any_number_and_order_have_the_bytes_of_the_whole() {
    let samples = samples();
    let whole = tensors(&samples);
    let all = first(&whole);
    let passes: [(&PassStatistics, Observation); 3] = [
        (&whole, &|part| tensors(part)),
        (&histograms(&samples, &all), &|part| histograms(part, &all)),
        (&grams(&samples, &all), &|part| grams(part, &all)),
    ];
    for (whole, pass) in passes {
        for count in [1, 2, 3, 7, 64] {
            let part = |at: usize| -> Vec<Vec<f32>> {
                samples.iter().skip(at).step_by(count).cloned().collect()
            };
            let mut merged: Option<PassStatistics> = None;
            for at in (0..count).rev() {
                let stored = PassStatistics::from_bytes(&pass(&part(at)).bytes()).unwrap();
                match &mut merged {
                    None => merged = Some(stored),
                    Some(all) => all.merge(&stored).unwrap(),
                }
            }
            assert!(merged.unwrap().bytes() == whole.bytes(), "{count} parts");
        }
    }
}

#[test]
fn passes_that_differ_are_refused_by_name_and_nothing_changes() {
    let samples = samples();
    let whole = tensors(&samples);
    let all = first(&whole);
    let mut merged = whole.clone();
    let refused = merged.merge(&grams(&samples, &all)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "one holds tensors and the other gram-matrices"
    );
    let mut lacking = whole.clone();
    if let PassStatistics::Tensors(all) = &mut lacking {
        all.remove("y");
    }
    let refused = merged.merge(&lacking).unwrap_err();
    assert_eq!(refused, OtherStatistics::Value("y".into()));
    assert_eq!(merged, whole);
    let other = first(&tensors(&samples[..2]));
    for pass in [histograms, grams] {
        let refused = pass(&samples, &all).merge(&pass(&samples, &other));
        assert_eq!(refused.unwrap_err(), OtherStatistics::Edges("x".into()));
    }
}

#[test]
fn damaged_bytes_give_an_error_or_statistics_that_can_be_used() {
    let samples = samples();
    let whole = tensors(&samples);
    let all = first(&whole);
    for pass in [whole, histograms(&samples, &all), grams(&samples, &all)] {
        let bytes = pass.bytes();
        for end in 0..bytes.len() {
            assert!(PassStatistics::from_bytes(&bytes[..end]).is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            for change in [1, 0x40, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                let Ok(mut read) = PassStatistics::from_bytes(&damaged) else {
                    continue;
                };
                let _ = read.merge(&pass);
                if let PassStatistics::Tensors(all) = &read {
                    for stats in all.values() {
                        for method in ["auto", "mse", "entropy", "percentile", "moving-average"] {
                            let method: crate::Method = method.parse().unwrap();
                            let _ = method.range(stats, &crate::IntegerRange::default());
                        }
                    }
                }
            }
        }
    }
}
