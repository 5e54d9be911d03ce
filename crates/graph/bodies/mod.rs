//! A model whose bodies of If, Loop and Scan lie in the main graph, for passes that know no bodies.
//!
//! Every control node becomes two markers: one produces the inputs of its body, the other reads the
//! outputs of its bodies. Between them are the nodes of the bodies. Names that occur in two graphs get
//! others, so a name is one value. [`FlatModel::restore`] puts the nodes back: nodes whose values have
//! their old names into their old graph, new ones into the innermost graph that holds all their
//! readers. So two branches share what a pass made for both, and neither computes what only the other
//! needs.
//!
//! Constants stay in their graph. Those that a pass adds or computes go, like nodes, into the innermost
//! graph that holds all their readers: a weight that two branches share is stored once, around them.
//! ONNX Runtime requires the weight and its DequantizeLinear in one graph.

mod restore;

use std::collections::{HashMap, HashSet};

use crate::markers::{BODY_INPUTS, BODY_OUTPUTS};
use crate::operators::constant_value;
use crate::prepare::PrepareError;
use crate::{Attribute, Model, Names, Node, Subgraph, shapes};

/// Index of a graph: the main graph, or a body.
type GraphId = usize;

/// The main graph.
const MAIN: GraphId = 0;

/// The attribute of a marker with the index of its control node.
const CONTROL: &str = "control";

/// A model without bodies, and what it takes to restore them.
pub struct FlatModel {
    /// The model: control nodes are markers.
    pub model: Model,
    controls: Vec<Control>,
    /// The main graph comes first; its entry holds nothing.
    graphs: Vec<Body>,
    /// The graph in which a value is defined.
    home: HashMap<String, GraphId>,
}

/// A control node.
struct Control {
    /// The node; its bodies are empty.
    node: Node,
    /// The graph around it.
    around: GraphId,
    /// Its bodies, in the order of the attributes.
    bodies: Vec<GraphId>,
}

/// A body without nodes and constants.
#[derive(Default)]
struct Body {
    around: GraphId,
    depth: usize,
    frame: Option<Subgraph>,
}

impl FlatModel {
    /// Lays the bodies out. With `typed`, the types of all values are inferred. `None` if the model has
    /// no bodies, or if a node of the file has the name of a marker.
    pub fn new(model: &Model, typed: bool) -> Result<Option<FlatModel>, PrepareError> {
        if !model.graph.nodes().iter().any(is_control) {
            return Ok(None);
        }
        let mut layout = FlatLayout::new(model);
        let nodes = model.graph.nodes().to_vec();
        layout.graph(nodes, MAIN, &HashMap::new())?;
        if layout.has_markers {
            return Ok(None);
        }
        let FlatLayout {
            mut flat,
            nodes,
            controls,
            graphs,
            home,
            ..
        } = layout;
        flat.graph.set_nodes(nodes)?;
        if typed {
            shapes::annotate(&mut flat.graph);
        }
        Ok(Some(FlatModel {
            model: flat,
            controls,
            graphs,
            home,
        }))
    }

    /// The index of a marker's control node; `None` for other nodes.
    pub fn control_index(node: &Node) -> Option<usize> {
        let index = node.int(CONTROL).filter(|_| is_marker(node))?;
        usize::try_from(index).ok()
    }

    /// True for the marker that stands before the bodies of its control node.
    pub fn is_first_marker(node: &Node) -> bool {
        node.is(BODY_INPUTS)
    }

    /// The control node of a marker; `None` for other nodes.
    fn control_of(&self, node: &Node) -> Option<usize> {
        FlatModel::control_index(node).filter(|&index| index < self.controls.len())
    }
}

/// True for a marker in the place of a control node.
fn is_marker(node: &Node) -> bool {
    node.is(BODY_INPUTS) || node.is(BODY_OUTPUTS)
}

/// True for a node whose bodies are laid out.
fn is_control(node: &Node) -> bool {
    let runs = ["If", "Loop", "Scan"];
    let mut bodies = node.subgraphs().peekable();
    runs.iter().any(|operator| node.is(operator))
        && bodies.peek().is_some()
        && bodies.all(|body| body.sparse().is_empty())
}

/// A flat model that is being built.
struct FlatLayout {
    flat: Model,
    nodes: Vec<Node>,
    controls: Vec<Control>,
    graphs: Vec<Body>,
    home: HashMap<String, GraphId>,
    names: Names,
    /// True if the file has nodes with the operator of a marker.
    has_markers: bool,
}

impl FlatLayout {
    fn new(model: &Model) -> FlatLayout {
        let graph = &model.graph;
        let inputs = graph.inputs.iter().filter_map(|value| value.name.clone());
        let constants = graph.initializers.iter();
        let constants = constants.filter_map(|tensor| tensor.name.clone());
        let outputs = graph.nodes().iter().flat_map(|node| node.output.clone());
        let sparse = graph.sparse().iter().filter_map(|s| s.values.as_ref());
        let sparse = sparse.filter_map(|tensor| tensor.name.clone());
        let defined = inputs.chain(constants).chain(outputs).chain(sparse);
        FlatLayout {
            home: defined.map(|name| (name, MAIN)).collect(),
            names: graph.names(),
            flat: model.clone(),
            nodes: Vec::new(),
            controls: Vec::new(),
            graphs: vec![Body::default()],
            has_markers: false,
        }
    }

