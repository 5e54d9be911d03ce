//! Decomposes fused operators into those they stand for: operators of ONNX Runtime's optimizer, and
//! recent composite operators of ONNX. Quantization and engines then see the same operators in
//! models of any age.
//!
//! Unsupported variants stay as they are, such as ONNX Runtime's attention with a past and
//! convolutions in a blocked channel layout.

mod activation;
mod attention;
mod matmul;
mod norm;
mod onnx_attention;

use std::collections::{HashMap, HashSet};

use crate::inferred_value::{InferredValue, Types};
use crate::operators::{Operator, Property};
use crate::shapes;
use crate::{Dim, Graph, Model, Steps};
use octet_onnx::schema::{DataType, NodeProto};

/// The decomposition of some operators.
struct FusedOperatorRule {
    /// The operators, with their domain if it is not ONNX's own.
    operators: &'static [&'static str],
    /// Writes other nodes in place of a node with this first input and first output. `None` if its
    /// variant is unsupported.
    write: fn(&mut FusedOperatorDecomposer, &NodeProto, &str, &str) -> Option<()>,
}

/// All decompositions.
const ALL: [&[FusedOperatorRule]; 5] = [
    activation::RULES,
    attention::RULES,
    matmul::RULES,
    norm::RULES,
    onnx_attention::RULES,
];

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
    let fused = |node: &NodeProto| norm::is_early(node, opset) || is_fused(&node.operator());
    if !model.graph.nodes.iter().any(fused) {
        return 0;
    }
    let types = shapes::infer(&model.graph);
    let steps = Steps::new(model.graph.names());
    let nodes = std::mem::take(&mut model.graph.nodes);
    let embeddings = nodes
        .iter()
        .filter(|node| node.operator() == attention::EMBEDDING)
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

struct FusedOperatorDecomposer<'a> {
    opset: i64,
    types: &'a Types,
    /// Read for its constants; its nodes were moved out.
    graph: &'a Graph,
    /// Values that hold the number of valid tokens in each sequence.
    token_counts: HashSet<String>,
    /// Transposed constant matrices by their original names.
    transposed: HashMap<String, String>,
    steps: Steps,
}

impl FusedOperatorDecomposer<'_> {
    /// Decomposes a node. `None` if its variant is unsupported; nothing is written then.
    fn write(&mut self, node: &NodeProto) -> Option<()> {
        let output = node.output.first()?;
        let first = node.input_at(0)?;
        let of_floats = match self.known(Some(first)) {
            Some(known) => known.element == DataType::Float,
            None => true,
        };
        if !of_floats {
            return None;
        }
        let operator = node.operator();
        let mut all = ALL.iter().copied().flatten();
        let rule = all.find(|rule| rule.operators.contains(&operator.as_str()))?;
        (rule.write)(self, node, first, output)
    }

    /// Inferred type and shape of a value.
    fn known(&self, name: Option<&str>) -> Option<&InferredValue> {
        self.types.get(name?)
    }

    fn shape(&self, name: Option<&str>) -> Option<&[Dim]> {
        self.known(name)?.shape.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fused_operator_has_one_rule() {
        let rules = || ALL.iter().copied().flatten();
        let listed: Vec<&str> = rules().flat_map(|rule| rule.operators).copied().collect();
        for operator in Operator::all().filter(|one| one.has(Property::Fused)) {
            let name = match operator.domain {
                "" => operator.name.to_owned(),
                domain => format!("{domain}::{}", operator.name),
            };
            let count = listed.iter().filter(|&&one| one == name).count();
            assert_eq!(count, 1, "{name}");
        }
    }
}
