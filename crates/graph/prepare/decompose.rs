//! Decomposes fused operators into those they stand for: operators of ONNX Runtime's optimizer, and
//! recent composite operators of ONNX. Quantization and engines then see the same operators in
//! models of any age.
//!
//! Unsupported variants stay as they are, such as ONNX Runtime's attention with a past and
//! convolutions in a blocked channel layout.

use std::collections::HashMap;

use crate::operators::{FusedOperatorDecomposer, OPSET_WITH_NORM, Operator, Property};
use crate::{Model, Node, Steps, shapes};

/// The operator whose second output holds the token counts that Attention reads.
const EMBEDDING: &str = "com.microsoft::EmbedLayerNormalization";

/// True for an operator, named with its domain, that this pass decomposes.
pub fn is_fused(operator: &str) -> bool {
    Operator::named(operator).has(Property::Fused)
}

/// Decomposes all nodes that it supports. Returns the number of nodes.
pub(super) fn decompose(model: &mut Model) -> usize {
    let mut count = 0;
    loop {
        // A decomposed node may produce the input of another one, whose shape the next pass knows.
        let written = pass(model);
        if written == 0 {
            return count;
        }
        count += written;
    }
}

fn pass(model: &mut Model) -> usize {
    let opset = model.opset();
    // ONNX Runtime's optimizer also writes LayerNormalization into models whose opset lacks it.
    let fused = |node: &Node| {
        let early = opset < OPSET_WITH_NORM && node.is("LayerNormalization");
        early || is_fused(&node.operator())
    };
    if !model.graph.nodes().iter().any(fused) {
        return 0;
    }
    let types = shapes::infer(&model.graph);
    let steps = Steps::new(model.graph.names());
    let nodes = model.graph.take_nodes();
    let embeddings = nodes
        .iter()
        .filter(|node| node.operator() == EMBEDDING)
        .filter_map(|node| node.output.get(1).cloned());
    let mut decomposer = FusedOperatorDecomposer {
        opset,
        types: &types,
        graph: &model.graph,
        token_counts: embeddings.collect(),
        transposed: HashMap::new(),
        steps,
    };
    let mut written = 0;
    for node in nodes {
        if fused(&node) && decomposer.write(&node).is_some() {
            written += 1;
        } else {
            decomposer.steps.nodes.push(node);
        }
    }
    let steps = decomposer.steps;
    steps.into_graph(&mut model.graph);
    written
}
