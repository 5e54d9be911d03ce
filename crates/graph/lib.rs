//! The model's graph: nodes in topological order, values by name, producers and consumers.
//! `prepare` rewrites it from float to float.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod edit;
mod inferred_value;
mod node_builder;
pub mod operators;
mod order;
pub mod prepare;
mod shapes;
mod sliding_window;
pub mod validate;
mod weight_layout;

pub use edit::Names;
pub use node_builder::Steps;
pub use shapes::{is_random, is_shape_determined};
pub use sliding_window::{Around, SlidingWindow};
pub use weight_layout::LayerWeightLayout;

pub use octet_onnx::{Dim, TensorType, tensor_type_of};

use std::collections::{HashMap, HashSet};

use octet_onnx::schema::{
    DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
    TensorProto, ValueInfoProto,
};

/// Domain of ONNX Runtime's own operators.
pub const MICROSOFT: &str = "com.microsoft";

/// Errors in the graph of a model file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum GraphError {
    #[error("the model has no graph: the file is cut short or is not a model; export it again")]
    NoGraph,
    #[error("a constant of the model has no name, so nothing can use it: export the model again")]
    NamelessConstant,
    #[error("two constants are both named {value}: export the model again")]
    DuplicateConstant { value: String },
    #[error("node {node} has no operator type: the file is damaged; export the model again")]
    NoOperator { node: String },
    #[error("node {node} produces the value {value}, which already exists: export the model again")]
    ProducedTwice { value: String, node: String },
    #[error(
        "node {node} uses the value {value}, which nothing produces: the file is damaged or was extracted wrongly from a larger model; export it again"
    )]
    Dangling { value: String, node: String },
    #[error("no node produces the model's output {value}: export the model again")]
    NoOutput { value: String },
    #[error("node {node} depends on its own output: the graph has a cycle; export the model again")]
    Cycle { node: String },
}

/// Constants of a graph by name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Initializers {
    tensors: Vec<TensorProto>,
    index: HashMap<String, usize>,
}

impl Initializers {
    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&TensorProto> {
        self.index.get(name).map(|&i| &self.tensors[i])
    }

    /// Returns true if there is a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// Adds a tensor, replacing one of the same name.
    pub fn insert(&mut self, tensor: TensorProto) {
        let name = tensor.name.clone().unwrap_or_default();
        match self.index.get(&name) {
            Some(&i) => self.tensors[i] = tensor,
            None => {
                self.index.insert(name, self.tensors.len());
                self.tensors.push(tensor);
            }
        }
    }

    /// Keeps the tensors that satisfy `keep`, in their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&TensorProto) -> bool) {
        self.tensors.retain(|t| keep(t));
        self.index = self
            .tensors
            .iter()
            .enumerate()
            .map(|(i, t)| (t.name.clone().unwrap_or_default(), i))
            .collect();
    }

    /// Removes and returns a tensor.
    pub fn remove(&mut self, name: &str) -> Option<TensorProto> {
        let at = self.index.remove(name)?;
        self.index
            .values_mut()
            .filter(|i| **i > at)
            .for_each(|i| *i -= 1);
        Some(self.tensors.remove(at))
    }

    /// All tensors in order.
    pub fn iter(&self) -> impl Iterator<Item = &TensorProto> {
        self.tensors.iter()
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Returns true if there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }
}

/// A model: its main graph, and the unchanged rest of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    header: ModelProto,
    /// Main graph.
    pub graph: Graph,
}

/// The main graph of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Nodes in topological order.
    pub nodes: Vec<NodeProto>,
    /// Constants.
    pub initializers: Initializers,
    /// Inputs; before `prepare` they may include initializers.
    pub inputs: Vec<ValueInfoProto>,
    /// Outputs.
    pub outputs: Vec<ValueInfoProto>,
    /// Types of intermediate values, as far as the file or `prepare` knows them.
    pub value_info: Vec<ValueInfoProto>,
    rest: GraphProto,
}

impl Model {
    /// Builds a model from its message; tensor bytes are shared. Checks that each value is produced
    /// once, and sorts the nodes topologically if necessary. Trailing empty input and output names
    /// of nodes are removed.
    pub fn from_proto(mut header: ModelProto) -> Result<Model, GraphError> {
        let mut rest = header.graph.take().ok_or(GraphError::NoGraph)?;
        let initializers = order::constants(std::mem::take(&mut rest.initializer))?;
        let nodes = std::mem::take(&mut rest.node);
        let mut graph = Graph {
            nodes: Vec::new(),
            initializers,
            inputs: std::mem::take(&mut rest.input),
            outputs: std::mem::take(&mut rest.output),
            value_info: std::mem::take(&mut rest.value_info),
            rest,
        };
        graph.set_nodes(nodes)?;
        Ok(Model { header, graph })
    }

    /// Converts the model to its message; tensor bytes are shared.
    pub fn to_proto(&self) -> ModelProto {
        let graph = &self.graph;
        let mut header = self.header.clone();
        header.graph = Some(GraphProto {
            node: graph.nodes.clone(),
            initializer: graph.initializers.tensors.clone(),
            input: graph.inputs.clone(),
            output: graph.outputs.clone(),
            value_info: graph.value_info.clone(),
            ..graph.rest.clone()
        });
        header
    }

    /// The model's message without its graph.
    pub fn header(&self) -> &ModelProto {
        &self.header
    }

    /// Mutable access to the model's message without its graph.
    pub fn header_mut(&mut self) -> &mut ModelProto {
        &mut self.header
    }

    /// The opset of ONNX's own operators; 1 if the file names none, as ONNX defines.
    pub fn opset(&self) -> i64 {
        version_of("", &self.header.opset_import).unwrap_or(1)
    }

