//! Schemes without samples on unusual graphs: shared weights, weights as outputs, subgraphs, empty
//! slots, taken names. The result is always a valid graph, every node has a decision, and errors
//! name their cause.
#![allow(clippy::unwrap_used)]

mod half_precision;
mod refused;

use octet_graph::{Model, Node};
use octet_onnx::schema::*;
use octet_quantize::*;
use octet_test_models::{assert_valid, choice, constant, model, node, producer};

type NamedScheme = (
    &'static str,
    fn(&Model, &[String]) -> Result<Quantized, QuantizeError>,
);

const SCHEMES: [NamedScheme; 5] = [
    ("dynamic", |model, keep| {
        quantize_dynamic(
            model,
            &DynamicSettings {
                keep_float: keep.to_vec(),
                ..Default::default()
            },
        )
    }),
    ("weights", |model, keep| {
        quantize_weights(
            model,
            &WeightSettings {
                keep_float: keep.to_vec(),
                ..Default::default()
            },
        )
    }),
    ("matmul_nbits", |model, keep| {
        blocks(model, keep, BlockForm::MatMulNBits)
    }),
    ("dequantize", |model, keep| {
        blocks(model, keep, BlockForm::Dequantize)
    }),
    ("float16", |model, keep| {
        quantize_float16(
            model,
            &Float16Settings {
                keep_float: keep.to_vec(),
                ..Default::default()
            },
        )
    }),
];

fn blocks(model: &Model, keep: &[String], form: BlockForm) -> Result<Quantized, QuantizeError> {
    let settings = BlockSettings {
        form,
        symmetric: Some(false),
        ..BlockSettings::default()
    };
    alike(model, &settings, keep)
}

/// Settings that apply these block settings to all weights.
fn alike(
    model: &Model,
    settings: &BlockSettings,
    keep: &[String],
) -> Result<Quantized, QuantizeError> {
    quantize_blocks(model, settings, &|_| settings.clone(), keep, None, None)
}

/// Quantizes by every scheme, checks that the result is valid, and passes it on with the scheme's
/// name.
fn each(model: &Model, mut see: impl FnMut(&str, &Quantized)) {
    for (name, scheme) in SCHEMES {
        let quantized = scheme(model, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_valid(&quantized.model);
        let bodies = model.graph.nodes().iter().flat_map(Node::subgraphs);
        let all = model.graph.nodes().len() + bodies.map(|body| body.nodes.len()).sum::<usize>();
        assert_eq!(quantized.nodes.len(), all, "{name}");
        for choice in &quantized.nodes {
            assert_eq!(
                choice.quantized,
                choice.reason.is_none(),
                "{name}: {choice:?}"
            );
        }
        let written = || octet_onnx::write(&scheme(model, &[]).unwrap().model.to_proto()).unwrap();
        assert_eq!(written(), written(), "{name} gives other bytes each time");
        see(name, &quantized);
    }
}

fn count(quantized: &Quantized, operator: &str) -> usize {
    let nodes = quantized.model.graph.nodes().iter();
    nodes.filter(|n| n.op_type == operator).count()
}

#[test]
fn a_weight_and_an_activation_read_twice_are_quantized_once() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("MatMul", &["x", "w"], "b"),
        node("Add", &["a", "b"], "y"),
    ];
    each(
        &model(nodes, vec![constant("w", &[64, 64])], &["y"]),
        |name, done| {
            let tensors: Vec<&str> = done.tensors.iter().map(|t| t.name.as_str()).collect();
            assert_eq!(tensors, ["w"], "{name}");
            assert!(count(done, "DynamicQuantizeLinear") <= 1);
            assert!(count(done, "DequantizeLinear") <= 1);
            let floats = done.model.graph.initializers.get("w");
            let gone = floats.is_none_or(|t| t.data_type == Some(DataType::Float16 as i32));
            assert!(gone, "{name} keeps the float weight");
        },
    );
}

#[test]
fn a_weight_read_by_float_operators_stays_in_the_model() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("Celu", &["w"], "b"),
        node("Gemm", &["a", "w", ""], "c"),
        node("Add", &["b", "c"], "y"),
    ];
    let weight = constant("w", &[64, 64]);
    each(&model(nodes, vec![weight.clone()], &["y"]), |name, done| {
        assert_eq!(
            done.model.graph.initializers.get("w"),
            Some(&weight),
            "{name}"
        );
        assert_eq!(producer(&done.model, "b").input, ["w"]);
        assert!(done.nodes[0].quantized && done.nodes[2].quantized, "{name}");
    });
}

