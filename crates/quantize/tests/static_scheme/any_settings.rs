//! A calibration observes all values that any settings may need.

use octet_graph::Model;
use octet_onnx::schema::*;
use octet_quantize::{ActivationRanges, Plan, QuantizeError, Settings, apply};
use octet_stats::{CalibrationStatistics, Method, TensorStatistics};
use serde_json::{Value, json};

use octet_test_models::{RandomChoice, assert_valid, constant, model, node};

fn constants() -> Vec<TensorProto> {
    let number = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    vec![
        constant("w", &[3, 3, 1, 1]),
        constant("m", &[3, 3]),
        constant("b", &[3]),
        number("low", 0.0),
        number("high", 6.0),
        number("half", 0.5),
        TensorProto::from_raw("yes", DataType::Bool, &[], vec![1u8].into()),
    ]
}

/// Up to nine operators of all treatments in chains and branches, with at most two outputs.
fn random_model(random: &mut RandomChoice) -> Model {
    let mut nodes: Vec<NodeProto> = Vec::new();
    let mut values = vec!["x".to_string()];
    for step in 0..2 + random.below(8) {
        let output = format!("v{step}");
        // Mostly the last value, so that chains arise.
        let latest = values[values.len() - 1].clone();
        let from = match random.below(3) {
            0 => random.one(&values).clone(),
            _ => latest,
        };
        let (from, other) = (from.as_str(), random.one(&values).clone());
        let inner = format!("{output}/inner");
        let deeper = format!("{output}/deeper");
        nodes.extend(match random.below(17) {
            0 => vec![node("Conv", &[from, "w", "b"], &output)],
            1 | 2 => vec![node("Relu", &[from], &output)],
            3 | 4 => vec![node("Clip", &[from, "low", "high"], &output)],
            5 => vec![node("Clip", &[from, "half", "high"], &output)],
            6 => vec![node("MaxPool", &[from], &output)],
            7 => vec![node("Transpose", &[from], &output)],
            8 => vec![node("Transpose", &["m"], &output)],
            9 => vec![node("MatMul", &[from, "m"], &output)],
            10 => vec![node("Add", &[from, &other], &output)],
            11 => vec![node("Softmax", &[from], &output)],
            12 => vec![node("Where", &["yes", from, &other], &output)],
            13 => vec![node("Pad", &[from, "", "half"], &output)],
            14 => vec![node("Exp", &[from], &output)],
            15 => vec![
                node("Sigmoid", &[from], &inner),
                node("Mul", &[from, &inner], &output),
            ],
            _ => vec![
                node("Softplus", &[from], &inner),
                node("Tanh", &[&inner], &deeper),
                node("Mul", &[from, &deeper], &output),
            ],
        });
        values.push(output);
    }
    let last = &values[values.len() - 1];
    let also = random.one(&values[1..]);
    let outputs: Vec<&str> = match also == last {
        true => vec![last],
        false => vec![last, also],
    };
    model(nodes, constants(), &outputs)
}

/// RandomChoice settings of a tensor.
fn random_tensor(random: &mut RandomChoice) -> Value {
    match random.below(8) {
        0 => json!({ "symmetric": true }),
        1 => json!({ "power_of_two": *random.one(&[json!(true), json!("nearest")]) }),
        2 => json!({ "type": *random.one(&["u8", "i8", "u16", "i16", "u4", "i4"]) }),
        3 => json!({ "method": *random.one(&["mse", "auto", "percentile:99"]) }),
        4 => json!({ "reduce_range": true }),
        5 => json!({ "snap_zero": true }),
        6 => json!({ "per_channel": false }),
        _ => json!({}),
    }
}

fn random_layer(random: &mut RandomChoice) -> Value {
    match random.below(5) {
        0 => json!({ "float": true }),
        1 => json!({ "float_output": true }),
        2 => json!({ "always": true }),
        3 => json!({ "activations": random_tensor(random) }),
        _ => json!({ "weights": random_tensor(random) }),
    }
}

fn random_settings(random: &mut RandomChoice, model: &Model) -> Settings {
    let nodes = model.graph.nodes();
    let title = |random: &mut RandomChoice| random.one(nodes).title().to_string();
    let operator = |random: &mut RandomChoice| random.one(nodes).operator();
    let mut document = json!({
        "activations": random_tensor(random),
        "weights": random_tensor(random),
        "guard": random.below(2) == 0,
        "format": *random.one(&["qdq", "qdq", "qoperator", "simulated"]),
    });
    if random.below(3) == 0 {
        document["operators"] = match random.below(3) {
            0 => json!("onnxruntime"),
            1 => json!([operator(random)]),
            _ => json!([operator(random), operator(random)]),
        };
    }
    if random.below(4) == 0 {
        document["by_name"] = json!({ "": random_layer(random) });
    }
    if random.below(2) == 0 {
        document["by_operator"] = json!({ operator(random): random_layer(random) });
    }
    if random.below(2) == 0 {
        document["by_node"] =
            json!({ title(random): random_layer(random), title(random): random_layer(random) });
    }
    if random.below(2) == 0 {
        let values: Vec<&String> = nodes.iter().flat_map(|node| &node.output).collect();
        let one = (*random.one(&values)).clone();
        let own = match random.below(4) {
            0 => json!({ "scale": 0.1 }),
            1 => json!({ "range": [-1, 2] }),
            _ => random_tensor(random),
        };
        document["tensors"] = json!({ one: own });
    }
    Settings::from_value(document).unwrap()
}

fn seen(model: &Model) -> Option<CalibrationStatistics> {
    let mut one = TensorStatistics::new();
    one.observe(&[-1.0, -0.25, 0.0, 0.5, 2.0]);
    let watched = Plan::observed_values(model).ok()?;
    Some(
        watched
            .into_iter()
            .map(|name| (name, one.clone()))
            .collect(),
    )
}

#[test]
fn any_settings_can_follow_any_calibration() {
    let mut random = RandomChoice(7);
    let mut done = 0;
    for round in 0..2000 {
        let model = random_model(&mut random);
        let Some(seen) = seen(&model) else { continue };
        let settings = random_settings(&mut random, &model);
        match apply(
            &model,
            &settings,
            Some(ActivationRanges::Observed(&seen, Method::MinMax)),
        ) {
            Ok(quantized) => {
                assert_valid(&quantized.model);
                done += 1;
            }
            // Some settings leave nothing to quantize.
            Err(QuantizeError::Nothing { .. }) => {}
            Err(error) => {
                let document = serde_json::to_string(&settings).unwrap();
                let nodes = model.graph.nodes().iter();
                let nodes: Vec<String> = nodes
                    .map(|node| format!("{} {:?} {:?}", node.operator(), node.input, node.output))
                    .collect();
                panic!("round {round}: {error}\n{document}\n{nodes:#?}");
            }
        }
    }
    assert!(done > 1000, "only {done} were quantized");
}
