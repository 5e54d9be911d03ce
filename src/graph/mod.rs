//! The model as we think of it: nodes in order, values by name, who makes and who uses each.

mod edit;
mod joins;
mod node;
mod order;
mod settled;
mod slide;
mod steps;

pub use edit::Names;
pub use joins::Joins;
pub(crate) use node::MICROSOFT;
pub use slide::{Around, Slide};
pub(crate) use steps::Steps;

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::onnx::schema::{
    DataType, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    SparseTensorProto, TensorProto, TypeValue, ValueInfoProto,
};

/// What is wrong with a graph that was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum GraphError {
    #[error("the model has no graph: the file is cut short or is not a model; export it again")]
    NoGraph,
    #[error("a constant of the model has no name, so nothing can use it: export the model again")]
    NamelessConstant,
    #[error("two constants are both named {value}: export the model again")]
    TwoConstants { value: String },
    #[error("node {node} has no operator type: the file is damaged; export the model again")]
    NoOperator { node: String },
    #[error("node {node} makes the value {value}, which exists already: export the model again")]
    MadeTwice { value: String, node: String },
    #[error(
        "node {node} uses the value {value}, which nothing makes: the file is damaged or was cut out of a larger model wrongly; export it again"
    )]
    Dangling { value: String, node: String },
    #[error("the model's output {value} is made by no node: export the model again")]
    NoOutput { value: String },
    #[error("node {node} needs its own result: the graph has a cycle; export the model again")]
    Cycle { node: String },
}

/// One size of a shape.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number.
    Known(usize),
    /// A name, the same size wherever it stands in the model.
    Named(String),
    /// Anything.
    Unknown,
}

/// As it stands in a shape: `[1, 3, height, ?]`.
impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(size) => write!(f, "{size}"),
            Dim::Named(name) => f.write_str(name),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

/// Element type and, where known, shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorType {
    /// The ONNX element type.
    pub element: DataType,
    /// The shape; `None` where even the rank is unknown.
    pub shape: Option<Vec<Dim>>,
}

/// The constants of a graph by name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Initializers {
    tensors: Vec<TensorProto>,
    index: HashMap<String, usize>,
}

impl Initializers {
    /// The tensor of that name.
    pub fn get(&self, name: &str) -> Option<&TensorProto> {
        self.index.get(name).map(|&i| &self.tensors[i])
    }

    /// Whether there is one of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// Adds a tensor under its own name, replacing one of the same name.
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

    /// Keeps only the tensors for which `keep` holds, in their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&TensorProto) -> bool) {
        self.tensors.retain(|t| keep(t));
        self.index = self
            .tensors
            .iter()
            .enumerate()
            .map(|(i, t)| (t.name.clone().unwrap_or_default(), i))
            .collect();
    }

    /// Takes a tensor out.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }
}

/// A model: its main graph, and everything around it as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    header: ModelProto,
    /// The main graph.
    pub graph: Graph,
}

/// The main graph of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The operators, each after those whose values it uses.
    pub nodes: Vec<NodeProto>,
    /// The constants.
    pub initializers: Initializers,
    /// What is fed; may still name initializers before `prepare`.
    pub inputs: Vec<ValueInfoProto>,
    /// What comes out.
    pub outputs: Vec<ValueInfoProto>,
    /// Types of values in between, as far as the file or `prepare` knows them.
    pub value_info: Vec<ValueInfoProto>,
    rest: GraphProto,
}

impl Model {
    /// Takes a model apart; tensor bytes stay shared. Checks that each value is made once and before
    /// it is used, putting the nodes in such an order where they are not. What nodes leave empty at their ends is cut off.
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

    /// Puts the model together again; tensor bytes stay shared.
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

    /// Everything of the model but its graph.
    pub fn header(&self) -> &ModelProto {
        &self.header
    }

    /// The same, to change.
    pub fn header_mut(&mut self) -> &mut ModelProto {
        &mut self.header
    }

