//! Bodies of If and Loop, in memory and piece by piece.

use std::collections::{BTreeMap, HashSet};

use octet_graph::Model;
use octet_graph::prepare::prepare;
use octet_onnx::schema::{
    AttributeProto, AttributeType, DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    TensorProto,
};
use octet_onnx::{tensors, write};
use octet_quantize::apply;

use super::{Contents, SCHEMES, contents, convert, port, settings, weight};

fn body(
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    inputs: &[(&str, DataType, &[usize])],
    outputs: &[(&str, DataType, &[usize])],
) -> GraphProto {
    let ports = |list: &[(&str, DataType, &[usize])]| {
        let ports = list.iter();
        ports
            .map(|(name, element, shape)| port(name, *element, shape))
            .collect()
    };
    GraphProto {
        name: Some("body".into()),
        node: nodes,
        initializer: constants,
        input: ports(inputs),
        output: ports(outputs),
        ..GraphProto::default()
    }
}

fn graph(name: &str, value: GraphProto) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(value),
        ..AttributeProto::default()
    }
}

const SHAPE: &[usize] = &[10, 192];
const FLOAT: DataType = DataType::Float;

/// A merged decoder: the branches of an If use the same names, one weight of the main graph, and
/// copies of their own. One branch has another If in it, the other one a Loop over a product.
fn merged() -> ModelProto {
    let y: &[(&str, DataType, &[usize])] = &[("y", FLOAT, SHAPE)];
    let inner = |own: &str, size| {
        body(
            vec![
                NodeProto::new("MatMul", "inner_one", &["a", own], &["b"]),
                NodeProto::new("MatMul", "inner_two", &["b", "w"], &["c"]),
            ],
            vec![weight(own, &[192, 192], size)],
            &[],
            &[("c", FLOAT, SHAPE)],
        )
    };
    let turns = body(
        vec![
            NodeProto::new("MatMul", "turn", &["state", "w"], &["product"]),
            NodeProto::new("MatMul", "own", &["product", "v"], &["next"]),
            NodeProto::new("Identity", "again", &["going"], &["goes"]),
        ],
        vec![weight("v", &[192, 192], 0.12)],
        &[
            ("step", DataType::Int64, &[]),
            ("going", DataType::Bool, &[]),
            ("state", FLOAT, SHAPE),
        ],
        &[("goes", DataType::Bool, &[]), ("next", FLOAT, SHAPE)],
    );
    let then_branch = body(
        vec![
            NodeProto::new("MatMul", "project", &["x", "w"], &["a"]),
            NodeProto::new("If", "nested", &["long"], &["d"])
                .with(graph("then_branch", inner("v", 0.1)))
                .with(graph("else_branch", inner("u", 0.2))),
            NodeProto::new("Add", "last", &["d", "bias"], &["y"]),
        ],
        vec![weight("bias", &[192], 1.0)],
        &[],
        y,
    );
    let else_branch = body(
        vec![
            NodeProto::new("MatMul", "project", &["x", "w"], &["a"]),
            NodeProto::new("Loop", "loop", &["times", "", "a"], &["d"]).with(graph("body", turns)),
            NodeProto::new("Add", "last", &["d", "bias"], &["y"]),
        ],
        vec![
            TensorProto::from_i64("times", &[], &[3]),
            weight("bias", &[192], 1.0),
        ],
        &[],
        y,
    );
    let graph = GraphProto {
        name: Some("g".into()),
        node: vec![
            NodeProto::new("MatMul", "embed", &["ids", "e"], &["x"]),
            NodeProto::new("If", "merged", &["use_cache"], &["h"])
                .with(graph("then_branch", then_branch))
                .with(graph("else_branch", else_branch)),
            NodeProto::new("MatMul", "head", &["h", "w"], &["logits"]),
        ],
        initializer: vec![weight("w", &[192, 192], 0.1), weight("e", &[8, 192], 2.0)],
        input: vec![
            port("ids", FLOAT, &[10, 8]),
            port("use_cache", DataType::Bool, &[]),
            port("long", DataType::Bool, &[]),
        ],
        output: vec![port("logits", FLOAT, SHAPE)],
        ..GraphProto::default()
    };
    ModelProto {
        opset_import: vec![OperatorSetIdProto {
            domain: Some(String::new()),
            version: Some(11),
        }],
        ..ModelProto::from_graph(graph, 11)
    }
}

