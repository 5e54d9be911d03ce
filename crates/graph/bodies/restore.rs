//! From the flat model back to bodies.

use std::collections::{HashMap, HashSet};

use super::{FlatModel, GraphId, MAIN};
use crate::markers::{BODY_INPUTS, BODY_OUTPUTS};
use crate::{Graph, Names, Node, Subgraph, tensor_type_of};
use octet_onnx::schema::{DataType, TensorProto, ValueInfoProto};

/// A node in a list, or a control node whose bodies are lists of their own.
enum Placed {
    Node(Node),
    Control {
        index: usize,
        inputs: Vec<String>,
        outputs: Vec<String>,
    },
}

/// The rewritten nodes by graph.
struct Placement {
    lists: Vec<Vec<Placed>>,
    /// Names of the inputs of the body, and of the outputs of all bodies, by control node.
    ports: Vec<[Vec<String>; 2]>,
    /// The innermost graph that holds all readers of a value.
    readers: HashMap<String, GraphId>,
    /// The graph of each value.
    values: HashMap<String, GraphId>,
    elements: HashMap<String, DataType>,
    constants: HashMap<GraphId, Vec<TensorProto>>,
    names: Names,
}

impl FlatModel {
    /// Puts the nodes of a rewritten flat graph back into bodies. New constants, and those in
    /// `computed`, go into the innermost graph that holds all their readers.
    pub fn restore(&self, graph: &mut Graph, computed: &HashSet<String>) {
        let elements = graph.element_types().into_iter();
        let elements = elements.map(|(name, element)| (name.to_owned(), element));
        let mut placement = Placement {
            lists: self.graphs.iter().map(|_| Vec::new()).collect(),
            ports: self.controls.iter().map(|_| Default::default()).collect(),
            readers: HashMap::new(),
            values: HashMap::new(),
            elements: elements.collect(),
            constants: HashMap::new(),
            names: graph.names(),
        };
        let nodes = graph.take_nodes();
        let places = self.places(graph, &nodes, &mut placement);
        for (node, place) in nodes.into_iter().zip(places) {
            self.put(node, place, &mut placement);
        }
        self.constants(graph, computed, &mut placement);
        graph.value_info.retain(|value| {
            let name = value.name.as_deref().unwrap_or_default();
            let place = placement.values.get(name);
            place
                .or_else(|| self.home.get(name))
                .is_none_or(|&id| id == MAIN)
        });
        let nodes = self.nodes_of(MAIN, &mut placement);
        graph.replace_nodes(nodes);
    }

    /// The graph of each node.
    fn places(&self, graph: &Graph, nodes: &[Node], to: &mut Placement) -> Vec<GraphId> {
        let outputs = graph.outputs().iter();
        for name in outputs.filter_map(|value| value.name.clone()) {
            to.readers.insert(name, MAIN);
        }
        let mut places = vec![MAIN; nodes.len()];
        for (at, node) in nodes.iter().enumerate().rev() {
            let control = self.control_of(node).map(|index| &self.controls[index]);
            let place = match control {
                Some(control) => control.around,
                None => self.place(node, &to.readers),
            };
            places[at] = place;
            let mut read = |name: &str, by: GraphId| {
                let known = to.readers.get(name).map_or(by, |&id| self.common(id, by));
                to.readers.insert(name.to_owned(), known);
            };
            match control.filter(|_| node.is(BODY_OUTPUTS)) {
                Some(control) => {
                    let each = control.bodies.iter();
                    let each = each.flat_map(|&id| vec![id; self.returned(id)]);
                    for (name, body) in node.input.iter().zip(each) {
                        read(name, body);
                    }
                }
                None => {
                    let captured = node.captured();
                    for name in node.input.iter().chain(&captured) {
                        read(name, place);
                    }
                }
            }
        }
        places
    }

