//! Weights whose errors make up for one another: what a further pass over the samples sees, and what is made of it.
#![allow(clippy::unwrap_used, clippy::result_large_err)]

use std::collections::BTreeMap;
use std::sync::Arc;

use octet::calibrate::run::{Calibration, FeedError, Further, Watched};
use octet::calibrate::{Method, Observation, Observations, Range};
use octet::engine::Engine;
use octet::graph::{Dim, Model};
use octet::onnx::schema::{AttributeProto, DataType, TensorProto};
use octet::quantize::{
    ElementType, Plan, Quantized, Ranges, Rounding, Scheme, Settings, SettingsError, apply,
    channel_axes, meetings,
};
use octet::samples::{self, Encoded, InputSpec};
use octet::tensor::{Tensor, Values};

mod graphs;

use graphs::{check_valid, model, node, npy, numbers};

const SAMPLES: u64 = 96;
const SHAPE: [usize; 4] = [1, 4, 9, 7];

/// Convolutions, one of groups, and two products, whose weights are all different.
fn layers() -> Model {
    let weight = |name: &str, seed: u64, dims: &[usize]| {
        TensorProto::from_f32(name, dims, &numbers(seed, dims.iter().product()))
    };
    let first =
        node("Conv", &["x", "w1", "b1"], "a").with(AttributeProto::ints("pads", &[1, 1, 1, 1]));
    let second = node("Conv", &["a", "w2"], "b")
        .with(AttributeProto::int("group", 4))
        .with(AttributeProto::ints("strides", &[2, 1]))
        .with(AttributeProto::ints("dilations", &[1, 2]));
    let nodes = vec![
        first,
        second,
        node("MatMul", &["b", "w3"], "c"),
        node("Flatten", &["c"], "d"),
        node("Gemm", &["d", "w4", "b4"], "y").with(AttributeProto::int("transB", 1)),
    ];
    let constants = vec![
        weight("w1", 1, &[8, 4, 3, 3]),
        weight("b1", 2, &[8]),
        weight("w2", 3, &[12, 2, 2, 3]),
        weight("w3", 4, &[3, 5]),
        weight("w4", 5, &[6, 12 * 4 * 5]),
        weight("b4", 6, &[6]),
    ];
    model(nodes, constants, &["y"])
}

/// A picture whose neighbours, and channels, are much alike.
fn picture(index: u64) -> Vec<f32> {
    let (fine, coarse) = (numbers(100 + index, 252), numbers(9000 + index, 9));
    let value = |(place, fine): (usize, &f32)| {
        let (channel, row, column) = (place / 63, place % 63 / 7, place % 7);
        coarse[row / 3 * 3 + column / 3] * (1.0 + channel as f32 / 4.0) + 0.1 * fine + 0.2
    };
    fine.iter().enumerate().map(value).collect()
}

/// A picture as a `.npy` file.
fn encoded(index: u64) -> Encoded {
    let values: Vec<u8> = picture(index)
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let file = npy("<f4", "(1, 4, 9, 7)", &values);
    Encoded {
        name: format!("picture {index}"),
        parts: vec![("x.npy".into(), file.into())],
    }
}

fn all_samples() -> Vec<Encoded> {
    (0..SAMPLES).map(encoded).collect()
}

fn calibration(model: &Model) -> Calibration {
    let watched = Plan::observable(model).unwrap();
    let engine = Arc::new(Engine::new(model.clone(), watched.clone()));
    let mut axes = channel_axes(model);
    let watched = watched.into_iter().map(|name| {
        let means = axes.remove(&name);
        Watched {
            name,
            means,
            reach: None,
        }
    });
    let input = InputSpec {
        name: "x".into(),
        element: DataType::Float,
        shape: SHAPE.map(Dim::Known).to_vec(),
    };
    let settings = samples::Settings::default();
    Calibration::new(
        engine,
        watched.collect(),
        vec![input],
        settings,
        Box::new(|_, _| {}),
    )
}

fn feed(calibration: &mut Calibration, samples: Vec<Encoded>) -> Result<(), FeedError> {
    calibration.feed(samples, |_, _| {}, || false)
}

/// What both passes see.
fn seen(model: &Model) -> Observations {
    let mut calibration = calibration(model);
    feed(&mut calibration, all_samples()).unwrap();
    calibration
        .begin_pass(Further::Moments(meetings(model)))
        .unwrap();
    feed(&mut calibration, all_samples()).unwrap();
    calibration.finish().unwrap()
}

fn settings(text: &str) -> Settings {
    Settings::from_value(serde_json::from_str(text).unwrap()).unwrap()
}

fn quantized(seen: &Observations, text: &str) -> Quantized {
    let found = apply(
        &layers(),
        &settings(text),
        Some(Ranges::Seen(seen, Method::MinMax)),
    )
    .unwrap();
    check_valid(&found.model);
    found
}

