//! LSTM, GRU and RNN as ONNX Runtime runs them. tract always runs forwards. It supports neither
//! clips, other activations than the defaults, nor lengths of sequences; with initial states and
//! both directions it takes one sequence. These run natively.

use octet_graph::operators::Operator;
use octet_graph::{Attribute, Node};

use super::native::gate_functions::is_activation;
use super::native::recurrent::{CELL_STATE, LENGTHS, STATE};

/// Rewrites a node for tract. A node with direction `reverse` becomes one that runs forwards,
/// between two reversals of the sequence. A node that tract can't run gets the name of the native
/// operator, or with activations that ONNX does not define one that is rejected.
pub(crate) fn in_order(mut node: Node) -> Vec<Node> {
    let usual = Operator::of(&node).activations;
    if usual.is_empty() {
        return vec![node];
    }
    let activations = node.attribute("activations").into_iter();
    let activations = activations.flat_map(|activations| activations.as_texts());
    let mut both = activations.clone().zip(usual.iter().cycle());
    let custom =
        both.any(|(activations, usual)| !activations.eq_ignore_ascii_case(usual.as_bytes()));
    if custom && !activations.clone().all(|name| is_activation(name)) {
        node.op_type = format!("{} with other activations", node.operator());
        return vec![node];
    }
    let given = |slot: usize| node.input_at(slot).is_some();
    let both = node.text("direction") == Some("bidirectional");
    let clipped = node.attribute("clip").is_some() || node.int("input_forget") == Some(1);
    if custom || clipped || given(LENGTHS) || both && (given(STATE) || given(CELL_STATE)) {
        node.op_type = format!("{} in general", node.op_type);
        return vec![node];
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
