//! Conversions to integer operators, on graphs of one operator between pairs.
//! `tests/oracle/test_formats.py` compares the results with ONNX Runtime.

use super::*;
use octet_onnx::schema::*;

/// A graph under construction: a value `name` has integers `name_q`, dequantized as `name_d`.
struct GraphBuilder {
    graph: GraphProto,
    opset: i64,
}

fn value(name: &str) -> ValueInfoProto {
    ValueInfoProto {
        name: Some(name.into()),
        ..Default::default()
    }
}

impl GraphBuilder {
    fn new(opset: i64, outputs: &[&str]) -> GraphBuilder {
        let graph = GraphProto {
            input: vec![value("x")],
            output: outputs.iter().map(|name| value(name)).collect(),
            ..Default::default()
        };
        GraphBuilder { graph, opset }
    }

    fn node(mut self, node: NodeProto) -> GraphBuilder {
        self.graph.node.push(node);
        self
    }

    fn op(self, operator: &str, inputs: &[&str], output: &str) -> GraphBuilder {
        self.node(NodeProto::new(operator, "named", inputs, &[output]))
    }

    fn constant(mut self, tensor: TensorProto) -> GraphBuilder {
        self.graph.initializer.push(tensor);
        self
    }

    fn parameters(self, name: &str, scale: f32, zero_point: TensorProto) -> GraphBuilder {
        let scales = TensorProto::from_f32(&format!("{name}_s"), &[], &[scale]);
        self.constant(scales).constant(TensorProto {
            name: Some(format!("{name}_z")),
            ..zero_point
        })
    }

    fn linear(self, operator: &str, from: &str, name: &str, to: &str) -> GraphBuilder {
        let (scale, zero_point) = (format!("{name}_s"), format!("{name}_z"));
        self.op(operator, &[from, &scale, &zero_point], to)
    }

    /// Adds a pair of u8 for a value, with the parameters of `like`.
    fn pair(self, name: &str, like: &str, to: &str) -> GraphBuilder {
        let integers = format!("{name}_q");
        self.linear("QuantizeLinear", name, like, &integers).linear(
            "DequantizeLinear",
            &integers,
            like,
            to,
        )
    }

    /// Adds an integer constant and its DequantizeLinear.
    fn weight(self, name: &str, integers: TensorProto, zero_point: TensorProto) -> GraphBuilder {
        self.parameters(name, 0.5, zero_point)
            .constant(TensorProto {
                name: Some(format!("{name}_q")),
                ..integers
            })
            .linear(
                "DequantizeLinear",
                &format!("{name}_q"),
                name,
                &format!("{name}_d"),
            )
    }

    fn model(self) -> Model {
        let opset = OperatorSetIdProto {
            domain: None,
            version: Some(self.opset),
        };
        Model::from_proto(ModelProto {
            graph: Some(self.graph),
            opset_import: vec![opset],
            ..Default::default()
        })
        .unwrap()
    }
}

fn u8_at(zero_point: u8) -> TensorProto {
    TensorProto::from_u8("", &[], &[zero_point])
}

fn i8_zero() -> TensorProto {
    TensorProto::from_i8("", &[], &[0])
}

/// `x`, quantized, as `x_d`.
fn start(opset: i64, outputs: &[&str]) -> GraphBuilder {
    GraphBuilder::new(opset, outputs)
        .parameters("x", 0.25, u8_at(7))
        .pair("x", "x", "x_d")
}

/// A model with one node from `x_d` to `y`, whose output has the scale of `x` or its own.
fn around(opset: i64, node: NodeProto, shares: bool) -> Model {
    start(opset, &["y_d"])
        .parameters("y", 0.5, u8_at(3))
        .node(node)
        .pair("y", if shares { "x" } else { "y" }, "y_d")
        .model()
}

fn operators(model: &Model) -> Vec<String> {
    let folded = to_integer_operators(model).unwrap();
    folded
        .graph
        .nodes()
        .iter()
        .map(|node| node.operator())
        .collect()
}

