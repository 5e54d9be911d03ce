//! Samples that start one by one on threads give the same statistics as samples in batches.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use octet::calibrate::run::{CalibrationRun, ExtraPass, FeedError, WatchedValue};
use octet::graph::Dim;
use octet::onnx::schema::DataType;
use octet::runtime::Engine;
use octet::samples::{self, BadSamples, Encoded, InputSpec};
use octet::stats::{CalibrationStatistics, Method};

const SAMPLES: usize = 12;

fn input() -> InputSpec {
    InputSpec {
        name: "x".into(),
        element: DataType::Float,
        shape: [1, 4, 9].map(Dim::Known).to_vec(),
    }
}

fn calibration() -> CalibrationRun {
    reading(BadSamples::Skip)
}

fn reading(bad_samples: BadSamples) -> CalibrationRun {
    let nodes = vec![octet_test_models::node("Sigmoid", &["x"], "y")];
    let watched = ["x", "y"].map(String::from).to_vec();
    let model = octet_test_models::model(nodes, vec![], &["y"]);
    let engine = Arc::new(Engine::new(model, watched.clone()));
    // Includes channel means, channel variances and greatest magnitudes per channel of `x`.
    let watched = watched.into_iter().zip([Some(1), None]);
    let watched = watched.map(|(name, axis)| WatchedValue {
        name,
        channel_means: axis,
        channel_abs_max: axis,
        channel_variance: axis,
    });
    let settings = samples::SampleSettings {
        bad_samples,
        ..samples::SampleSettings::default()
    };
    CalibrationRun::new(
        engine,
        watched.collect(),
        vec![input()],
        settings,
        Box::new(|_, _| {}),
    )
}

fn encoded() -> Vec<Encoded> {
    (0..SAMPLES as u64)
        .map(|index| samples::demo(&[input()], &BTreeMap::new(), 7, index).unwrap())
        .collect()
}

fn fed() -> CalibrationStatistics {
    let mut calibration = calibration();
    calibration
        .feed(encoded(), |_, _| {}, || false)
        .expect("the samples fit");
    calibration.finish().expect("there was one pass only")
}

/// Starts each sample in a pool of `threads` threads, waits for all, and returns the number
/// started.
fn begin_all(calibration: &mut CalibrationRun, samples: Vec<Encoded>, threads: usize) -> usize {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads can be had");
    let (ended, end) = mpsc::channel();
    let begun = pool.install(|| {
        samples
            .into_iter()
            .filter(|sample| {
                let ended = ended.clone();
                let tell = move || ended.send(()).expect("it is waited for");
                calibration.begin(sample.clone(), |_, _| {}, || false, tell)
            })
            .count()
    });
    for _ in 0..begun {
        end.recv().expect("each sample ends");
    }
    begun
}

#[test]
fn ranges_so_far_cover_the_completed_samples() {
    let mut calibration = calibration();
    let nothing = [("x", None), ("y", None)];
    assert_eq!(calibration.so_far(), nothing);
    let mut last = None;
    for sample in encoded() {
        calibration
            .feed(vec![sample], |_, _| {}, || false)
            .expect("the sample fits");
        let seen = calibration.so_far();
        let [("x", Some(x)), ("y", Some(y))] = seen[..] else {
            panic!("both were seen: {seen:?}");
        };
        assert!((0.0..=1.0).contains(&y.min) && y.max <= 1.0);
        if let Some((min, max)) = last {
            assert!(x.min <= min && x.max >= max, "ranges only widen");
        }
        last = Some((x.min, x.max));
    }
    let found = calibration.finish().expect("there was one pass only");
    let whole = found.get("x").expect("it was watched");
    assert_eq!(last, whole.min().zip(whole.max()));
}

#[test]
fn any_number_of_threads_gives_the_result_of_batches() {
    for threads in [1, 2, 4] {
        let mut calibration = calibration();
        assert_eq!(begin_all(&mut calibration, encoded(), threads), SAMPLES);
        calibration.settle().expect("the samples fit");
        assert_eq!(calibration.done(), SAMPLES);
        assert_eq!(calibration.finish().unwrap(), fed(), "{threads} threads");
    }
}