/// All constants of all graphs; fails if two have one name.
fn everywhere(model: &ModelProto) -> BTreeMap<String, Contents> {
    let mut found = BTreeMap::new();
    tensors::each(model, &mut |tensor| {
        let name = tensor.name.clone().unwrap_or_default();
        let other = found.insert(name.clone(), contents(tensor));
        assert!(other.is_none() || name.is_empty(), "{name} is there twice");
        Ok::<(), ()>(())
    })
    .unwrap();
    found
}

fn graphs<'a>(graph: &'a GraphProto, all: &mut Vec<&'a GraphProto>) {
    all.push(graph);
    for node in &graph.node {
        for attribute in &node.attribute {
            if let Some(body) = &attribute.g {
                graphs(body, all);
            }
        }
    }
}

#[test]
fn bodies_have_the_same_nodes_and_constants_in_memory_and_in_pieces() {
    let source = merged();
    let file = write(&source).unwrap();
    let prepared = prepare(Model::from_proto(source).unwrap()).unwrap().model;
    let more = [
        r#"{ "scheme": "blocks" }"#,
        r#"{ "scheme": "blocks", "blocks": { "method": "hqq", "symmetric": false } }"#,
    ];
    for text in SCHEMES.into_iter().chain(more) {
        let settings = settings(text);
        let (found, converted, restarts) = convert(&file, &settings);
        let wanted = apply(&prepared, &settings, None).unwrap();
        let proto = wanted.model.to_proto();
        assert_eq!(restarts, 0);
        let [streamed, whole] = [&found, &proto].map(everywhere);
        assert!(streamed == whole, "{text}");
        assert_eq!(converted.quantized.nodes, wanted.nodes, "{text}");
        let nodes = |model: &ModelProto| {
            let mut all = Vec::new();
            graphs(model.graph.as_ref().unwrap(), &mut all);
            let described = all.into_iter().map(|graph| {
                let nodes = graph.node.iter();
                let words = nodes.map(|node| {
                    let inputs = node.input.join(" ");
                    format!("{:?} {inputs} -> {}", node.op_type, node.output.join(" "))
                });
                words.collect::<Vec<_>>()
            });
            described.collect::<Vec<_>>()
        };
        if !settings.scheme.eq(&octet_quantize::Scheme::Blocks) || text.contains("float16") {
            assert_eq!(nodes(&found), nodes(&proto), "{text}");
        }

        // Every value of every graph has a name of its own.
        let mut all = Vec::new();
        graphs(found.graph.as_ref().unwrap(), &mut all);
        assert_eq!(all.len(), 6, "{text}");
        let mut seen = HashSet::new();
        for value in all.iter().flat_map(|graph| &graph.node) {
            for output in value.output.iter().filter(|name| !name.is_empty()) {
                assert!(seen.insert(output.clone()), "{text}: {output}");
            }
        }
        // The weight of five products is stored once, and none of the products is left as it was.
        let of_weight = streamed.keys().filter(|name| name.starts_with('w'));
        assert!(of_weight.count() <= 4, "{text}: {:?}", streamed.keys());
        let quantized = wanted.nodes.iter().filter(|node| node.operator == "MatMul");
        let kept: Vec<_> = quantized.filter(|node| !node.quantized).collect();
        // The columns of the first product are shorter than a block.
        let short = kept.iter().all(|node| node.node == "embed");
        assert!(short, "{text}: {kept:?}");
        Model::from_proto(found).unwrap();
    }
}

#[test]
fn a_constant_that_nothing_computes_stays_in_its_body() {
    let source = merged();
    let prepared = prepare(Model::from_proto(source).unwrap()).unwrap().model;
    let wanted = apply(&prepared, &settings(r#"{ "scheme": "blocks" }"#), None).unwrap();
    let proto = wanted.model.to_proto();
    let mut all = Vec::new();
    graphs(proto.graph.as_ref().unwrap(), &mut all);
    let named = |graph: &GraphProto, name: &str| {
        let mut constants = graph.initializer.iter();
        constants.any(|tensor| tensor.name.as_deref().unwrap_or_default().starts_with(name))
    };
    let with_bias = all.iter().filter(|graph| named(graph, "bias"));
    assert_eq!(with_bias.count(), 2);
    assert!(!named(all[0], "bias") && named(all[0], "w_Q4"));
    // A weight of one body stays there.
    for own in ["v_Q4", "u_Q4", "v_1_Q4"] {
        let holders = all.iter().filter(|graph| named(graph, own));
        assert!(!named(all[0], own) && holders.count() == 1, "{own}");
    }
    let reasons = wanted.nodes.iter().filter(|node| node.operator == "If");
    let reasons: Vec<String> = reasons.map(|node| format!("{:?}", node.reason)).collect();
    assert_eq!(reasons.len(), 2, "{:?}", wanted.nodes);
}