    /// Adds an operator set of another domain, unless it is imported already.
    pub fn import(&mut self, domain: &str, version: i64) {
        let imports = &mut self.header.opset_import;
        if !imports.iter().any(|o| o.domain.as_deref() == Some(domain)) {
            imports.push(OperatorSetIdProto {
                domain: Some(domain.into()),
                version: Some(version),
            });
        }
    }
}

/// The canonical name of a domain; ONNX's own domain has two.
pub(crate) fn domain_named(domain: Option<&str>) -> &str {
    match domain {
        None | Some("ai.onnx") => "",
        Some(domain) => domain,
    }
}

/// The imported version of a domain.
pub(crate) fn version_of(domain: &str, imports: &[OperatorSetIdProto]) -> Option<i64> {
    let mut imports = imports.iter();
    let of_domain = |import: &&OperatorSetIdProto| domain_named(import.domain.as_deref()) == domain;
    imports.find(of_domain)?.version
}

/// Producers and consumers of each value: a snapshot that is outdated after an edit.
#[derive(Debug, Default)]
pub struct Uses {
    producers: HashMap<String, usize>,
    consumers: HashMap<String, Vec<(usize, usize)>>,
    outputs: HashSet<String>,
}

impl Uses {
    /// Index of the node that produces the value.
    pub fn producer(&self, value: &str) -> Option<usize> {
        self.producers.get(value).copied()
    }

    /// The nodes that use the value, as (node, input slot), in order. Uses within subgraphs (If,
    /// Loop, Scan) have the slot `usize::MAX`.
    pub fn consumers(&self, value: &str) -> &[(usize, usize)] {
        self.consumers.get(value).map_or(&[], Vec::as_slice)
    }

    /// Returns true if a subgraph uses the value.
    pub fn is_captured(&self, value: &str) -> bool {
        let inside = |&(_, slot): &(usize, usize)| slot == usize::MAX;
        self.consumers(value).iter().any(inside)
    }

    /// Returns true if the value is an output of the graph.
    pub fn is_output(&self, value: &str) -> bool {
        self.outputs.contains(value)
    }
}

impl Graph {
    /// Name of the graph.
    pub fn name(&self) -> Option<&str> {
        self.rest.name.as_deref()
    }

    /// Replaces the nodes, after a check and a topological sort.
    pub(crate) fn set_nodes(&mut self, mut nodes: Vec<NodeProto>) -> Result<(), GraphError> {
        for node in &mut nodes {
            order::cut_absent_ends(node);
        }
        self.nodes = order::sorted(nodes, self)?;
        Ok(())
    }

    /// Element types of all declared values and of constants.
    pub fn element_types(&self) -> HashMap<&str, DataType> {
        let declared = self
            .inputs
            .iter()
            .chain(&self.outputs)
            .chain(&self.value_info);
        let values =
            declared.filter_map(|v| Some((v.name.as_deref()?, tensor_type_of(v)?.element)));
        let constants = self.initializers.iter();
        let constants = constants.filter_map(|t| Some((t.name.as_deref()?, t.element().ok()?)));
        values.chain(constants).collect()
    }

    /// Mutable access to the sparse constants.
    pub(crate) fn sparse_mut(&mut self) -> &mut [SparseTensorProto] {
        &mut self.rest.sparse_initializer
    }

    /// Current producers and consumers of each value.
    pub fn uses(&self) -> Uses {
        let mut uses = Uses::default();
        for (i, node) in self.nodes.iter().enumerate() {
            for output in node.output.iter().filter(|o| !o.is_empty()) {
                uses.producers.insert(output.clone(), i);
            }
            for (slot, input) in node.input.iter().enumerate().filter(|(_, n)| !n.is_empty()) {
                uses.consumers
                    .entry(input.clone())
                    .or_default()
                    .push((i, slot));
            }
            for captured in node.captured() {
                uses.consumers
                    .entry(captured)
                    .or_default()
                    .push((i, usize::MAX));
            }
        }
        uses.outputs = self.outputs.iter().filter_map(|o| o.name.clone()).collect();
        uses
    }

    /// Type and shape of an initializer, input, output or `value_info`.
    pub fn tensor_type(&self, name: &str) -> Option<TensorType> {
        if let Some(t) = self.initializers.get(name) {
            let shape = t
                .dims
                .iter()
                .map(|&d| Dim::Known(d.max(0) as usize))
                .collect();
            let element = DataType::try_from(t.data_type.unwrap_or(0)).ok()?;
            return Some(TensorType {
                element,
                shape: Some(shape),
            });
        }
        [&self.inputs, &self.outputs, &self.value_info]
            .into_iter()
            .flatten()
            .find(|v| v.name.as_deref() == Some(name))
            .and_then(tensor_type_of)
    }

    /// Returns true if every node output except graph outputs has a declared element type and
    /// dimensions. All operators must be ONNX's own.
    pub fn is_typed(&self) -> bool {
        let foreign =
            |node: &NodeProto| !matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
        if self.nodes.iter().any(foreign) {
            return false;
        }
        let shape = |value: &ValueInfoProto| tensor_type_of(value)?.shape;
        let whole = |value: &&ValueInfoProto| {
            shape(value).is_some_and(|shape| !shape.contains(&Dim::Unknown))
        };
        let typed = self.value_info.iter().filter(whole);
        let known: HashSet<&str> = typed
            .chain(&self.outputs)
            .filter_map(|value| value.name.as_deref())
            .collect();
        let mut outputs = self.nodes.iter().flat_map(|node| &node.output);
        outputs.all(|name| name.is_empty() || known.contains(name.as_str()))
    }
}