/// The samples, of which the third and the fifth are damaged.
fn with_bad_ones() -> Vec<Encoded> {
    let mut samples = encoded();
    for bad in [2, 4] {
        samples[bad].name = format!("bad {bad}");
        samples[bad].parts[0].1 = b"not an array".as_slice().into();
    }
    samples
}

#[test]
fn bad_samples_are_skipped_by_name_and_do_not_change_the_result() {
    let good: Vec<Encoded> = with_bad_ones()
        .into_iter()
        .filter(|sample| !sample.name.starts_with("bad"))
        .collect();
    let mut alone = calibration();
    alone.feed(good, |_, _| {}, || false).unwrap();
    let alone = alone.finish().unwrap();
    for threads in [1, 3] {
        let mut calibration = calibration();
        let begun = begin_all(&mut calibration, with_bad_ones(), threads);
        calibration.settle().unwrap();
        assert_eq!((begun, calibration.done()), (SAMPLES, SAMPLES - 2));
        let skipped = calibration.skipped();
        let names: Vec<&str> = skipped.iter().map(|one| one.sample.as_str()).collect();
        assert_eq!(names, ["bad 2", "bad 4"]);
        assert!(skipped[0].reason.contains("not a tensor"), "{skipped:?}");
        assert_eq!(calibration.finish().unwrap(), alone, "{threads} threads");
    }
}

#[test]
fn an_extra_pass_skips_the_samples_that_the_first_skipped() {
    let mut calibration = calibration();
    let feed = |calibration: &mut CalibrationRun| {
        let (first, second) = (with_bad_ones(), with_bad_ones().split_off(3));
        let first = first.into_iter().take(3).collect();
        calibration.feed(first, |_, _| {}, || false).unwrap();
        calibration.feed(second, |_, _| {}, || false).unwrap();
    };
    feed(&mut calibration);
    let layout = "ort-percentile".parse::<Method>().unwrap().second_pass();
    let further = ExtraPass::Histograms(layout.expect("it counts"));
    calibration.begin_pass(further).unwrap();
    feed(&mut calibration);
    assert_eq!(calibration.skipped().len(), 2);
    assert!(calibration.finish().is_ok());
}

#[test]
fn without_any_completed_sample_the_first_error_is_returned() {
    let mut calibration = calibration();
    let bad = with_bad_ones().into_iter();
    let bad = bad
        .filter(|sample| sample.name.starts_with("bad"))
        .collect();
    calibration.feed(bad, |_, _| {}, || false).unwrap();
    let why = calibration.first_error().expect("something was bad");
    assert!(why.to_string().contains("bad 2"), "{why}");
}

#[test]
fn the_first_bad_sample_is_named_and_no_other_starts_after_it() {
    for threads in [1, 3] {
        let samples = with_bad_ones();
        let mut calibration = reading(BadSamples::Stop);
        let begun = begin_all(&mut calibration, samples, threads);
        let error = calibration.settle().unwrap_err();
        assert!(matches!(error, FeedError::Sample(_)), "{error}");
        assert!(
            error.to_string().contains("bad 2") || threads > 1,
            "{error}"
        );
        // On one thread the third sample is the last; on more, some start before it has failed.
        assert!(begun == 3 || threads > 1, "{begun}");
        // The error is reported once, and the statistics of the good samples stay.
        calibration.settle().unwrap();
        assert!(calibration.done() >= 2);
    }
}

#[test]
fn a_running_sample_must_be_awaited() {
    let mut calibration = calibration();
    let (go, gate) = mpsc::channel::<()>();
    let (ended, end) = mpsc::channel();
    let gate = std::sync::Mutex::new(gate);
    let asked = Arc::new(AtomicUsize::new(0));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build()
        .expect("threads can be had");
    pool.install(|| {
        let asked = Arc::clone(&asked);
        let stop = move || {
            // The first call blocks the sample until the test releases it.
            if asked.fetch_add(1, Ordering::Relaxed) == 0 {
                gate.lock().unwrap().recv().unwrap();
            }
            false
        };
        let sample = encoded().swap_remove(0);
        calibration.begin(sample, |_, _| {}, stop, move || ended.send(()).unwrap());
        assert_eq!(calibration.under_way(), 1);
        assert!(matches!(calibration.settle(), Err(FeedError::UnderWay(1))));
    });
    go.send(()).unwrap();
    end.recv().unwrap();
    assert_eq!(calibration.under_way(), 0);
    calibration.settle().unwrap();
}