#[test]
fn weights_that_are_outputs_and_values_in_the_middle_keep_their_names() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "inner"),
        node("MatMul", &["inner", "w"], "y"),
    ];
    let weight = constant("w", &[64, 64]);
    each(
        &model(nodes, vec![weight.clone()], &["inner", "y", "w", "x"]),
        |name, done| {
            assert_eq!(
                done.model.graph.initializers.get("w"),
                Some(&weight),
                "{name}"
            );
            let outputs: Vec<_> = done
                .model
                .graph
                .outputs()
                .iter()
                .filter_map(|v| v.name.clone())
                .collect();
            assert_eq!(outputs, ["inner", "y", "w", "x"], "{name}");
        },
    );
}

#[test]
fn bodies_are_quantized_and_share_the_weights_around_them() {
    let (choice, yes) = choice("MatMul", "y");
    let nodes = vec![
        node("MatMul", &["x", "w"], "inner"),
        node("MatMul", &["inner", "w"], "z"),
        choice.clone(),
    ];
    let weight = constant("w", &[64, 64]);
    each(
        &model(nodes, vec![weight.clone(), yes], &["y", "z"]),
        |name, done| {
            let held = done.model.graph.nodes().iter().find(|node| node.is("If"));
            let bodies: Vec<_> = held.unwrap().subgraphs().collect();
            assert_eq!(bodies.len(), 2, "{name}");
            for body in bodies {
                assert!(body.initializers.is_empty(), "{name}");
                let reads = body.nodes.iter().flat_map(|node| &node.input);
                assert!(
                    reads.into_iter().any(|input| input.starts_with('w')),
                    "{name}"
                );
            }
            let floats = done.model.graph.initializers.get("w");
            let gone = floats.is_none_or(|t| t.data_type == Some(DataType::Float16 as i32));
            assert!(gone, "{name} keeps the float weight");
            let products = done.nodes.iter().filter(|node| node.operator == "MatMul");
            assert!(products.clone().all(|node| node.quantized), "{name}");
            assert_eq!(products.count(), 4, "{name}");
        },
    );
}

#[test]
fn new_names_do_not_collide() {
    let taken = [
        "w_quantized",
        "w_scale",
        "w_zero_point",
        "x_quantized",
        "x_scale",
        "w_Q4",
        "w_scales",
        "w_DQ_Q4",
        "w_float16",
        "x_float16",
        "w_DequantizeLinear_Output",
        "a_output_quantized",
    ];
    let mut nodes = vec![node("MatMul", &["x", "w"], "a")];
    let mut last = "a";
    for name in taken {
        nodes.push(node("Abs", &[last], name));
        last = name;
    }
    nodes.push(node("Celu", &["w"], "e"));
    each(
        &model(nodes, vec![constant("w", &[64, 64])], &[last, "e"]),
        |_, _| {},
    );
}

#[test]
fn biases_of_every_kind_are_added() {
    let nodes = vec![
        node("Conv", &["x", "k", "b"], "a"),
        node("Conv", &["a", "k", ""], "c"),
        node("Conv", &["c", "k", "m"], "d"),
        node("Gemm", &["d", "w", "b"], "e"),
        node("Gemm", &["e", "w"], "f"),
        node("Abs", &["b"], "m"),
        node("Gemm", &["f", "w", "m"], "y"),
    ];
    let constants = vec![
        constant("k", &[64, 64, 1, 1]),
        constant("w", &[64, 64]),
        constant("b", &[64]),
    ];
    each(&model(nodes, constants, &["y"]), |name, done| {
        let reads = |bias: &str| {
            let nodes = done.model.graph.nodes().iter();
            nodes.filter(|n| n.input.iter().any(|i| i == bias)).count()
        };
        let in_add = match name {
            // One bias is reshaped at run time, one in the file.
            "dynamic" => (count(done, "Add"), count(done, "Reshape")),
            "matmul_nbits" => (count(done, "Add"), 0),
            _ => (0, 0),
        };
        let wanted = match name {
            "dynamic" => (4, 1),
            "matmul_nbits" => (2, 0),
            _ => (0, 0),
        };
        assert_eq!(in_add, wanted, "{name}");
        assert!(reads("m") >= 2, "{name}");
    });
}

