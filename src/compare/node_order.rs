//! Orders the nodes of a combined model so that compared values are produced side by side and freed
//! early.

use std::collections::HashMap;

use crate::graph::Node;
use crate::runtime::Watched;

/// Orders nodes depth first from the watched values and their counterparts, in the order of the
/// float model. Each node follows soon after its inputs.
pub(super) fn interleaved(nodes: Vec<Node>, watched: &[Watched]) -> Vec<Node> {
    let mut makers = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        // An omitted output has no name, and an omitted input is not made by it.
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            makers.insert(output.clone(), index);
        }
    }
    let wanted = watched
        .iter()
        .flat_map(|w| std::iter::once(&w.value).chain(&w.beside))
        .filter_map(|name| makers.get(name).copied());
    let mut order = Vec::with_capacity(nodes.len());
    let mut placed = vec![false; nodes.len()];
    for start in wanted.chain(0..nodes.len()) {
        let mut open = vec![start];
        while let Some(&node) = open.last() {
            if placed[node] {
                open.pop();
                continue;
            }
            let captured = nodes[node].captured();
            let before: Vec<usize> = nodes[node]
                .input
                .iter()
                .chain(&captured)
                .filter_map(|name| makers.get(name).copied())
                .filter(|&maker| !placed[maker])
                .collect();
            if before.is_empty() {
                placed[node] = true;
                order.push(node);
                open.pop();
            } else {
                open.extend(before);
            }
        }
    }
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|index| nodes[index].take())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_omitted_input_is_not_an_omitted_output() {
        let nodes = vec![
            Node::new("First", "first", &["x", ""], &["y"]),
            Node::new("Second", "second", &["y"], &["z", "", "sum"]),
        ];
        let ordered = interleaved(nodes, &[]);
        let titles: Vec<&str> = ordered.iter().map(Node::title).collect();
        assert_eq!(titles, ["first", "second"]);
    }
}
