//! Equalization: nodes that can absorb factors, and the unchanged function of the model.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;

use octet_graph::prepare::equalize::{ChannelFactors, channels};
use octet_onnx::schema::*;

mod factors;
mod layers;

use octet_test_models::equalizable::{SHAPE, between, conv, conv_constants, weight};
use octet_test_models::{choice, constant, model, node};

use layers::{stays, stays_between, typed};

#[test]
fn what_does_the_same_to_each_multiple_hands_factors_on() {
    let window = |node: NodeProto| node.with(AttributeProto::ints("kernel_shape", &[2, 2]));
    let numbers = |name: &str, values: &[f32]| TensorProto::from_f32(name, &[values.len()], values);
    for (last, constants) in [
        (node("Relu", &["a"], "z"), vec![]),
        (node("LeakyRelu", &["a"], "z"), vec![]),
        (
            node("PRelu", &["a", "slope"], "z"),
            vec![constant("slope", &[6, 1, 1])],
        ),
        (window(node("MaxPool", &["a"], "z")), vec![]),
        (window(node("AveragePool", &["a"], "z")), vec![]),
        (node("GlobalAveragePool", &["a"], "z"), vec![]),
        (node("GlobalMaxPool", &["a"], "z"), vec![]),
        (node("Abs", &["a"], "z"), vec![]),
        (node("Neg", &["a"], "z"), vec![]),
        (
            node("Resize", &["a", "", "scales"], "z").with(AttributeProto::text("mode", "nearest")),
            vec![numbers("scales", &[1.0, 1.0, 2.0, 2.0])],
        ),
        (
            node("Pad", &["a", "pads"], "z"),
            vec![TensorProto::from_i64(
                "pads",
                &[8],
                &[0, 0, 1, 1, 0, 0, 1, 1],
            )],
        ),
        (
            node("Mul", &["a", "half"], "z"),
            vec![numbers("half", &[0.5])],
        ),
        (
            node("Mul", &["a", "places"], "z"),
            vec![constant("places", &[6, 6])],
        ),
        (
            node("Div", &["a", "places"], "z"),
            vec![TensorProto::from_f32(
                "places",
                &[6, 1],
                &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            )],
        ),
    ] {
        stays_between(vec![last], constants, 6, &["a", "z"]);
    }
}

#[test]
fn a_constant_for_each_channel_takes_factors_up() {
    for operator in ["Add", "Sub", "Mul", "Div"] {
        let constants = vec![weight("c", &[6, 1, 1])];
        let after = stays_between(
            vec![node(operator, &["a", "c"], "z")],
            constants,
            6,
            &["a", "z"],
        );
        assert!(after.graph.initializers.contains("c"));
    }
    for operator in ["Add", "Sub", "Mul"] {
        stays_between(
            vec![node(operator, &["c", "a"], "z")],
            vec![weight("c", &[1, 6, 1, 1])],
            6,
            &["a", "z"],
        );
    }
}

#[test]
fn what_is_added_and_what_is_joined_shares_factors() {
    let other = |nodes: Vec<NodeProto>| [vec![conv("x", "other", "b")], nodes].concat();
    for operator in ["Add", "Sub", "Max", "Min", "Sum", "Mean"] {
        let nodes = other(vec![node(operator, &["a", "b"], "z")]);
        stays_between(
            nodes,
            conv_constants("other", &[6, 4, 1, 1]),
            6,
            &["a", "b", "z"],
        );
    }
    let concat = |axis| node("Concat", &["a", "b"], "z").with(AttributeProto::int("axis", axis));
    let after = stays_between(
        other(vec![concat(1)]),
        conv_constants("other", &[5, 4, 1, 1]),
        11,
        &["a", "b", "z"],
    );
    assert_eq!(ChannelFactors::from_metadata(&after).unwrap().extent().0, 2);
    stays_between(
        other(vec![concat(-3)]),
        conv_constants("other", &[5, 4, 1, 1]),
        11,
        &["a", "b", "z"],
    );
    stays_between(
        other(vec![concat(3)]),
        conv_constants("other", &[6, 4, 1, 1]),
        6,
        &["a", "b", "z"],
    );
}

#[test]
fn what_is_gated_keeps_its_factors_and_its_gate_has_none() {
    // Squeeze and excitation: the gate is computed from the value that it gates.
    let nodes = vec![
        node("Relu", &["a"], "b"),
        node("GlobalAveragePool", &["b"], "c"),
        conv("c", "squeeze", "d"),
        node("Relu", &["d"], "e"),
        conv("e", "excite", "f"),
        node("Sigmoid", &["f"], "g"),
        node("Mul", &["g", "b"], "z"),
    ];
    let constants = [
        conv_constants("squeeze", &[3, 6, 1, 1]),
        conv_constants("excite", &[6, 3, 1, 1]),
    ]
    .concat();
    stays_between(nodes, constants, 6, &["a", "b", "c", "d", "e", "z"]);
    // Of two operands of equal size, the one from a Sigmoid is the gate.
    let nodes = vec![
        conv("x", "other", "b"),
        node("Sigmoid", &["b"], "c"),
        node("Mul", &["c", "a"], "z"),
    ];
    stays_between(
        nodes,
        conv_constants("other", &[6, 4, 1, 1]),
        6,
        &["a", "z"],
    );
}