    /// Adds the nodes of a graph. `renamed` has the new names of the values that it sees.
    fn graph(
        &mut self,
        nodes: Vec<Node>,
        id: GraphId,
        renamed: &HashMap<String, String>,
    ) -> Result<(), PrepareError> {
        for mut node in nodes {
            self.has_markers |= is_marker(&node);
            node.rename_outputs(renamed);
            if is_control(&node) {
                self.control(node, id, renamed)?;
            } else {
                node.replace_uses(renamed);
                self.nodes.push(node);
            }
        }
        Ok(())
    }

    /// Adds a control node: the markers, and the bodies between them.
    fn control(
        &mut self,
        mut node: Node,
        around: GraphId,
        renamed: &HashMap<String, String>,
    ) -> Result<(), PrepareError> {
        let index = self.controls.len();
        for input in &mut node.input {
            if let Some(name) = renamed.get(input) {
                input.clone_from(name);
            }
        }
        let bodies: Vec<Subgraph> = node.subgraphs_mut().map(take_body).collect();
        let marker = |operator: &str, node: &Node| {
            Node::new(operator, node.title(), &[], &[])
                .with(Attribute::int(CONTROL, index as i64))
                .with(Attribute::text("operator", &node.op_type))
        };
        let mut first = marker(BODY_INPUTS, &node);
        let mut last = marker(BODY_OUTPUTS, &node);
        first.input.clone_from(&node.input);
        last.output.clone_from(&node.output);
        self.controls.push(Control {
            node,
            around,
            bodies: Vec::new(),
        });
        let place = self.nodes.len();
        self.nodes.push(first);
        for mut body in bodies {
            let id = self.graphs.len();
            self.controls[index].bodies.push(id);
            self.graphs.push(Body {
                around,
                depth: self.graphs[around].depth + 1,
                frame: None,
            });
            let renamed = self.define(&mut body, id, renamed)?;
            let names = |values: &[octet_onnx::schema::ValueInfoProto]| -> Vec<String> {
                let names = values.iter();
                names
                    .map(|value| value.name.clone().unwrap_or_default())
                    .collect()
            };
            self.nodes[place].output.extend(names(&body.inputs));
            last.input.extend(names(&body.outputs));
            let declared = body.inputs.iter().chain(&body.outputs);
            let declared = declared.chain(&body.value_info).cloned();
            self.flat.graph.value_info.extend(declared);
            for tensor in std::mem::take(&mut body.initializers) {
                self.flat.graph.initializers.insert(tensor);
            }
            let nodes = std::mem::take(&mut body.nodes);
            self.graphs[id].frame = Some(body);
            self.graph(nodes, id, &renamed)?;
        }
        self.nodes.push(last);
        Ok(())
    }

    /// Gives the values of a body names that no other graph has. Constants in nodes become
    /// initializers. Returns the names that the body's nodes see.
    fn define(
        &mut self,
        body: &mut Subgraph,
        id: GraphId,
        around: &HashMap<String, String>,
    ) -> Result<HashMap<String, String>, PrepareError> {
        let outputs = body.outputs.iter().filter_map(|value| value.name.clone());
        let outputs: HashSet<String> = outputs.collect();
        let mut kept = Vec::with_capacity(body.nodes.len());
        for node in std::mem::take(&mut body.nodes) {
            let returned = node
                .output
                .first()
                .is_some_and(|name| outputs.contains(name));
            match constant_value(&node)?.filter(|_| !returned) {
                Some(tensor) => body.initializers.push(tensor),
                None => kept.push(node),
            }
        }
        body.nodes = kept;
        let mut renamed = around.clone();
        for name in body.defined().filter(|name| !name.is_empty()) {
            let own = match self.home.contains_key(&name) {
                true => self.names.fresh(&name),
                false => name.clone(),
            };
            self.home.insert(own.clone(), id);
            renamed.insert(name, own);
        }
        let rename = |name: &mut Option<String>| {
            if let Some(new) = name.as_ref().and_then(|name| renamed.get(name)) {
                *name = Some(new.clone());
            }
        };
        let values = body.inputs.iter_mut().chain(&mut body.outputs);
        let values = values.chain(&mut body.value_info);
        values.for_each(|value| rename(&mut value.name));
        let constants = body.initializers.iter_mut();
        constants.for_each(|tensor| rename(&mut tensor.name));
        Ok(renamed)
    }
}

/// Takes a body out of its node; the frame of the attribute stays.
fn take_body(body: &mut Subgraph) -> Subgraph {
    let whole = body.clone();
    body.nodes.clear();
    body.initializers.clear();
    whole
}