#[test]
fn operators_with_an_integer_form_are_converted() {
    let pool = AttributeProto::ints("kernel_shape", &[2, 2]);
    let linear = AttributeProto::text("mode", "linear");
    let dilated = AttributeProto::ints("dilations", &[2, 2]);
    for (operator, opset, attribute, shares, becomes) in [
        (
            "Sigmoid",
            13,
            None,
            false,
            Some("com.microsoft::QLinearSigmoid"),
        ),
        (
            "LeakyRelu",
            13,
            None,
            false,
            Some("com.microsoft::QLinearLeakyRelu"),
        ),
        (
            "Softmax",
            13,
            None,
            false,
            Some("com.microsoft::QLinearSoftmax"),
        ),
        (
            "AveragePool",
            13,
            Some(&pool),
            true,
            Some("com.microsoft::QLinearAveragePool"),
        ),
        ("AveragePool", 19, Some(&dilated), true, None),
        ("Flatten", 13, None, true, Some("Flatten")),
        ("Flatten", 13, None, false, None),
        ("MaxPool", 12, Some(&pool), true, Some("MaxPool")),
        ("MaxPool", 11, Some(&pool), true, None),
        ("Resize", 13, None, true, Some("Resize")),
        ("Resize", 11, None, true, None),
        ("Resize", 13, Some(&linear), true, None),
        ("Tanh", 13, None, false, None),
    ] {
        let mut node = NodeProto::new(operator, "named", &["x_d"], &["y"]);
        node.attribute.extend(attribute.cloned());
        let actual = operators(&around(opset, node, shares));
        let wanted = match becomes {
            Some(integer) => vec!["QuantizeLinear", integer, "DequantizeLinear"],
            None => vec![
                "QuantizeLinear",
                "DequantizeLinear",
                operator,
                "QuantizeLinear",
                "DequantizeLinear",
            ],
        };
        assert_eq!(actual, wanted, "{operator} at {opset}");
    }
}

#[test]
fn a_value_with_a_float_reader_keeps_its_pairs() {
    let sigmoid = || {
        start(13, &["y_d", "other"])
            .parameters("y", 0.5, u8_at(3))
            .op("Sigmoid", &["x_d"], "y")
            .pair("y", "y", "y_d")
    };
    let model = sigmoid().op("Tanh", &["y"], "other").model();
    assert!(operators(&model).contains(&"Sigmoid".to_string()));

    // A subgraph reads the value by its name.
    let branch = GraphProto {
        output: vec![value("y")],
        ..Default::default()
    };
    let then = AttributeProto {
        name: Some("then_branch".into()),
        g: Some(branch),
        ..Default::default()
    };
    let choice = NodeProto::new("If", "", &["yes"], &["other"]).with(then);
    let yes = TensorProto::from_raw("yes", DataType::Bool, &[], vec![1u8].into());
    let model = sigmoid().constant(yes).node(choice).model();
    assert!(operators(&model).contains(&"Sigmoid".to_string()));

    let mut model = sigmoid().op("Tanh", &["y_d"], "other").model();
    model.graph.push_output(value("y"));
    assert!(operators(&model).contains(&"Sigmoid".to_string()));
}

#[test]
fn types_without_a_kernel_keep_their_pairs() {
    let add = |weight: TensorProto, zero_point: TensorProto| {
        start(21, &["y_d"])
            .weight("w", weight, zero_point)
            .parameters("y", 0.5, u8_at(3))
            .op("Add", &["x_d", "w_d"], "y")
            .pair("y", "y", "y_d")
            .model()
    };
    let bytes = add(TensorProto::from_u8("", &[1], &[9]), u8_at(1));
    assert!(operators(&bytes).contains(&"com.microsoft::QLinearAdd".to_string()));
    let signed = add(TensorProto::from_i8("", &[1], &[9]), i8_zero());
    assert!(operators(&signed).contains(&"Add".to_string()));
    let wide = TensorProto::from_i16("", &[], &[0]);
    let wide = add(TensorProto::from_i16("", &[1], &[9]), wide);
    assert!(operators(&wide).contains(&"Add".to_string()));
}

