//! Divides a quantized model into blocks: ranges of nodes whose layers learn together.
//!
//! A block ends where the integers of one value are all that later nodes read, as after a residual
//! block. It also ends before a node whose operator has no gradient here.

use std::collections::HashMap;
use std::ops::Range;

use octet_graph::{Graph, Node};

use crate::segments::{is_repeated, reads, resting};

/// Layers of a chain without branches that form a block.
const LAYERS_OF_CHAIN: usize = 3;
/// A region of more layers is cut through several values.
const MOST_LAYERS: usize = 8;

/// Nodes whose layers learn together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LayerBlock {
    pub(crate) nodes: Range<usize>,
    /// Resting values that it reads from outside, and those that are read outside.
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
}

/// The nodes between which a resting value is made and last read.
struct Lives<'a> {
    /// By value: the node that makes it, and the last that reads it.
    of: HashMap<&'a str, (usize, usize)>,
    /// The number of values that cross the place before each node.
    crossing: Vec<usize>,
}

impl<'a> Lives<'a> {
    /// The lives of all values but sizes, which follow from shapes.
    fn new(graph: &'a Graph, is_size: &dyn Fn(&str) -> bool) -> Lives<'a> {
        let count = graph.nodes().len();
        let mut of: HashMap<&str, (usize, usize)> = HashMap::new();
        for (index, node) in graph.nodes().iter().enumerate() {
            if is_repeated(node) {
                continue;
            }
            for value in reads(graph, node).filter(|value| !is_size(value)) {
                let made = graph.producer(value).map_or(0, |maker| maker + 1);
                of.entry(value).or_insert((made, made)).1 = index + 1;
            }
        }
        for output in graph.outputs() {
            let value = resting(graph, output.name.as_deref().unwrap_or_default());
            let made = graph.producer(value).map_or(0, |maker| maker + 1);
            of.entry(value).or_insert((made, made)).1 = count + 1;
        }
        let mut changes = vec![0i64; count + 3];
        for &(made, read) in of.values() {
            // It crosses the places from that after its maker to that before its last reader.
            changes[made] += 1;
            changes[read.max(made)] -= 1;
        }
        let mut open = 0;
        let crossing = changes.iter().map(|change| {
            open += change;
            open as usize
        });
        Lives {
            crossing: crossing.take(count + 1).collect(),
            of,
        }
    }
}

/// The blocks of a graph, in order. `supported` says which nodes have gradients; `layers` are the
/// nodes that learn.
pub(crate) fn blocks(
    graph: &Graph,
    supported: &[bool],
    layers: &[usize],
    is_size: &dyn Fn(&str) -> bool,
) -> Vec<LayerBlock> {
    let lives = Lives::new(graph, is_size);
    let count = graph.nodes().len();
    let quantizes = |node: &Node| node.op_type == "QuantizeLinear";
    let (mut found, mut begin, mut learned, mut branched) = (Vec::new(), 0, 0, false);
    let mut close = |nodes: Range<usize>| {
        if nodes.clone().any(|node| layers.contains(&node)) {
            found.push(nodes);
        }
    };
    for (place, node) in graph.nodes().iter().enumerate() {
        if is_repeated(node) {
            continue;
        }
        if !supported[place] {
            close(begin..place);
            (begin, learned, branched) = (place + 1, 0, false);
            continue;
        }
        learned += usize::from(layers.contains(&place));
        let next = place + 1;
        let crossing = lives.crossing[next];
        branched |= crossing > 1 && learned > 0;
        let single = crossing == 1;
        let ends = quantizes(node)
            && (single && (branched || learned >= LAYERS_OF_CHAIN) || learned >= MOST_LAYERS);
        // A chain ends before a region with branches begins.
        let before_branch = quantizes(node)
            && single
            && learned > 0
            && (next..count)
                .find(|&later| lives.crossing[later + 1] > 1 || quantizes(&graph.nodes()[later]))
                .is_some_and(|later| lives.crossing[later + 1] > 1);
        if ends || before_branch {
            close(begin..next);
            (begin, learned, branched) = (next, 0, false);
        }
    }
    close(begin..count);
    found
        .into_iter()
        .map(|nodes| block(graph, &lives, nodes))
        .collect()
}

/// A block of the whole graph.
pub(crate) fn whole(graph: &Graph, is_size: &dyn Fn(&str) -> bool) -> LayerBlock {
    block(graph, &Lives::new(graph, is_size), 0..graph.nodes().len())
}

fn block(graph: &Graph, lives: &Lives, nodes: Range<usize>) -> LayerBlock {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for (&value, &(made, read)) in &lives.of {
        // The maker of a value counts from one; the caller's values have none.
        let inside = nodes.contains(&made.wrapping_sub(1));
        if inside && read > nodes.end {
            outputs.push(value.to_string());
        }
    }
    for node in nodes.clone().map(|node| &graph.nodes()[node]) {
        if is_repeated(node) {
            continue;
        }
        for value in reads(graph, node) {
            let Some(&(made, _)) = lives.of.get(value) else {
                continue;
            };
            if !nodes.contains(&made.wrapping_sub(1)) {
                inputs.push(value.to_string());
            }
        }
    }
    for names in [&mut inputs, &mut outputs] {
        names.sort();
        names.dedup();
    }
    LayerBlock {
        nodes,
        inputs,
        outputs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_graph::Model;
    use octet_onnx::schema::{GraphProto, ModelProto, NodeProto, ValueInfoProto};

    /// Nodes "operator: inputs -> output"; `x` is the input, the last output that of the graph.
    fn graph(lines: &[&str]) -> Graph {
        let mut nodes = Vec::new();
        for line in lines {
            let (operator, rest) = line.split_once(": ").unwrap();
            let (inputs, output) = rest.split_once(" -> ").unwrap();
            let inputs: Vec<&str> = inputs.split(' ').collect();
            nodes.push(Node::new(operator, output, &inputs, &[output]).to_proto());
        }
        let last: &NodeProto = nodes.last().unwrap();
        let port = |name: &str| ValueInfoProto {
            name: Some(name.into()),
            ..Default::default()
        };
        let message = GraphProto {
            output: vec![port(&last.output[0])],
            input: vec![port("x")],
            node: nodes,
            ..Default::default()
        };
        Model::from_proto(ModelProto::from_graph(message, 19))
            .unwrap()
            .graph
    }

    fn found(graph: &Graph, unsupported: &[usize]) -> Vec<(Range<usize>, usize, usize)> {
        let nodes = graph.nodes().iter().enumerate();
        let layers: Vec<usize> = nodes
            .filter(|(_, node)| node.is("Conv"))
            .map(|(index, _)| index)
            .collect();
        let mut supported = vec![true; graph.nodes().len()];
        unsupported.iter().for_each(|&node| supported[node] = false);
        let blocks = blocks(graph, &supported, &layers, &|_| false);
        blocks
            .into_iter()
            .map(|block| (block.nodes, block.inputs.len(), block.outputs.len()))
            .collect()
    }

    #[test]
    fn a_chain_is_cut_after_three_layers() {
        let mut lines = vec!["QuantizeLinear: x -> q0".to_string()];
        for layer in 0..4 {
            lines.push(format!("DequantizeLinear: q{layer} -> d{layer}"));
            lines.push(format!("Conv: d{layer} -> c{layer}"));
            lines.push(format!("QuantizeLinear: c{layer} -> q{}", layer + 1));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let graph = graph(&lines);
        assert_eq!(found(&graph, &[]), [(0..10, 1, 1), (10..13, 1, 1)]);
        // An operator without a gradient belongs to no block.
        assert_eq!(found(&graph, &[5]), [(0..5, 1, 1), (6..13, 1, 1)]);
    }

    #[test]
    fn a_block_with_a_branch_stands_alone() {
        let graph = graph(&[
            "QuantizeLinear: x -> q0",
            "DequantizeLinear: q0 -> d0",
            "Conv: d0 -> c0",
            "QuantizeLinear: c0 -> q1",
            "DequantizeLinear: q1 -> d1",
            "Conv: d1 -> c1",
            "QuantizeLinear: c1 -> q2",
            "DequantizeLinear: q2 -> d2",
            "Conv: d2 -> c2",
            "Add: c2 d1 -> sum",
            "QuantizeLinear: sum -> q3",
            "DequantizeLinear: q3 -> d3",
            "Conv: d3 -> y",
        ]);
        assert_eq!(
            found(&graph, &[]),
            [(0..4, 1, 1), (4..11, 1, 1), (11..13, 1, 1)]
        );
        // The skip connection passes an operator without a gradient.
        assert_eq!(
            found(&graph, &[8]),
            [(0..4, 1, 1), (4..8, 1, 1), (9..13, 2, 1)]
        );
        let whole = whole(&graph, &|_| false);
        assert_eq!(
            (whole.inputs, whole.outputs),
            (vec!["x".to_string()], vec!["y".to_string()])
        );
    }
}
