//! GPTQ: the statistics of the extra pass, and the weights rounded with them.
#![allow(clippy::unwrap_used, clippy::result_large_err)]

use std::collections::BTreeMap;

use octet::calibrate::run::{CalibrationRun, ExtraPass, FeedError};
use octet::quantize::{ActivationRanges, apply, gram_views};
use octet::stats::{Method, Range, TensorStatistics};

mod layers;

use layers::{
    all_samples, calibration, encoded, error, feed, layers, quantized, seen, settings, weights,
};

#[test]
fn errors_of_weights_make_up_for_one_another() {
    let seen = seen(&layers());
    // Wide activations add almost no error, so the error of the weights is visible.
    for (more, times) in [
        (r#""weights": {"type": "i8"}"#, 2.0),
        (r#""weights": {"type": "u8", "symmetric": false}"#, 2.0),
        (r#""weights": {"type": "i4"}"#, 2.0),
        (
            r#""weights": {"type": "i8", "per_channel": false}, "bias_correction": true"#,
            2.0,
        ),
    ] {
        let text = |rounding: &str| {
            format!(
                r#"{{"activations": {{"type": "u16"}}, "rounding": "{rounding}", "guard": false, {more}}}"#
            )
        };
        let [nearest, together] = ["nearest", "gptq"].map(|way| quantized(&seen, &text(way)));
        let [before, after] = [&nearest, &together].map(|found| error(&found.model));
        assert!(after * times < before, "{more}: {before} {after}");
        for tensor in &together.tensors {
            // A product of only three inputs has little to gain.
            let expected = match tensor.name.as_str() {
                "w1" | "w2" | "w4" => tensor.compensated > Some(1.0),
                "w3" => tensor.compensated >= Some(0.0),
                _ => tensor.compensated.is_none(),
            };
            assert!(expected, "{tensor:?}");
        }
        assert!(
            nearest
                .tensors
                .iter()
                .all(|tensor| tensor.compensated.is_none())
        );
        // Only integers change; scales and all else stay.
        let [a, b] = [&nearest, &together].map(|found| {
            let kept = found
                .tensors
                .iter()
                .map(|t| (t.name.clone(), t.scale, t.zero_point));
            kept.collect::<Vec<_>>()
        });
        assert_eq!(a, b);
    }
}

#[test]
fn other_forms_hold_the_same_numbers() {
    let seen = seen(&layers());
    let text = |format: &str| format!(r#"{{"rounding": "gptq", "format": "{format}"}}"#);
    let error_of = |format: &str| error(&quantized(&seen, &text(format)).model);
    let written = error_of("qdq");
    assert_eq!(error_of("simulated"), written);
    // QOperator has equal integers; its products are added exactly and rounded once.
    let operators = quantized(&seen, &text("qoperator")).model;
    assert!(
        operators
            .graph
            .nodes()
            .iter()
            .any(|node| node.is("QLinearConv"))
    );
    let ratio = error(&operators) / written;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn no_integer_leaves_those_that_are_used() {
    let seen = seen(&layers());
    for (text, low, high) in [
        (
            r#"{"rounding": "gptq", "weights": {"reduce_range": true}}"#,
            -64,
            64,
        ),
        (
            r#"{"rounding": "gptq", "weights": {"type": "u8", "reduce_range": true}}"#,
            0,
            127,
        ),
        (
            r#"{"rounding": "gptq", "weights": {"type": "i8"}}"#,
            -127,
            127,
        ),
        (r#"{"rounding": "gptq", "weights": {"type": "i4"}}"#, -8, 7),
    ] {
        for (name, integers) in weights(&quantized(&seen, text)) {
            let mut all = integers.iter();
            assert!(
                all.all(|integer| (low..=high).contains(integer)),
                "{text}: {name} {integers:?}"
            );
        }
    }
}

#[test]
fn any_number_of_threads_and_any_portion_give_the_same_integers() {
    let model = layers();
    let text = r#"{"rounding": "gptq", "bias_correction": true}"#;
    let whole = seen(&model);
    for (threads, portion) in [(1, 40), (2, 7), (4, 96)] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let other = pool.install(|| {
            let mut calibration = calibration(&model);
            let pass = |calibration: &mut CalibrationRun| {
                let mut samples = all_samples();
                samples.rotate_left(threads);
                while !samples.is_empty() {
                    let rest = samples.split_off(portion.min(samples.len()));
                    feed(calibration, std::mem::replace(&mut samples, rest)).unwrap();
                }
            };
            pass(&mut calibration);
            calibration
                .begin_pass(ExtraPass::InputGrams(gram_views(&model)))
                .unwrap();
            pass(&mut calibration);
            calibration.finish().unwrap()
        });
        assert_eq!(other, whole, "{threads} threads");
        let found = pool.install(|| quantized(&other, text));
        assert_eq!(
            found.model.to_proto(),
            quantized(&whole, text).model.to_proto()
        );
    }
}

#[test]
fn both_further_passes_go_together() {
    let model = layers();
    let method = Method::OrtPercentile(99.9);
    let mut calibration = calibration(&model);
    feed(&mut calibration, all_samples()).unwrap();
    calibration
        .begin_pass(ExtraPass::Histograms(method.second_pass().unwrap()))
        .unwrap();
    feed(&mut calibration, all_samples()).unwrap();
    calibration
        .begin_pass(ExtraPass::InputGrams(gram_views(&model)))
        .unwrap();
    feed(&mut calibration, all_samples()).unwrap();
    let both = calibration.finish().unwrap();
    let apart = seen(&model);
    for (value, meeting) in gram_views(&model) {
        let [one, other] = [&both, &apart].map(|seen| seen[&value].input_gram(&meeting));
        assert_eq!(one, other);
        assert!(one.is_some(), "{value}");
    }
    let settings = settings(r#"{"rounding": "gptq"}"#);
    apply(
        &model,
        &settings,
        Some(ActivationRanges::Observed(&both, method)),
    )
    .unwrap();
}

#[test]
fn blocks_are_rounded_together_too() {
    let seen = seen(&layers());
    for form in ["matmul_nbits", "dequantize"] {
        let text = |method: &str| {
            format!(
                r#"{{"scheme": "blocks", "blocks": {{"method": "{method}", "size": 16, "form": "{form}"}}}}"#
            )
        };
        let [nearest, together] = ["search", "gptq"].map(|way| quantized(&seen, &text(way)));
        let [before, after] = [&nearest, &together].map(|found| error(&found.model));
        assert!(after * 2.0 < before, "{form}: {before} {after}");
        let gained = together
            .tensors
            .iter()
            .find(|t| t.name == "w4")
            .unwrap()
            .compensated;
        assert!(gained > Some(3.0), "{gained:?}");
    }
}

#[test]
fn what_is_not_known_is_said() {
    let model = layers();
    let mut once = calibration(&model);
    feed(&mut once, all_samples()).unwrap();
    let once = once.finish().unwrap();
    let range = |seen: &TensorStatistics| Range::new(seen.min().unwrap(), seen.max().unwrap());
    let given: BTreeMap<String, Range> = once
        .iter()
        .map(|(value, seen)| (value.clone(), range(seen)))
        .collect();
    for text in [
        r#"{"rounding": "gptq"}"#,
        r#"{"scheme": "blocks", "blocks": {"method": "gptq"}}"#,
    ] {
        for ranges in [
            Some(ActivationRanges::Observed(&once, Method::MinMax)),
            Some(ActivationRanges::Provided(&given)),
            None,
        ] {
            let told = apply(&model, &settings(text), ranges)
                .unwrap_err()
                .to_string();
            let expected = if ranges.is_none() && text.contains("rounding") {
                "needs ranges"
            } else {
                "extra pass"
            };
            assert!(told.contains(expected), "{text}: {told}");
        }
    }
}

#[test]
fn a_further_pass_takes_the_same_samples() {
    let model = layers();
    let begun = || {
        let mut calibration = calibration(&model);
        feed(&mut calibration, all_samples()).unwrap();
        calibration
            .begin_pass(ExtraPass::InputGrams(gram_views(&model)))
            .unwrap();
        calibration
    };
    let mut fewer = begun();
    feed(&mut fewer, all_samples().split_off(1)).unwrap();
    let told = fewer.finish().unwrap_err().to_string();
    assert!(
        told.contains("completed 95 samples and the first 96"),
        "{told}"
    );
    // A sample that was cancelled midway may be counted in part.
    let mut stopped = begun();
    let looks = std::sync::atomic::AtomicUsize::new(0);
    let stop = || looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 3;
    let first = stopped.feed(vec![encoded(0)], |_, _| {}, stop);
    assert!(matches!(first, Err(FeedError::Stopped)), "{first:?}");
    feed(&mut stopped, all_samples()).unwrap();
    assert!(matches!(
        stopped.finish(),
        Err(FeedError::OtherCount { .. })
    ));
}
