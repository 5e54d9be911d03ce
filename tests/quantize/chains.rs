//! Chains of operators that are one: a layer normalization, a GELU.

use octet::onnx::schema::*;
use octet::quantize::{Operators, Plan, QuantizeError, Quantized, Settings};

use crate::done::done;
use crate::graphs::{constant, model, node};

/// The nodes of a layer normalization of `x`, and its constants.
fn layer_norm(twice: bool) -> (Vec<NodeProto>, Vec<TensorProto>) {
    let mean = |input: &str, output: &str| {
        let mut mean = node("ReduceMean", &[input], output);
        mean.attribute = vec![AttributeProto::ints("axes", &[-1])];
        mean
    };
    let again = if twice { "again" } else { "apart" };
    let mut nodes = vec![mean("x", "mean"), node("Sub", &["x", "mean"], "apart")];
    if twice {
        nodes.push(node("Sub", &["x", "mean"], "again"));
    }
    nodes.extend([
        node("Pow", &[again, "two"], "squared"),
        mean("squared", "variance"),
        node("Add", &["variance", "epsilon"], "more"),
        node("Sqrt", &["more"], "deviation"),
        node("Div", &["apart", "deviation"], "normal"),
        node("Mul", &["normal", "gamma"], "scaled"),
        node("Add", &["scaled", "beta"], "y"),
    ]);
    let number = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    let (gamma, beta) = (constant("gamma", &[4]), constant("beta", &[4]));
    (
        nodes,
        vec![number("two", 2.0), number("epsilon", 1e-5), gamma, beta],
    )
}

fn activations(quantized: &Quantized) -> Vec<&str> {
    quantized
        .tensors
        .iter()
        .map(|tensor| tensor.name.as_str())
        .collect()
}

#[test]
fn a_layer_normalization_written_as_a_chain_is_one_operator() {
    for twice in [false, true] {
        let (nodes, constants) = layer_norm(twice);
        let count = nodes.len();
        let quantized = done(&model(nodes, constants, &["y"]));
        assert_eq!(activations(&quantized), ["x", "y"]);
        let inside = quantized.nodes.iter().filter(|node| !node.quantized);
        let reasons: Vec<&str> = inside.filter_map(|node| node.reason.as_deref()).collect();
        assert_eq!(reasons.len(), count - 1);
        assert!(
            reasons
                .iter()
                .all(|reason| reason.contains("layer normalization")),
            "{reasons:?}"
        );
    }
    // With a value inside that others use, it is what it says: nine operators.
    let (nodes, constants) = layer_norm(false);
    let quantized = done(&model(nodes, constants, &["y", "variance"]));
    assert!(activations(&quantized).contains(&"scaled"));
}

#[test]
fn a_gelu_written_as_a_chain_is_one_operator_wherever_its_half_stands() {
    let number = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    let begin = [
        node("Div", &["x", "root"], "a"),
        node("Erf", &["a"], "b"),
        node("Add", &["b", "one"], "c"),
    ];
    for end in [
        [
            node("Mul", &["x", "c"], "d"),
            node("Mul", &["d", "half"], "y"),
        ],
        [
            node("Mul", &["c", "half"], "d"),
            node("Mul", &["x", "d"], "y"),
        ],
        [
            node("Mul", &["x", "half"], "d"),
            node("Mul", &["d", "c"], "y"),
        ],
    ] {
        let nodes: Vec<_> = begin.iter().cloned().chain(end).collect();
        let constants = [
            ("root", std::f32::consts::SQRT_2),
            ("one", 1.0),
            ("half", 0.5),
        ]
        .map(|(name, value)| number(name, value));
        let quantized = done(&model(nodes, constants.into(), &["y"]));
        assert_eq!(activations(&quantized), ["x", "y"]);
    }
}

#[test]
fn a_chain_follows_the_settings() {
    let (nodes, constants) = layer_norm(false);
    let whole = model(nodes, constants, &["y"]);
    let quantized = |settings: Settings| {
        let plan = Plan::new(&whole, &settings);
        plan.map(|plan| {
            plan.choices()
                .iter()
                .filter(|choice| choice.quantized)
                .count()
        })
    };
    let only = |name: &str| Settings {
        operators: Operators::Only(vec![name.into()]),
        ..Settings::default()
    };
    assert_eq!(quantized(only("LayerNormalization")).unwrap(), 1);
    // By its own operators it is quantized where the settings ask for these, and observed for it.
    assert_eq!(quantized(only("Mul")).unwrap(), 1);
    assert_eq!(
        quantized(Settings {
            operators: Operators::OnnxRuntime,
            ..Settings::default()
        })
        .unwrap(),
        3
    );
    let observed = Plan::observable(&whole).unwrap();
    assert!(
        ["x", "normal", "scaled", "y"]
            .iter()
            .all(|name| observed.iter().any(|seen| seen == name))
    );
    // One of its nodes kept float keeps all of it.
    let kept = Settings {
        float: vec!["squared".into()],
        ..Settings::default()
    };
    assert!(matches!(
        quantized(kept),
        Err(QuantizeError::Nothing { .. })
    ));
}