#[test]
fn weights_of_every_layer_take_factors_up() {
    let grouped = |operator: &str| {
        node(operator, &["a", "w", "b"], "z").with(AttributeProto::int("group", 2))
    };
    let bias = || weight("b", &[8]);
    stays_between(
        vec![grouped("Conv")],
        vec![weight("w", &[8, 3, 3, 3]), bias()],
        8,
        &["a", "z"],
    );
    stays_between(
        vec![grouped("ConvTranspose")],
        vec![weight("w", &[6, 4, 2, 2]), bias()],
        8,
        &["a", "z"],
    );
    let each = node("Conv", &["a", "w", "b"], "z").with(AttributeProto::int("group", 6));
    stays_between(
        vec![each],
        vec![weight("w", &[6, 1, 3, 3]), weight("b", &[6])],
        6,
        &["a", "z"],
    );
    // Matrix products with and without a bias, behind a norm.
    let product = |turned: bool| {
        let gemm = node("Gemm", &["c", "second", "bias"], "d")
            .with(AttributeProto::float("alpha", 0.5))
            .with(AttributeProto::float("beta", 2.0));
        let (gemm, dims) = match turned {
            true => (gemm.with(AttributeProto::int("transB", 1)), [5, 7]),
            false => (gemm, [7, 5]),
        };
        let nodes = vec![
            node("LayerNormalization", &["x", "scale", "shift"], "a"),
            node("MatMul", &["a", "first"], "b"),
            node("Add", &["b", "added"], "c"),
            gemm,
            node("Relu", &["d"], "e"),
            node("MatMul", &["e", "third"], "y"),
        ];
        let constants = vec![
            weight("scale", &[9]),
            weight("shift", &[9]),
            weight("first", &[9, 7]),
            weight("added", &[7]),
            weight("second", &dims),
            weight("bias", &[1, 5]),
            weight("third", &[5, 2]),
        ];
        stays(nodes, constants, &[3, 9], &["a", "b", "c", "d", "e"]);
    };
    product(true);
    product(false);
    // The last of three axes.
    let nodes = vec![
        node("LayerNormalization", &["x", "scale"], "a").with(AttributeProto::int("axis", 2)),
        node("MatMul", &["a", "first"], "y"),
    ];
    stays(
        nodes,
        vec![weight("scale", &[9]), weight("first", &[9, 7])],
        &[1, 5, 9],
        &["a"],
    );
    // A norm of each channel, and dropped axes of size 1.
    let nodes = vec![
        node("InstanceNormalization", &["x", "scale", "shift"], "a"),
        node("Relu", &["a"], "b"),
        node("GlobalAveragePool", &["b"], "c"),
        node("Flatten", &["c"], "d"),
        node("Gemm", &["d", "w"], "y"),
    ];
    let constants = vec![
        weight("scale", &[4]),
        weight("shift", &[4]),
        weight("w", &[4, 3]),
    ];
    stays(nodes, constants, &SHAPE, &["a", "b", "c", "d"]);
}

#[test]
fn what_bears_no_factors_stays_as_it_was() {
    let bound = || {
        vec![
            TensorProto::from_f32("low", &[], &[0.0]),
            TensorProto::from_f32("high", &[], &[0.5]),
        ]
    };
    let (inner, yes) = choice("Mul", "z");
    for (nodes, constants) in [
        (vec![node("Sigmoid", &["a"], "z")], vec![]),
        (vec![node("Clip", &["a", "low", "high"], "z")], bound()),
        (vec![node("Mul", &["a", "a"], "z")], vec![]),
        (
            vec![node("Add", &["a", "places"], "z")],
            vec![constant("places", &[6, 6])],
        ),
        (
            vec![node("Add", &["a", "one"], "z")],
            vec![constant("one", &[1])],
        ),
        (
            vec![node("Max", &["a", "one"], "z")],
            vec![constant("one", &[1])],
        ),
        (
            vec![node("Pad", &["a", "pads", "one"], "z")],
            vec![
                TensorProto::from_i64("pads", &[8], &[0, 0, 1, 1, 0, 0, 1, 1]),
                TensorProto::from_f32("one", &[], &[1.0]),
            ],
        ),
        (
            vec![node("Pad", &["a", "pads"], "z")],
            vec![TensorProto::from_i64(
                "pads",
                &[8],
                &[0, 1, 0, 0, 0, -1, 0, 0],
            )],
        ),
        // The channels move to another axis.
        (
            vec![node("Transpose", &["a"], "z").with(AttributeProto::ints("perm", &[0, 2, 1, 3]))],
            vec![],
        ),
        // Another reader of the value allows no factors.
        (
            vec![node("Relu", &["a"], "z"), node("Softmax", &["a"], "other")],
            vec![],
        ),
        (
            vec![node("Relu", &["a"], "inner"), inner],
            vec![yes, weight("w", &[6, 1, 1])],
        ),
    ] {
        let title = nodes[0].op_type.clone();
        let (nodes, constants) = between(nodes, constants, 6);
        let found = channels(&typed(model(nodes, constants, &["y"]), &SHAPE));
        assert!(
            !found.contains_key("a") && !found.contains_key("z"),
            "{title:?}: {found:?}"
        );
    }
    // A weight with a second reader, and a value that is an output.
    let mut shared = conv_constants("w", &[4, 4, 1, 1]);
    shared.extend(conv_constants("v", &[4, 4, 1, 1]));
    let nodes = || {
        vec![
            conv("x", "w", "a"),
            conv("a", "v", "b"),
            conv("b", "w", "y"),
        ]
    };
    assert_eq!(
        channels(&typed(model(nodes(), shared.clone(), &["y"]), &SHAPE)),
        BTreeMap::new()
    );
    let nodes = vec![conv("x", "w", "a"), conv("a", "v", "y")];
    assert_eq!(
        channels(&typed(model(nodes, shared, &["a", "y"]), &SHAPE)),
        BTreeMap::new()
    );
}
