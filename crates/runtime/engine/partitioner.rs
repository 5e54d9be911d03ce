//! Assigns the nodes of a model to parts and determines the values that pass between them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::control_node::ControlNode;
use super::partition::{ControlEnd, GraphPart, Partition};
use super::submodel::{ExecutionMode, Submodel};
use crate::cut_points::{self, CutPoints, holds_graphs};
use crate::{EngineError, Watched};
use octet_graph::{Model, Node, is_random};
use octet_onnx::schema::ValueInfoProto;

/// Partitions a prepared model with watched values; `None` if it runs as a whole.
pub(crate) fn partition(
    model: &Model,
    watched: &[Watched],
    mode: ExecutionMode,
) -> Result<Option<Partition>, EngineError> {
    let seen: HashSet<&str> = watched
        .iter()
        .flat_map(all_of)
        .map(String::as_str)
        .collect();
    let cut_points = CutPoints::new(&model.graph, |name| seen.contains(name));
    if cut_points.is_none() {
        return Ok(None);
    }
    let partitioner = Partitioner::new(model, cut_points.ends, watched);
    let parts = (0..=partitioner.ends.len()).map(|place| partitioner.part(place, mode));
    let names = |ports: &[ValueInfoProto]| ports.iter().filter_map(|v| v.name.clone()).collect();
    Ok(Some(Partition {
        parts: parts.collect::<Result<_, _>>()?,
        inputs: names(&model.graph.inputs),
        outputs: names(model.graph.outputs()),
    }))
}

struct Partitioner<'a> {
    model: &'a Model,
    /// The nodes that end a part, in order: those that hold graphs, and those followed by a cut.
    ends: Vec<usize>,
    /// The parts that compute each node.
    homes: Vec<BTreeSet<usize>>,
    /// The watched values that each part reports.
    watched: Vec<Vec<(usize, &'a Watched)>>,
    /// For each part, the values that its nodes and its observers read from outside.
    inputs: Vec<Vec<String>>,
    /// For each part, the values that its last node reads.
    reads: Vec<Vec<String>>,
    /// The last part that reads a value; outputs of the model are never freed.
    last: HashMap<String, usize>,
}