/// A Gemm with the weight `w` and a bias of these integers and this scale.
fn gemm(alpha: f32, bias: i32, scale: f32) -> Model {
    let weight = TensorProto::from_i8("", &[1, 1], &[3]);
    let node = NodeProto::new("Gemm", "gemm", &["x_d", "w_d", "b_d"], &["y"]);
    start(13, &["y_d"])
        .weight("w", weight, i8_zero())
        .parameters("b", scale, TensorProto::from_i32("", &[], &[0]))
        .constant(TensorProto::from_i32("b_q", &[1], &[bias]))
        .linear("DequantizeLinear", "b_q", "b", "b_d")
        .parameters("y", 0.5, u8_at(3))
        .node(node.with(AttributeProto::float("alpha", alpha)))
        .pair("y", "y", "y_d")
        .model()
}

#[test]
fn the_bias_of_a_gemm_is_divided_by_alpha() {
    for (alpha, wanted) in [(1.0, 10), (0.5, 20), (4.0, 2)] {
        let folded = to_integer_operators(&gemm(alpha, 10, 0.125)).unwrap();
        let node = folded
            .graph
            .nodes()
            .iter()
            .find(|n| n.operator() == "com.microsoft::QGemm");
        let bias = folded
            .graph
            .initializers
            .get(&node.unwrap().input[6])
            .unwrap();
        assert_eq!(bias.to_i64().unwrap(), [wanted], "alpha {alpha}");
    }
    // Too large after the division, a zero alpha, or not in the scale of the products.
    for model in [
        gemm(0.1, i32::MAX, 0.125),
        gemm(0.0, 10, 0.125),
        gemm(1.0, 10, 0.2),
    ] {
        assert!(operators(&model).contains(&"Gemm".to_string()));
    }
}

#[test]
fn padding_with_zero_is_padding_with_the_zero_point() {
    for (inputs, wanted) in [(vec!["x_d", "pads"], 7), (vec!["x_d", "pads", "fill"], 11)] {
        let model = start(13, &["y_d"])
            .constant(TensorProto::from_i64("pads", &[2], &[1, 1]))
            .constant(TensorProto::from_f32("fill", &[], &[1.0]))
            .op("Pad", &inputs, "y")
            .pair("y", "x", "y_d")
            .model();
        let folded = to_integer_operators(&model).unwrap();
        let pad = folded.graph.nodes().iter().find(|n| n.is("Pad")).unwrap();
        let padding = folded.graph.initializers.get(&pad.input[2]).unwrap();
        assert_eq!(padding.to_i64().unwrap(), [wanted]);
        assert_eq!(pad.input[0], "x_q");
    }
}

#[test]
fn redundant_pairs_are_removed() {
    let model = start(13, &["z"])
        .pair("x_d", "x", "again")
        .op("Tanh", &["again"], "z")
        .model();
    assert_eq!(
        operators(&model),
        ["QuantizeLinear", "DequantizeLinear", "Tanh"]
    );
    let model = start(13, &["z"])
        .parameters("y", 0.25, u8_at(8))
        .pair("x_d", "y", "again")
        .op("Tanh", &["again"], "z")
        .model();
    assert_eq!(operators(&model).len(), 5);
}

#[test]
fn constants_of_removed_pairs_are_removed_and_unread_ones_stay() {
    let mut model = around(13, NodeProto::new("Flatten", "", &["x_d"], &["y"]), true);
    model.graph.value_info = vec![value("y"), value("y_q")];
    model
        .graph
        .initializers
        .insert(TensorProto::from_f32("unused", &[], &[1.0]));
    let folded = to_integer_operators(&model).unwrap();
    let notes: Vec<_> = folded
        .graph
        .value_info
        .iter()
        .flat_map(|v| &v.name)
        .collect();
    assert_eq!(notes, ["y_q"]);
    assert!(folded.graph.initializers.contains("unused"));
    assert_eq!(
        folded.header().opset_import.len(),
        1,
        "nothing of com.microsoft is used"
    );
    let sigmoid = around(13, NodeProto::new("Sigmoid", "", &["x_d"], &["y"]), false);
    assert_eq!(
        to_integer_operators(&sigmoid)
            .unwrap()
            .header()
            .opset_import
            .len(),
        2
    );
}