    /// The version of the default operator set; 1 where the file names none, as ONNX has it.
    pub fn opset(&self) -> i64 {
        version_of("", &self.header.opset_import).unwrap_or(1)
    }

    /// Says that operators of another domain are used, unless it is said already.
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

/// A domain by the one name it is known by here: ONNX's own has two.
pub(crate) fn domain_named(domain: Option<&str>) -> &str {
    match domain {
        None | Some("ai.onnx") => "",
        Some(domain) => domain,
    }
}

/// The version of a domain among those that are imported.
pub(crate) fn version_of(domain: &str, imports: &[OperatorSetIdProto]) -> Option<i64> {
    let mut imports = imports.iter();
    let of_domain = |import: &&OperatorSetIdProto| domain_named(import.domain.as_deref()) == domain;
    imports.find(of_domain)?.version
}

/// Who makes and who uses each value: a snapshot of a graph, to be taken anew after an edit.
#[derive(Debug, Default)]
pub struct Uses {
    producers: HashMap<String, usize>,
    consumers: HashMap<String, Vec<(usize, usize)>>,
    outputs: HashSet<String>,
}

impl Uses {
    /// The index of the node that makes the value.
    pub fn producer(&self, value: &str) -> Option<usize> {
        self.producers.get(value).copied()
    }

    /// The nodes that use the value, as (node, input slot), in order. Uses from inside
    /// subgraphs (If, Loop, Scan) count, with the slot `usize::MAX`.
    pub fn consumers(&self, value: &str) -> &[(usize, usize)] {
        self.consumers.get(value).map_or(&[], Vec::as_slice)
    }

    /// Whether a subgraph uses the value.
    pub fn is_captured(&self, value: &str) -> bool {
        let inside = |&(_, slot): &(usize, usize)| slot == usize::MAX;
        self.consumers(value).iter().any(inside)
    }

    /// Whether the value is an output of the graph.
    pub fn is_output(&self, value: &str) -> bool {
        self.outputs.contains(value)
    }
}

impl Graph {
    /// What its maker called it.
    pub fn name(&self) -> Option<&str> {
        self.rest.name.as_deref()
    }

    /// Takes nodes in place of its own, checked and put in order.
    pub(crate) fn set_nodes(&mut self, mut nodes: Vec<NodeProto>) -> Result<(), GraphError> {
        for node in &mut nodes {
            node.cut_absent_ends();
        }
        self.nodes = order::sorted(nodes, self)?;
        Ok(())
    }

    /// The element type of every value and constant of which it is declared.
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

    /// The constants that name only what is not zero, to change.
    pub(crate) fn sparse_mut(&mut self) -> &mut [SparseTensorProto] {
        &mut self.rest.sparse_initializer
    }

    /// Who makes and who uses each value now.
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

    /// Type and shape of a value: of an initializer, input, output or `value_info`.
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

    /// Whether the element type and each size, as a number or a name, is written of all that nodes make, but for what goes out, and
    /// all operators are ONNX's own.
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
        let mut made = self.nodes.iter().flat_map(|node| &node.output);
        made.all(|name| name.is_empty() || known.contains(name.as_str()))
    }
}

/// The tensor type a `ValueInfoProto` declares; `None` for sequences, maps and the like.
pub fn tensor_type_of(value: &ValueInfoProto) -> Option<TensorType> {
    let Some(TypeValue::TensorType(t)) = value.r#type.as_ref()?.value.as_ref() else {
        return None;
    };
    let element = DataType::try_from(t.elem_type?).ok()?;
    let shape = t.shape.as_ref().map(|s| {
        let dim = |d: &crate::onnx::schema::Dimension| match &d.value {
            Some(DimensionValue::DimValue(v)) if *v >= 0 => Dim::Known(*v as usize),
            Some(DimensionValue::DimParam(p)) if !p.is_empty() => Dim::Named(p.clone()),
            _ => Dim::Unknown,
        };
        s.dim.iter().map(dim).collect()
    });
    Some(TensorType { element, shape })
}