impl<'a> Partitioner<'a> {
    fn new(model: &'a Model, ends: Vec<usize>, watched: &'a [Watched]) -> Partitioner<'a> {
        let graph = &model.graph;
        let mut partitioner = Partitioner {
            model,
            homes: Vec::new(),
            watched: vec![Vec::new(); ends.len() + 1],
            inputs: Vec::new(),
            reads: Vec::new(),
            last: HashMap::new(),
            ends,
        };
        partitioner.homes = partitioner.homes(watched);
        for (slot, one) in watched.iter().enumerate() {
            let part = all_of(one)
                .map(|name| partitioner.first_part_of(name))
                .max()
                .unwrap_or(0);
            partitioner.watched[part].push((slot, one));
        }
        partitioner.reads = partitioner
            .ends
            .iter()
            .map(|&end| partitioner.reads_of(end))
            .collect();
        partitioner.inputs = (0..=partitioner.ends.len())
            .map(|part| partitioner.inputs_of(part))
            .collect();
        for (part, names) in partitioner.inputs.iter().enumerate() {
            let read = partitioner.reads.get(part).into_iter().flatten();
            let seen = partitioner.watched[part]
                .iter()
                .flat_map(|(_, one)| all_of(one));
            for name in names.iter().chain(read).chain(seen) {
                partitioner.last.insert(name.clone(), part);
            }
        }
        for output in graph.outputs().iter().filter_map(|o| o.name.clone()) {
            partitioner.last.insert(output, usize::MAX);
        }
        partitioner
    }

    fn node(&self, place: usize) -> &'a Node {
        &self.model.graph.nodes()[place]
    }

    /// Assigns each node to the last part possible. A part recomputes constants, dequantized values
    /// and integers below 8 bits that it reads, so that they can become its weights and integers.
    fn homes(&self, watched: &[Watched]) -> Vec<BTreeSet<usize>> {
        let count = self.model.graph.nodes().len();
        let watched: HashSet<&str> = watched
            .iter()
            .flat_map(all_of)
            .map(String::as_str)
            .collect();
        let constant = self.constant();
        let is_constant = |name: &String| {
            self.model.graph.initializers.contains(name) || constant.contains(name.as_str())
        };
        let mut homes = vec![BTreeSet::new(); count];
        for place in (0..count).rev() {
            if let Some(part) = self.ends.iter().position(|&end| end == place) {
                homes[place].insert(part);
                continue;
            }
            let node = self.node(place);
            let readers = node
                .output
                .iter()
                .flat_map(|name| self.model.graph.consumers(name));
            let mut parts: BTreeSet<usize> = readers
                .flat_map(|reader| homes[reader.node].clone())
                .collect();
            let goes_out = |name: &String| self.model.graph.is_output(name);
            if parts.is_empty() || node.output.iter().any(goes_out) {
                parts.insert(self.ends.len());
            }
            let seen = node
                .output
                .iter()
                .any(|name| watched.contains(name.as_str()));
            // Integers below 8 bits can't pass between parts; the reals before their QuantizeLinear
            // do.
            let pair = node.is("DequantizeLinear")
                || octet_int8::quantized(&self.model.graph, node).is_some();
            let again = node.output.first().is_some_and(is_constant)
                || (pair && node.input.iter().skip(1).all(is_constant));
            if seen || !again {
                parts = parts.into_iter().take(1).collect();
            }
            homes[place] = parts;
        }
        homes
    }

    /// Values computed from constants only.
    fn constant(&self) -> HashSet<&'a str> {
        let mut found: HashSet<&str> = HashSet::new();
        for node in self.model.graph.nodes() {
            let known = |name: &String| {
                name.is_empty()
                    || self.model.graph.initializers.contains(name)
                    || found.contains(name.as_str())
            };
            if !is_random(node) && !holds_graphs(node) && node.input.iter().all(known) {
                found.extend(node.output.iter().map(String::as_str));
            }
        }
        found
    }

    /// The first part that makes a value; the result of a part's last node is reported in the next.
    fn first_part_of(&self, name: &str) -> usize {
        let Some(maker) = self.model.graph.producer(name) else {
            return 0;
        };
        let part = self.homes[maker].first().copied().unwrap_or(0);
        part + usize::from(self.ends.contains(&maker))
    }

    fn nodes_of(&self, part: usize) -> Vec<usize> {
        let count = self.model.graph.nodes().len();
        let here =
            |place: &usize| self.homes[*place].contains(&part) && !holds_graphs(self.node(*place));
        (0..count).filter(here).collect()
    }

    fn results_of(&self, nodes: &[usize]) -> HashSet<&'a str> {
        let outputs = nodes.iter().flat_map(|&place| &self.node(place).output);
        outputs.map(String::as_str).collect()
    }

    fn inputs_of(&self, part: usize) -> Vec<String> {
        let nodes = self.nodes_of(part);
        let made = self.results_of(&nodes);
        let watched = self.watched[part].iter().map(|(_, one)| *one);
        let watched = watched.filter(|one| is_inside(one, &made)).flat_map(all_of);
        let read = nodes.iter().flat_map(|&place| &self.node(place).input);
        let names: BTreeSet<&String> = read
            .chain(watched)
            .filter(|name| !name.is_empty() && !made.contains(name.as_str()))
            .filter(|name| !self.model.graph.initializers.contains(name))
            .collect();
        names.into_iter().cloned().collect()
    }

    /// The inputs of a node that holds graphs, and the values that these capture. Constants are
    /// part of the graphs already.
    fn reads_of(&self, end: usize) -> Vec<String> {
        let node = self.node(end);
        if !holds_graphs(node) {
            return Vec::new();
        }
        let inputs = node.input.iter().filter(|name| !name.is_empty()).cloned();
        let constant = |name: &String| self.model.graph.initializers.contains(name);
        let captured = node.captured().into_iter().filter(|name| !constant(name));
        let all: BTreeSet<String> = inputs.chain(captured).collect();
        all.into_iter().collect()
    }

    /// The results of a part that others than its own nodes read.
    fn outputs_of(&self, part: usize, made: &HashSet<&str>) -> Vec<String> {
        let constant = |name: &String| self.model.graph.initializers.contains(name);
        let goes_out = self
            .model
            .graph
            .outputs()
            .iter()
            .filter_map(|o| o.name.as_ref());
        let goes_out: BTreeSet<&String> = goes_out.collect();
        let mut wanted: BTreeSet<&String> = self.inputs[part + 1..].iter().flatten().collect();
        wanted.extend(self.reads[part.min(self.ends.len())..].iter().flatten());
        let later = self.watched[part + 1..].iter().flatten();
        wanted.extend(later.flat_map(|(_, one)| all_of(one)));
        wanted.extend(&goes_out);
        // Constants are passed on where an output or a control flow node reads them.
        let own = self.reads.get(part).into_iter().flatten();
        let mut own: BTreeSet<&String> = own.collect();
        if part == self.ends.len() {
            own.extend(&goes_out);
        }
        wanted
            .into_iter()
            .filter(|&name| made.contains(name.as_str()) || (own.contains(name) && constant(name)))
            .cloned()
            .collect()
    }

    /// The short inputs that become constants of a part's plans: those that determine shapes. In a
    /// model that holds graphs these are all integers (`None`).
    fn shape_values(&self, nodes: &[usize], part: usize) -> Option<BTreeSet<String>> {
        if self.ends.iter().any(|&end| holds_graphs(self.node(end))) {
            return None;
        }
        let shape_values = cut_points::shape_values(nodes.iter().map(|&place| self.node(place)));
        let inputs = self.inputs[part].iter();
        let shape_inputs = inputs.filter(|name| shape_values.contains(name.as_str()));
        Some(shape_inputs.cloned().collect())
    }

    fn part(&self, part: usize, mode: ExecutionMode) -> Result<GraphPart, EngineError> {
        let nodes = self.nodes_of(part);
        let made = self.results_of(&nodes);
        let outputs = self.outputs_of(part, &made);
        let mut model = self.model.clone();
        let graph = &mut model.graph;
        let here = nodes.iter().map(|&place| self.node(place).clone());
        graph.replace_nodes(here.collect());
        let read: HashSet<&str> = nodes
            .iter()
            .flat_map(|&place| &self.node(place).input)
            .chain(&outputs)
            .map(String::as_str)
            .collect();
        graph
            .initializers
            .retain(|tensor| read.contains(tensor.title()));
        let ports = outputs.iter().map(|name| ValueInfoProto {
            name: Some(name.clone()),
            ..ValueInfoProto::default()
        });
        graph.set_outputs(ports.collect());
        graph.value_info.clear();
        let watched = self.watched[part].iter();
        let (inside, before): (Vec<_>, Vec<_>) =
            watched.partition(|(_, one)| is_inside(one, &made));
        let here = |(_, one): &&(usize, &Watched)| (*one).clone();
        let end = self.ends.get(part);
        let end = end.filter(|&&place| holds_graphs(self.node(place))).map(
            |&place| -> Result<ControlEnd, EngineError> {
                let node = self.node(place);
                Ok(ControlEnd {
                    place,
                    node: node.clone(),
                    integers: mode.integers,
                    control: ControlNode::new(self.model, node, mode)?,
                    reads: self.reads[part].clone(),
                })
            },
        );
        let freed = self.last.iter().filter(|&(_, &last)| last == part);
        Ok(GraphPart {
            submodel: Submodel::prepared(
                model,
                self.inputs[part].clone(),
                inside.iter().map(here).collect(),
                self.shape_values(&nodes, part),
                mode,
            ),
            nodes,
            slots: inside.iter().map(|(slot, _)| *slot).collect(),
            ready_values: before
                .iter()
                .map(|(slot, one)| (*slot, (*one).clone()))
                .collect(),
            end: end.transpose()?,
            freed: freed.map(|(name, _)| name.clone()).collect(),
        })
    }
}

/// A watched value and the values beside it.
fn all_of(one: &Watched) -> impl Iterator<Item = &String> {
    std::iter::once(&one.value).chain(&one.beside)
}

/// Returns true if these nodes make any of the watched values; otherwise all exist before the part
/// runs.
fn is_inside(one: &Watched, made: &HashSet<&str>) -> bool {
    all_of(one).any(|name| made.contains(name.as_str()))
}