    /// The graph of a plain node: that of its values, else that of its readers.
    fn place(&self, node: &Node, readers: &HashMap<String, GraphId>) -> GraphId {
        let known = node.output.iter().find_map(|name| self.home.get(name));
        if let Some(&known) = known {
            return known;
        }
        let read = node.output.iter().filter_map(|name| readers.get(name));
        let read = read.copied().reduce(|one, other| self.common(one, other));
        read.unwrap_or_else(|| {
            let homes = node.input.iter().filter_map(|name| self.home.get(name));
            homes
                .copied()
                .max_by_key(|&id| self.graphs[id].depth)
                .unwrap_or(MAIN)
        })
    }

    /// The innermost graph around both.
    fn common(&self, mut one: GraphId, mut other: GraphId) -> GraphId {
        while one != other {
            match self.graphs[one].depth >= self.graphs[other].depth {
                true => one = self.graphs[one].around,
                false => other = self.graphs[other].around,
            }
        }
        one
    }

    /// The number of a body's outputs.
    fn returned(&self, id: GraphId) -> usize {
        let frame = self.graphs[id].frame.as_ref();
        frame.map_or(0, |frame| frame.outputs.len())
    }

    fn put(&self, node: Node, place: GraphId, to: &mut Placement) {
        let Some(index) = self.control_of(&node) else {
            let names = node.output.iter().cloned();
            to.values.extend(names.map(|name| (name, place)));
            to.lists[place].push(Placed::Node(node));
            return;
        };
        if node.is(BODY_INPUTS) {
            let body = self.controls[index].bodies.first().copied();
            let names = node.output.iter().cloned();
            to.values
                .extend(names.map(|name| (name, body.unwrap_or(place))));
            to.ports[index] = [node.output, Vec::new()];
            // The inputs of the control node come with the other marker.
            to.lists[place].push(Placed::Control {
                index,
                inputs: node.input,
                outputs: Vec::new(),
            });
        } else {
            let names = node.output.iter().cloned();
            to.values.extend(names.map(|name| (name, place)));
            to.ports[index][1] = node.input;
            let list = &mut to.lists[place];
            let first = list.iter().position(
                |placed| matches!(placed, Placed::Control { index: other, .. } if *other == index),
            );
            // The control node takes the place of the last marker, behind all that its bodies read.
            if let Some(Placed::Control { inputs, .. }) = first.map(|at| list.remove(at)) {
                list.push(Placed::Control {
                    index,
                    inputs,
                    outputs: node.output,
                });
            }
        }
    }

    /// Takes the constants of bodies out of the main graph.
    fn constants(&self, graph: &mut Graph, computed: &HashSet<String>, to: &mut Placement) {
        let body_of = |name: &str| {
            let reader = to.readers.get(name).copied();
            let home = self.home.get(name).copied();
            let place = match home.filter(|_| !computed.contains(name)) {
                Some(home) => self.common(home, reader.unwrap_or(home)),
                // Nothing but its readers decides on a new constant.
                None => reader.unwrap_or(MAIN),
            };
            (place != MAIN && !graph.is_output(name)).then_some(place)
        };
        let places: HashMap<String, GraphId> = graph
            .initializers
            .iter()
            .filter_map(|tensor| Some((tensor.name.clone()?, body_of(tensor.name.as_deref()?)?)))
            .collect();
        let mut inner: HashMap<GraphId, Vec<TensorProto>> = HashMap::new();
        graph.initializers.retain(|tensor| {
            let place = tensor.name.as_ref().and_then(|name| places.get(name));
            if let Some(&place) = place {
                inner.entry(place).or_default().push(tensor.clone());
            }
            place.is_none()
        });
        to.values.extend(places);
        to.constants = inner;
    }

    /// The nodes of a graph, control nodes with their bodies.
    fn nodes_of(&self, id: GraphId, from: &mut Placement) -> Vec<Node> {
        let list = std::mem::take(&mut from.lists[id]);
        let node = |placed| match placed {
            Placed::Node(node) => node,
            Placed::Control {
                index,
                inputs,
                outputs,
            } => self.control_node(index, inputs, outputs, from),
        };
        list.into_iter().map(node).collect()
    }

