//! LSTM, GRU and RNN as ONNX Runtime runs them. tract always runs forwards, and supports neither a
//! clip nor other activations than the defaults.

use octet_graph::operators::Operator;
use octet_graph::{Attribute, Node};

/// Rewrites a node for tract. A node with direction `reverse` becomes one that runs forwards,
/// between two reversals of the sequence. A node with unsupported attributes gets another operator
/// name, which is rejected.
pub(crate) fn in_order(mut node: Node) -> Vec<Node> {
    let usual = Operator::of(&node).activations;
    if usual.is_empty() {
        return vec![node];
    }
    let activations = node.attribute("activations").into_iter();
    let activations = activations.flat_map(|activations| activations.as_texts());
    let mut both = activations.zip(usual.iter().cycle());
    let custom =
        both.any(|(activations, usual)| !activations.eq_ignore_ascii_case(usual.as_bytes()));
    let clipped = node.attribute("clip").is_some() || node.int("input_forget") == Some(1);
    for (is_so, what) in [(custom, "other activations"), (clipped, "a clip")] {
        if is_so {
            node.op_type = format!("{} with {what}", node.operator());
            return vec![node];
        }
    }
    if node.text("direction") != Some("reverse") {
        return vec![node];
    }
    let time = node.int("layout").unwrap_or(0);
    let title = node.title().to_owned();
    let turn = |word: &str, from: &str, to: &str| {
        let turned = Node::new(
            "ReverseSequence",
            &format!("{title}.{word}"),
            &[from],
            &[to],
        );
        let along = turned.with(Attribute::int("time_axis", time));
        along.with(Attribute::int("batch_axis", 1 - time))
    };
    node.take("direction");
    let mut nodes = Vec::with_capacity(3);
    if let Some(input) = node.input.first_mut() {
        let turned = format!("{title}/turned");
        nodes.push(turn("turned", input, &turned));
        *input = turned;
    }
    let back = node.output.first_mut().filter(|name| !name.is_empty());
    let back = back.map(|output| {
        let turned = format!("{title}/back");
        let back = turn("back", &turned, output);
        *output = turned;
        back
    });
    nodes.push(node);
    nodes.extend(back);
    nodes
}
