//! Bias correction: the bias subtracts the mean error that rounding the weights adds to a layer.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use octet_graph::Model;
use octet_onnx::schema::{AttributeProto, AttributeType, TensorProto};
use octet_quantize::{ActivationRanges, Quantized, Settings, apply, channel_axes};
use octet_stats::{CalibrationStatistics, Method, Range, TensorStatistics};
use octet_test_models::{assert_valid, constant, model, node, producer};

const ROWS: usize = 8;

/// Rows of three features whose means are about 5, -2 and 0.
fn rows() -> Vec<f32> {
    let row = |i: usize| {
        let wave = (i as f32 * 1.3).sin();
        [5.0 + wave, -2.0 + wave, wave]
    };
    (0..ROWS).flat_map(row).collect()
}

/// y = x·w + b, with three features in and two out.
fn gemm() -> Model {
    let nodes = vec![node("Gemm", &["x", "w", "b"], "y")];
    let constants = vec![constant("w", &[3, 2]), constant("b", &[2])];
    model(nodes, constants, &["y"])
}

fn seen(model: &Model) -> CalibrationStatistics {
    let axes = channel_axes(model);
    assert_eq!(axes, BTreeMap::from([("x".to_string(), 1)]));
    let values = rows();
    let mut x = TensorStatistics::new();
    x.observe(&values);
    x.observe_channel_means(&values, &[ROWS, 3], axes["x"]);
    let mut y = TensorStatistics::new();
    y.observe(&[-9.0, 9.0]);
    [("x".to_string(), x), ("y".to_string(), y)].into()
}

fn quantized(method: Method, wanted: Option<bool>) -> Quantized {
    let model = gemm();
    let settings = Settings {
        bias_correction: wanted,
        ..Settings::default()
    };
    let seen = seen(&model);
    let quantized = apply(
        &model,
        &settings,
        Some(ActivationRanges::Observed(&seen, method)),
    )
    .unwrap();
    assert_valid(&quantized.model);
    quantized
}

/// The real values of an integer constant with a scale per channel along its last axis.
fn reals(quantized: &Quantized, name: &str) -> Vec<f64> {
    let constants = &quantized.model.graph.initializers;
    let get = |suffix: &str| constants.get(&format!("{name}_quantized{suffix}"));
    let scales = get("_scale").or(constants.get(&format!("{name}_scale")));
    let scales = scales.unwrap().to_f32().unwrap();
    let integers = get("").unwrap().to_i64().unwrap();
    let real = |(i, &integer): (usize, &i64)| integer as f64 * f64::from(scales[i % scales.len()]);
    integers.iter().enumerate().map(real).collect()
}

/// The layer's output for the mean row.
fn of_the_mean(weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let values = rows();
    let mean = |feature: usize| {
        let of = values.iter().skip(feature).step_by(3);
        of.map(|&value| f64::from(value)).sum::<f64>() / ROWS as f64
    };
    let output = |o: usize| bias[o] + (0..3).map(|i| mean(i) * weight[i * 2 + o]).sum::<f64>();
    (0..2).map(output).collect()
}

fn floats(name: &str) -> Vec<f64> {
    let values = gemm().graph.initializers.get(name).unwrap().to_f32();
    values.unwrap().into_iter().map(f64::from).collect()
}

#[test]
fn the_mean_row_comes_out_as_from_the_float_layer() {
    let wanted = of_the_mean(&floats("w"), &floats("b"));
    let error = |correct: bool| {
        let quantized_model = quantized(Method::MinMax, Some(correct));
        let outputs = of_the_mean(&reals(&quantized_model, "w"), &reals(&quantized_model, "b"));
        let pairs = outputs.iter().zip(&wanted);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let corrected = quantized(Method::MinMax, Some(true));
    let bias = corrected.tensors.iter().find(|t| t.name == "b").unwrap();
    // The rounding of the bias itself remains: half a step.
    let half = f64::from(bias.scale) / 2.0 + 1e-6;
    let (without, with) = (error(false), error(true));
    assert!(without > 10.0 * half, "{without}");
    assert!(with <= half, "{with}");
}

#[test]
fn it_is_done_where_it_is_wanted_and_by_auto() {
    for (method, wanted, done) in [
        (Method::MinMax, None, false),
        (Method::MinMax, Some(true), true),
        (Method::Auto, None, true),
        (Method::Auto, Some(false), false),
    ] {
        let found = quantized(method, wanted);
        let bias = found.tensors.iter().find(|t| t.name == "b").unwrap();
        assert_eq!(bias.corrected.is_some(), done, "{method:?} {wanted:?}");
        let plain = quantized(method, Some(false));
        let changed = reals(&found, "b") != reals(&plain, "b");
        assert_eq!(changed, done, "{method:?} {wanted:?}");
        // The weights do not change.
        assert_eq!(reals(&found, "w"), reals(&plain, "w"));
    }
}

#[test]
fn without_means_it_says_that_nothing_was_done() {
    let model = gemm();
    let ranges = ["x", "y"].map(|name| (name.to_string(), octet_stats::Range::new(-9.0, 9.0)));
    let ranges = ranges.into();
    let settings = Settings {
        bias_correction: Some(true),
        ..Settings::default()
    };
    let found = apply(&model, &settings, Some(ActivationRanges::Provided(&ranges))).unwrap();
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("not corrected"))
    );
    assert!(found.tensors.iter().all(|t| t.corrected.is_none()));
}