    fn control_node(
        &self,
        index: usize,
        inputs: Vec<String>,
        outputs: Vec<String>,
        from: &mut Placement,
    ) -> Node {
        let control = &self.controls[index];
        let [body_inputs, mut returned] = std::mem::take(&mut from.ports[index]);
        let skipped = usize::from(control.node.is("Loop"));
        let mut bodies = Vec::new();
        for &id in &control.bodies {
            let later = returned.split_off(self.returned(id).min(returned.len()));
            let names = std::mem::replace(&mut returned, later);
            // What the types say of a value that a pass added stands at the output of the node.
            let behind = |slot: usize| slot.checked_sub(skipped).and_then(|slot| outputs.get(slot));
            let behind: Vec<Option<DataType>> = (0..names.len())
                .map(|slot| from.elements.get(behind(slot)?).copied())
                .collect();
            bodies.push(self.body(id, &body_inputs, names, &behind, from));
        }
        let mut node = control.node.clone();
        if node.name.as_deref().unwrap_or_default().is_empty() && node.output != outputs {
            // An unnamed node is identified by its output, which has another name now.
            node.name = Some(node.title().to_owned());
        }
        (node.input, node.output) = (inputs, outputs);
        for (place, body) in node.subgraphs_mut().zip(bodies) {
            *place = body;
        }
        node
    }

    fn body(
        &self,
        id: GraphId,
        inputs: &[String],
        returned: Vec<String>,
        behind: &[Option<DataType>],
        from: &mut Placement,
    ) -> Subgraph {
        let mut nodes = self.nodes_of(id, from);
        let Some(mut body) = self.graphs[id].frame.clone() else {
            return Subgraph::default();
        };
        body.initializers = from.constants.remove(&id).unwrap_or_default();
        for (value, name) in body.inputs.iter_mut().zip(inputs) {
            value.name = Some(name.clone());
            retype(value, from.elements.get(name).copied());
        }
        for (slot, (value, name)) in body.outputs.iter_mut().zip(returned).enumerate() {
            let known = from.elements.get(&name).copied().or(behind[slot]);
            let own = match from.values.get(&name) == Some(&id) {
                true => name,
                false => {
                    // ONNX Runtime refuses a body that returns a value of the graph around it.
                    let own = from.names.fresh(&format!("{name}_returned"));
                    let title = from.names.fresh(&format!("{own}_Identity"));
                    nodes.push(Node::new("Identity", &title, &[&name], &[&own]));
                    own
                }
            };
            value.name = Some(own);
            retype(value, known);
        }
        body.value_info.retain_mut(|value| {
            let name = value.name.clone().unwrap_or_default();
            retype(value, from.elements.get(&name).copied());
            from.values.get(&name) == Some(&id)
        });
        body.nodes = nodes;
        body
    }
}

/// Changes the element type that a value declares.
fn retype(value: &mut ValueInfoProto, element: Option<DataType>) {
    if let (Some(element), true) = (element, tensor_type_of(value).is_some()) {
        value.set_element(element);
    }
}

impl Graph {
    /// Replaces constants of the main graph and of bodies by others of the same names. A name that no
    /// graph has becomes a constant of the main graph.
    pub fn fill_constants(&mut self, constants: Vec<TensorProto>) {
        let mut inner: HashMap<String, TensorProto> = HashMap::new();
        for tensor in constants {
            match self.initializers.contains(tensor.title()) {
                true => self.initializers.insert(tensor),
                false => {
                    inner.insert(tensor.title().to_owned(), tensor);
                }
            }
        }
        if !inner.is_empty() {
            self.edit_all(|_, node| fill(node, &mut inner));
        }
        inner
            .into_values()
            .for_each(|tensor| self.initializers.insert(tensor));
    }
}

fn fill(node: &mut Node, constants: &mut HashMap<String, TensorProto>) {
    for body in node.subgraphs_mut() {
        for tensor in &mut body.initializers {
            if let Some(full) = constants.remove(tensor.title()) {
                *tensor = full;
            }
        }
        body.nodes.iter_mut().for_each(|node| fill(node, constants));
    }
}
