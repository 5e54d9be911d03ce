//! The model of the GPTQ tests, its samples and its errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use octet::calibrate::run::{CalibrationRun, ExtraPass, FeedError, WatchedValue};
use octet::graph::{Dim, Model};
use octet::onnx::schema::{AttributeProto, DataType, TensorProto};
use octet::quantize::{
    ActivationRanges, Plan, Quantized, Settings, apply, channel_axes, gram_views,
};
use octet::runtime::Engine;
use octet::samples::{self, Encoded, InputSpec};
use octet::stats::{CalibrationStatistics, Method};
use octet::tensor::{Tensor, Values};

use octet_test_models::{assert_valid, model, node, npy, numbers};

pub const SAMPLES: u64 = 96;
pub const SHAPE: [usize; 4] = [1, 4, 9, 7];

/// Convolutions, one of them grouped, and two products, with distinct weights.
pub fn layers() -> Model {
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

/// A picture with correlated neighbours and channels.
pub fn picture(index: u64) -> Vec<f32> {
    let (fine, coarse) = (numbers(100 + index, 252), numbers(9000 + index, 9));
    let value = |(place, fine): (usize, &f32)| {
        let (channel, row, column) = (place / 63, place % 63 / 7, place % 7);
        coarse[row / 3 * 3 + column / 3] * (1.0 + channel as f32 / 4.0) + 0.1 * fine + 0.2
    };
    fine.iter().enumerate().map(value).collect()
}

/// A picture as a `.npy` file.
pub fn encoded(index: u64) -> Encoded {
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

pub fn all_samples() -> Vec<Encoded> {
    (0..SAMPLES).map(encoded).collect()
}

pub fn calibration(model: &Model) -> CalibrationRun {
    let watched = Plan::observed_values(model).unwrap();
    let engine = Arc::new(Engine::new(model.clone(), watched.clone()));
    let mut axes = channel_axes(model);
    let watched = watched.into_iter().map(|name| {
        let means = axes.remove(&name);
        WatchedValue {
            name,
            channel_means: means,
            channel_abs_max: None,
            channel_variance: None,
        }
    });
    let input = InputSpec {
        name: "x".into(),
        element: DataType::Float,
        shape: SHAPE.map(Dim::Known).to_vec(),
    };
    let settings = samples::SampleSettings::default();
    CalibrationRun::new(
        engine,
        watched.collect(),
        vec![input],
        settings,
        Box::new(|_, _| {}),
    )
}

pub fn feed(calibration: &mut CalibrationRun, samples: Vec<Encoded>) -> Result<(), FeedError> {
    calibration.feed(samples, |_, _| {}, || false)
}

/// The statistics of both passes.
pub fn seen(model: &Model) -> CalibrationStatistics {
    let mut calibration = calibration(model);
    feed(&mut calibration, all_samples()).unwrap();
    calibration
        .begin_pass(ExtraPass::InputGrams(gram_views(model)))
        .unwrap();
    feed(&mut calibration, all_samples()).unwrap();
    calibration.finish().unwrap()
}

pub fn settings(text: &str) -> Settings {
    Settings::from_value(serde_json::from_str(text).unwrap()).unwrap()
}

pub fn quantized(seen: &CalibrationStatistics, text: &str) -> Quantized {
    let found = apply(
        &layers(),
        &settings(text),
        Some(ActivationRanges::Observed(seen, Method::MinMax)),
    )
    .unwrap();
    assert_valid(&found.model);
    found
}

/// The mean square error of a model against the float one. Its pictures are not among the samples,
/// and paler, so that nothing is clipped.
pub fn error(model: &Model) -> f64 {
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

pub fn weights(found: &Quantized) -> BTreeMap<String, Vec<i64>> {
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