/// How far a model is from the float one on pictures that were not among the samples, and are paler, so that nothing is cut off: the
/// mean square.
fn error(model: &Model) -> f64 {
    let outputs = |model: &Model, index: u64| -> Vec<f32> {
        let engine = Engine::new(model.clone(), Vec::new());
        let input = Tensor::new(
            SHAPE.to_vec(),
            Values::F32(picture(index).iter().map(|value| value * 0.6).collect()),
        )
        .unwrap();
        let made = engine.run(vec![input], |_, _| {}, || false).unwrap();
        made[0].as_f32().unwrap().to_vec()
    };
    let (mut sum, mut count) = (0.0, 0);
    for index in 500..508 {
        for (a, b) in outputs(model, index).iter().zip(outputs(&layers(), index)) {
            sum += f64::from(a - b).powi(2);
            count += 1;
        }
    }
    sum / f64::from(count)
}

fn weights(found: &Quantized) -> BTreeMap<String, Vec<i64>> {
    let constants = &found.model.graph.initializers;
    let one = |name: &str| {
        constants
            .get(&format!("{name}_quantized"))
            .unwrap()
            .to_i64()
            .unwrap()
    };
    ["w1", "w2", "w3", "w4"]
        .map(|name| (name.to_string(), one(name)))
        .into()
}

#[test]
fn errors_of_weights_make_up_for_one_another() {
    let seen = seen(&layers());
    // The activations are to add next to nothing, so that the weights can be seen.
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
            // The product of three inputs has little to choose from.
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
        // Only integers changed: scales and all else are as they were.
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
    // The same integers, whose products are added exactly and rounded once.
    let operators = quantized(&seen, &text("qoperator")).model;
    assert!(
        operators
            .graph
            .nodes
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
            let pass = |calibration: &mut Calibration| {
                let mut samples = all_samples();
                samples.rotate_left(threads);
                while !samples.is_empty() {
                    let rest = samples.split_off(portion.min(samples.len()));
                    feed(calibration, std::mem::replace(&mut samples, rest)).unwrap();
                }
            };
            pass(&mut calibration);
            calibration
                .begin_pass(Further::Moments(meetings(&model)))
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
        .begin_pass(Further::Histograms(method.second_pass().unwrap()))
        .unwrap();
    feed(&mut calibration, all_samples()).unwrap();
    calibration
        .begin_pass(Further::Moments(meetings(&model)))
        .unwrap();
    feed(&mut calibration, all_samples()).unwrap();
    let both = calibration.finish().unwrap();
    let apart = seen(&model);
    for (value, meeting) in meetings(&model) {
        let [one, other] = [&both, &apart].map(|seen| seen[&value].moments(&meeting));
        assert_eq!(one, other);
        assert!(one.is_some(), "{value}");
    }
    let settings = settings(r#"{"rounding": "gptq"}"#);
    apply(&model, &settings, Some(Ranges::Seen(&both, method))).unwrap();
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
    let range = |seen: &Observation| Range::new(seen.min().unwrap(), seen.max().unwrap());
    let given: BTreeMap<String, Range> = once
        .iter()
        .map(|(value, seen)| (value.clone(), range(seen)))
        .collect();
    for text in [
        r#"{"rounding": "gptq"}"#,
        r#"{"scheme": "blocks", "blocks": {"method": "gptq"}}"#,
    ] {
        for ranges in [
            Some(Ranges::Seen(&once, Method::MinMax)),
            Some(Ranges::Given(&given)),
            None,
        ] {
            let told = apply(&model, &settings(text), ranges)
                .unwrap_err()
                .to_string();
            let expected = if ranges.is_none() && text.contains("rounding") {
                "needs ranges"
            } else {
                "further pass"
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
            .begin_pass(Further::Moments(meetings(&model)))
            .unwrap();
        calibration
    };
    let mut fewer = begun();
    feed(&mut fewer, all_samples().split_off(1)).unwrap();
    let told = fewer.finish().unwrap_err().to_string();
    assert!(told.contains("95 of 96"), "{told}");
    // One that was left off in the middle may be in it in part.
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

#[test]
fn the_settings_say_what_they_need() {
    for (text, samples, moments) in [
        ("{}", true, false),
        (r#"{"rounding": "gptq"}"#, true, true),
        (r#"{"scheme": "dynamic", "rounding": "gptq"}"#, false, false),
        (r#"{"scheme": "blocks", "rounding": "gptq"}"#, false, false),
        (
            r#"{"scheme": "blocks", "blocks": {"method": "gptq"}}"#,
            true,
            true,
        ),
    ] {
        let settings = settings(text);
        assert_eq!(
            (settings.need_samples(), settings.need_moments()),
            (samples, moments),
            "{text}"
        );
    }
    let wrong: Result<Settings, SettingsError> =
        Settings::from_value(serde_json::json!({ "rounding": "stochastic" }));
    assert!(wrong.unwrap_err().to_string().contains("gptq"));
    let default = Settings::default();
    assert_eq!(
        (default.rounding, default.scheme),
        (Rounding::Nearest, Scheme::Static)
    );
    assert_eq!(
        default.weights.element.unwrap_or(ElementType::I8),
        ElementType::I8
    );
}