#[test]
fn unsupported_nodes_stay_float_with_a_reason() {
    let infinite = TensorProto::from_f32("infinite", &[2], &[1.0, f32::INFINITY]);
    let mut scaled = node("Gemm", &["x", "w"], "g");
    scaled.set(AttributeProto::float("alpha", 0.5));
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("MatMul", &["a", "vector"], "b"),
        node("MatMul", &["a", "infinite"], "c"),
        node("MatMul", &["b", "c"], "d"),
        node("MatMul", &["w", "w"], "e"),
        node("MatMul", &["a", "nothing"], "f"),
        scaled,
        node("Gemm", &["a", "vector"], "h"),
        node("Conv", &["a", "w"], "i"),
        node("Gather", &["w", "x"], "j"),
    ];
    let outputs = ["d", "e", "f", "g", "h", "i", "j"];
    let constants = vec![
        constant("w", &[64, 64]),
        constant("vector", &[64]),
        infinite,
        constant("nothing", &[64, 0]),
    ];
    each(&model(nodes, constants, &outputs), |name, done| {
        assert!(done.nodes[0].quantized, "{name}");
        if name != "float16" {
            for odd in [1, 2, 3, 5, 7, 9] {
                assert!(!done.nodes[odd].quantized, "{name}: {:?}", done.nodes[odd]);
            }
        }
    });
}

#[test]
fn settings_keep_nodes_and_operators_float() {
    let nodes = || {
        vec![
            node("MatMul", &["x", "w"], "a"),
            node("MatMul", &["a", "w"], "y"),
        ]
    };
    let model = model(nodes(), vec![constant("w", &[64, 64])], &["y"]);
    for (name, scheme) in SCHEMES {
        let done = scheme(&model, &["y".to_owned()]).unwrap();
        assert_valid(&done.model);
        let choices: Vec<bool> = done.nodes.iter().map(|n| n.quantized).collect();
        assert_eq!(choices, [true, false], "{name}");
        assert!(done.model.graph.initializers.contains("w"));
        let error = scheme(&model, &["why".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`why`") && error.contains("`y`"), "{error}");
        let none = scheme(&model, &["a".to_owned(), "y".to_owned()]);
        assert!(matches!(none, Err(QuantizeError::Nothing { .. })), "{name}");
    }
}

#[test]
fn a_weight_has_blocks_for_each_settings_of_its_layers() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("MatMul", &["a", "w"], "b"),
        node("MatMul", &["b", "w"], "y"),
    ];
    let model = model(nodes, vec![constant("w", &[64, 64])], &["y"]);
    for form in [BlockForm::MatMulNBits, BlockForm::Dequantize] {
        let mut settings = Settings {
            scheme: octet_quantize::Scheme::Blocks,
            ..Settings::default()
        };
        settings.blocks.form = form;
        let own = BlockChoice {
            bits: Some(8),
            size: Some(64),
            ..BlockChoice::default()
        };
        settings.by_name.entry("a".into()).or_default().blocks = own.clone();
        settings.by_node.entry("y".into()).or_default().blocks = own;
        let done = apply(&model, &settings, None).unwrap();
        assert_valid(&done.model);
        let told: Vec<_> = done.tensors.iter().map(|t| (t.block, t.scales)).collect();
        assert_eq!(told, [(Some(64), 64), (Some(32), 128)]);
        // Nodes with equal settings share the integers.
        let read = |output| producer(&done.model, output).input[1].clone();
        assert_eq!(read("a"), read("y"));
        assert_ne!(read("a"), read("b"));
    }
}

#[test]
fn columns_shorter_than_a_block_stay_float() {
    let nodes = vec![
        node("MatMul", &["x", "short"], "a"),
        node("MatMul", &["a", "w"], "y"),
    ];
    let constants = vec![constant("short", &[2, 64]), constant("w", &[64, 64])];
    let settings = BlockSettings::default();
    let done = alike(&model(nodes, constants, &["y"]), &settings, &[]).unwrap();
    let reasons: Vec<_> = done.nodes.iter().map(|n| Some(n.reason?.words())).collect();
    assert!(
        reasons[0].is_some_and(|r| r.contains("more bytes than float32")) && reasons[1].is_none(),
        "{reasons:?}"
    );
    // The constant of an Add may be as large, but is not a weight.
    let nodes = vec![
        node("MatMul", &["x", "short"], "a"),
        node("Add", &["a", "short"], "y"),
    ];
    let model = model(nodes, vec![constant("short", &[1, 64])], &["y"]);
    let error = blocks(&model, &[], BlockForm::MatMulNBits).unwrap_err();
    assert!(
        error.to_string().contains("more bytes than float32"),
        "{error}"
    );
}
