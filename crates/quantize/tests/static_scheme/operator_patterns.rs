//! Operator patterns: layer normalization, GELU.

use octet_onnx::schema::*;
use octet_quantize::{Operators, Plan, QuantizeError, Quantized, Settings};

use crate::all_formats::quantize_all_formats;
use octet_test_models::{constant, model, node};

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
fn a_decomposed_layer_normalization_is_one_operator() {
    for twice in [false, true] {
        let (nodes, constants) = layer_norm(twice);
        let count = nodes.len();
        let quantized = quantize_all_formats(&model(nodes, constants, &["y"]));
        assert_eq!(activations(&quantized), ["x", "y"]);
        let inside = quantized.nodes.iter().filter(|node| !node.quantized);
        let reasons: Vec<&str> = inside
            .filter_map(|node| Some(node.reason?.words()))
            .collect();
        assert_eq!(reasons.len(), count - 1);
        assert!(
            reasons
                .iter()
                .all(|reason| reason.contains("layer normalization")),
            "{reasons:?}"
        );
    }
    // If another node reads a value inside, the pattern doesn't match: nine operators.
    let (nodes, constants) = layer_norm(false);
    let quantized = quantize_all_formats(&model(nodes, constants, &["y", "variance"]));
    assert!(activations(&quantized).contains(&"scaled"));
}

/// Normalizations of `x` by its root mean square, or by that of `apart`, as exporters write the
/// root and the nodes behind it. The flag is true for the difference from the mean.
fn spellings() -> Vec<(&'static str, bool, Vec<NodeProto>)> {
    let end = |normal: &str| {
        vec![
            node("Mul", &[normal, "gamma"], "scaled"),
            node("Add", &["scaled", "beta"], "y"),
        ]
    };
    let root = || node("Sqrt", &["more"], "deviation");
    let by_inverse = |inverse: Vec<NodeProto>| {
        let product = vec![node("Mul", &["apart", "inverse"], "normal")];
        [inverse, product, end("normal")].concat()
    };
    let by_division = |root: NodeProto| {
        let division = node("Div", &["apart", "deviation"], "normal");
        [vec![root, division], end("normal")].concat()
    };
    let inverse = |operator: &str, inputs: &[&str]| {
        by_inverse(vec![root(), node(operator, inputs, "inverse")])
    };
    vec![
        (
            "a power of a half",
            true,
            by_division(node("Pow", &["more", "half"], "deviation")),
        ),
        (
            "a power of minus a half",
            true,
            by_inverse(vec![node("Pow", &["more", "minus"], "inverse")]),
        ),
        ("a reciprocal", true, inverse("Reciprocal", &["deviation"])),
        ("one divided", true, inverse("Div", &["one", "deviation"])),
        (
            "TensorFlow's",
            true,
            vec![
                root(),
                node("Reciprocal", &["deviation"], "inverse"),
                node("Mul", &["inverse", "gamma"], "factor"),
                node("Mul", &["x", "factor"], "scaled"),
                node("Mul", &["mean", "factor"], "scaled_mean"),
                node("Sub", &["beta", "scaled_mean"], "shift"),
                node("Add", &["scaled", "shift"], "y"),
            ],
        ),
        (
            "without a mean",
            false,
            vec![
                root(),
                node("Div", &["one", "deviation"], "inverse"),
                node("Mul", &["x", "inverse"], "normal"),
                node("Mul", &["gamma", "normal"], "y"),
            ],
        ),
    ]
}

#[test]
fn a_normalization_matches_every_spelling_of_its_root() {
    for (name, differs, end) in spellings() {
        for whole_exponent in [false, true] {
            let (nodes, mut constants) = layer_norm(false);
            let begin = nodes.into_iter().take(6);
            let mut nodes: Vec<NodeProto> = begin.filter(|node| !node.is("Sqrt")).collect();
            if !differs {
                nodes.drain(..2);
                nodes[0].input[0] = "x".into();
            }
            nodes.extend(end.iter().cloned());
            if whole_exponent {
                constants[0] = TensorProto::from_i64("two", &[], &[2]);
            }
            for (name, value) in [("half", 0.5), ("minus", -0.5), ("one", 1.0)] {
                constants.push(TensorProto::from_f32(name, &[], &[value]));
            }
            let read: Vec<&String> = nodes.iter().flat_map(|node| &node.input).collect();
            constants.retain(|constant| read.contains(&constant.name.as_ref().unwrap()));
            let quantized = quantize_all_formats(&model(nodes, constants, &["y"]));
            assert_eq!(activations(&quantized), ["x", "y"], "{name}");
            let wanted = if differs {
                "a layer normalization"
            } else {
                "an RMS normalization"
            };
            let inside = quantized.nodes.iter().filter(|node| !node.quantized);
            let mut reasons = inside.filter_map(|node| Some(node.reason?.words()));
            assert!(reasons.all(|reason| reason.contains(wanted)), "{name}");
        }
    }
}

#[test]
fn a_decomposed_gelu_is_one_operator_in_any_order() {
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
        let quantized = quantize_all_formats(&model(nodes, constants.into(), &["y"]));
        assert_eq!(activations(&quantized), ["x", "y"]);
    }
}

#[test]
fn a_pattern_follows_the_settings() {
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
    // Settings may list its inner operators; then these are quantized, and the calibration observes
    // them.
    assert_eq!(quantized(only("Mul")).unwrap(), 1);
    assert_eq!(
        quantized(Settings {
            operators: Operators::OnnxRuntime,
            ..Settings::default()
        })
        .unwrap(),
        3
    );
    let observed = Plan::observed_values(&whole).unwrap();
    assert!(
        ["x", "normal", "scaled", "y"]
            .iter()
            .all(|name| observed.iter().any(|seen| seen == name))
    );
    // One float node keeps the whole pattern float.
    let kept = Settings {
        float: vec!["squared".into()],
        ..Settings::default()
    };
    assert!(matches!(
        quantized(kept),
        Err(QuantizeError::Nothing { .. })
    ));
}