/// [`gemm`] with tiny weights and a large bias in the first channel.
fn faint() -> Model {
    let nodes = vec![node("Gemm", &["x", "w", "b"], "y")];
    let weight = TensorProto::from_f32("w", &[3, 2], &[1e-9, 0.5, -3e-9, -0.7, 2e-9, 0.3]);
    let bias = TensorProto::from_f32("b", &[2], &[3.0, -0.5]);
    model(nodes, vec![weight, bias], &["y"])
}

#[test]
fn a_bias_fits_32_bits_whatever_type_its_weight_has() {
    let weights = |text: &str| Settings::from_value(serde_json::from_str(text).unwrap()).unwrap();
    for (settings, fits) in [
        ("{}", true),
        (r#"{"weights": {"type": "u8"}}"#, true),
        (r#"{"weights": {"type": "i4"}}"#, true),
        (r#"{"weights": {"type": "u4"}}"#, true),
        (r#"{"weights": {"symmetric": false}}"#, true),
        (r#"{"weights": {"power_of_two": true}}"#, true),
        (r#"{"weights": {"type": "u8", "power_of_two": true}}"#, true),
        (r#"{"fit_bias": false}"#, false),
        (r#"{"tensors": {"w": {"scale": 1e-9}}}"#, false),
        (r#"{"operators": "onnxruntime"}"#, true),
        // ONNX Runtime raises no scale for other types than i8.
        (
            r#"{"operators": "onnxruntime", "weights": {"type": "u8"}}"#,
            false,
        ),
    ] {
        let model = faint();
        let ranges = ["x", "y"].map(|name| (name.to_string(), Range::new(-9.0, 9.0)));
        let ranges = ranges.into();
        let found = apply(
            &model,
            &weights(settings),
            Some(ActivationRanges::Provided(&ranges)),
        )
        .unwrap();
        assert_valid(&found.model);
        let bias = reals(&found, "b");
        let near = |wanted: f64, found: f64| (wanted - found).abs() < 1e-4;
        assert_eq!(near(bias[0], 3.0), fits, "{settings}: {bias:?}");
        let said = found
            .notes
            .iter()
            .any(|note| note.contains("`b` is a bias"));
        assert_eq!(said, !fits, "{settings}: {:?}", found.notes);
        let constants = &found.model.graph.initializers;
        let scales = constants.get("w_scale").unwrap().to_f32().unwrap();
        if settings.contains("power_of_two") {
            let is_power = |scale: &f32| scale.to_bits() & 0x007f_ffff == 0;
            assert!(scales.iter().all(is_power), "{settings}: {scales:?}");
        } else if settings.contains("scale") {
            assert_eq!(scales, [1e-9; 2], "the scale that was given stays");
        }
    }
}

/// A pruned channel outputs its bias.
#[test]
fn a_bias_beside_weights_that_are_all_zero_is_kept() {
    for (settings, kept) in [
        ("{}", true),
        (r#"{"weights": {"type": "u8"}}"#, true),
        (r#"{"weights": {"power_of_two": true}}"#, true),
        (r#"{"weights": {"per_channel": false}}"#, true),
        (r#"{"operators": "onnxruntime"}"#, false),
    ] {
        let nodes = vec![node("Gemm", &["x", "w", "b"], "y")];
        let weight = match settings.contains("per_channel") {
            true => [0.0; 6],
            false => [0.0, 0.5, 0.0, -0.7, 0.0, 0.3],
        };
        let weight = TensorProto::from_f32("w", &[3, 2], &weight);
        let bias = TensorProto::from_f32("b", &[2], &[0.013, -0.5]);
        let model = model(nodes, vec![weight, bias], &["y"]);
        let ranges = ["x", "y"].map(|name| (name.to_string(), Range::new(-9.0, 9.0)));
        let ranges = ActivationRanges::Provided(&ranges.into());
        let settings = Settings::from_value(serde_json::from_str(settings).unwrap()).unwrap();
        let found = apply(&model, &settings, Some(ranges)).unwrap();
        let bias = reals(&found, "b")[0];
        assert_eq!((bias - 0.013).abs() < 1e-6, kept, "{bias}");
    }
}

/// Two layers share a bias. The input of the first stays float, because no integers suit it.
#[test]
fn a_bias_stays_float_beside_an_input_that_does() {
    let beta = AttributeProto {
        name: Some("beta".into()),
        r#type: Some(AttributeType::Float as i32),
        f: Some(2.0),
        ..Default::default()
    };
    let mut nodes = vec![
        node("Gemm", &["x", "w", "b"], "h"),
        node("Gemm", &["h", "w", "b"], "y"),
    ];
    nodes[0].attribute.push(beta);
    let model = model(
        nodes,
        vec![constant("w", &[3, 3]), constant("b", &[3])],
        &["y"],
    );
    let even: Vec<f32> = (0..1000).map(|i| i as f32 / 1000.0).collect();
    let wild: Vec<f32> = even.iter().copied().chain([1e9]).collect();
    let seen = [("x", &wild), ("h", &even), ("y", &even)];
    let seen = seen.map(|(name, values)| {
        let mut seen = TensorStatistics::new();
        seen.observe(values);
        (name.to_string(), seen)
    });
    let ranges = ActivationRanges::Observed(&seen.into(), Method::MinMax);
    let found = apply(&model, &Settings::default(), Some(ranges)).unwrap();
    assert_valid(&found.model);
    let first = producer(&found.model, "h");
    assert_eq!(
        (first.input[0].as_str(), first.input[2].as_str()),
        ("x", "b")
    );
    assert_eq!(first.float("beta"), Some(2.0));
    let second = found.model.graph.nodes().last().unwrap();
    assert!(
        second.is("DequantizeLinear") && producer(&found.model, "h").is("Gemm"),
        "{second:?}"
    );
}
