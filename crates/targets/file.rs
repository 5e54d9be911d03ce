//! A graph of the file, indexed: producers, consumers and constants by name.

use std::collections::HashMap;

use octet_onnx::schema::{GraphProto, NodeProto, TensorProto};

/// A graph and what is needed to follow its values. Constants of the graphs around it are visible.
pub(crate) struct FileGraph<'a> {
    pub(crate) nodes: &'a [NodeProto],
    constants: HashMap<&'a str, &'a TensorProto>,
    producers: HashMap<&'a str, &'a NodeProto>,
    consumers: HashMap<&'a str, Vec<(&'a NodeProto, usize)>>,
}

impl<'a> FileGraph<'a> {
    /// Calls `each` with this graph and all graphs inside its nodes.
    pub(crate) fn visit(graph: &'a GraphProto, each: &mut dyn FnMut(&FileGraph<'a>)) {
        FileGraph::visit_inside(graph, &HashMap::new(), each);
    }

    fn visit_inside(
        graph: &'a GraphProto,
        around: &HashMap<&'a str, &'a TensorProto>,
        each: &mut dyn FnMut(&FileGraph<'a>),
    ) {
        let mut constants = around.clone();
        let initializers = graph.initializer.iter();
        constants.extend(initializers.filter_map(|tensor| Some((tensor.name.as_deref()?, tensor))));
        for node in graph.node.iter().filter(|node| node.is("Constant")) {
            let value = node.attribute("value").and_then(|value| value.t.as_ref());
            if let (Some(name), Some(tensor)) = (node.output.first(), value) {
                constants.insert(name, tensor);
            }
        }
        let mut found = FileGraph {
            nodes: &graph.node,
            constants,
            producers: HashMap::new(),
            consumers: HashMap::new(),
        };
        for node in &graph.node {
            for output in node.output.iter().filter(|name| !name.is_empty()) {
                found.producers.insert(output, node);
            }
            for (slot, input) in node.input.iter().enumerate() {
                if !input.is_empty() {
                    found.consumers.entry(input).or_default().push((node, slot));
                }
            }
        }
        each(&found);
        for inner in graph.node.iter().flat_map(NodeProto::subgraphs) {
            FileGraph::visit_inside(inner, &found.constants, each);
        }
    }

    /// The constant of this name.
    pub(crate) fn constant(&self, name: &str) -> Option<&'a TensorProto> {
        self.constants.get(name).copied()
    }

    /// The node that computes this value.
    pub(crate) fn producer(&self, name: &str) -> Option<&'a NodeProto> {
        self.producers.get(name).copied()
    }

    /// The nodes that read this value, with their slots.
    pub(crate) fn consumers(&self, name: &str) -> &[(&'a NodeProto, usize)] {
        self.consumers.get(name).map_or(&[], Vec::as_slice)
    }
}

/// True for an operator of this name in ONNX's domain or in ONNX Runtime's.
pub(crate) fn is_either(node: &NodeProto, operator: &str) -> bool {
    let domain = node.domain.as_deref().unwrap_or_default();
    node.op_type.as_deref() == Some(operator) && matches!(domain, "" | "ai.onnx" | "com.microsoft")
}
