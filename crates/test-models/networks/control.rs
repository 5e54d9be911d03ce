//! Networks with control flow or shapes that depend on values.

use octet_onnx::schema::*;

use super::{Network, declared_value, network};

fn subgraph(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(graph),
        ..Default::default()
    }
}

/// A convolution, then an If on its sum.
pub fn choices(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.conv("x", "c", [4, 3, 3, 3], 2, 1);
    net.node(
        "ReduceSum",
        &["c"],
        &["sum"],
        vec![AttributeProto::int("keepdims", 0)],
    );
    net.number("zero", 0.0);
    net.plain("Greater", &["sum", "zero"], "more");
    let branch = |operator: &str| {
        let mut inner = Network::default();
        inner.weight("inner.w", &[4, 4, 1, 1]);
        inner.plain("Conv", &["c", "inner.w"], "i");
        inner.plain(operator, &["i"], "taken");
        inner.output("taken");
        inner.graph()
    };
    let attributes = vec![
        subgraph("then_branch", branch("Relu")),
        subgraph("else_branch", branch("Tanh")),
    ];
    net.node("If", &["more"], &["either"], attributes);
    net.plain("GlobalAveragePool", &["either"], "y");
    net.output("y");
    net.model()
}

/// A convolution whose result goes through a Loop of products.
pub fn loops(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.conv("x", "c", [4, 3, 3, 3], 2, 1);
    net.plain("GlobalAveragePool", &["c"], "g");
    net.node("Flatten", &["g"], &["state"], vec![]);
    net.place("turns", 3);
    net.constant(TensorProto::from_raw(
        "yes",
        DataType::Bool,
        &[],
        vec![1u8].into(),
    ));
    let mut body = Network::default();
    body.input("turn", DataType::Int64, &[]);
    body.input("on", DataType::Bool, &[]);
    body.inputs
        .push(declared_value("before", DataType::Float, &["", "4"]));
    body.linear("before", "made", 4, 4);
    body.plain("Tanh", &["made"], "after");
    body.plain("Identity", &["on"], "still");
    body.plain("Identity", &["after"], "kept");
    for name in ["still", "after", "kept"] {
        body.output(name);
    }
    let attributes = vec![subgraph("body", body.graph())];
    net.node(
        "Loop",
        &["turns", "yes", "state"],
        &["last", "all"],
        attributes,
    );
    net.linear("last", "y", 4, 3);
    net.output("y");
    net.output("all");
    net.model()
}

/// Selects the values above a bound, counts them, and gathers as many from another tensor.
pub fn counted(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.conv("x", "c", [4, 3, 3, 3], 2, 1);
    net.list("flat", &[4, -1]);
    net.plain("Reshape", &["c", "flat"], "rows");
    net.number("bound", 0.0);
    net.plain("Greater", &["rows", "bound"], "above");
    net.plain("NonZero", &["above"], "places");
    let attributes = vec![AttributeProto::ints("perm", &[1, 0])];
    net.node("Transpose", &["places"], &["pairs"], attributes);
    net.plain("GatherND", &["rows", "pairs"], "values");
    net.size("values", 0, "count");
    net.list("ten", &[10]);
    net.plain("Min", &["count", "ten"], "k");
    net.plain("TopK", &["values", "k"], "unused");
    let top = net.nodes.last_mut();
    if let Some(top) = top {
        top.output = vec!["greatest".into(), "where".into()];
    }
    net.place("zero", 0);
    net.place("one", 1);
    net.list("front", &[0]);
    net.plain("Squeeze", &["k", "front"], "number");
    net.plain("Range", &["zero", "number", "one"], "range");
    let attributes = vec![AttributeProto::int("to", DataType::Float as i64)];
    net.node("Cast", &["range"], &["steps"], attributes);
    net.plain("Mul", &["greatest", "steps"], "weighted");
    net.list("column", &[-1, 1]);
    net.plain("Reshape", &["weighted", "column"], "columns");
    net.linear("columns", "y", 1, 3);
    net.output("y");
    net.model()
}
