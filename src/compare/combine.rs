//! Builds one model that computes the float values and their quantized counterparts in one run, so
//! that each value is compared and freed early.
//!
//! For a float value `v` there are up to four counterparts:
//!
//! - `q/v`: the value in the quantized model, for the *accumulated* error;
//! - `d/v`: its layer with integers on float inputs, for the *added* error;
//! - `w/v` and `a/v`: as `d/v`, with only the weights or only the activations as integers.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::CompareError;
use super::fake_quantization::FakeQuantization;
use super::node_order::interleaved;
use super::simulate::{Simulated, simulate};
use crate::graph::{Model, Node};
use crate::onnx::schema::{DataType, ValueInfoProto};
use crate::quantize;
use crate::runtime::Watched;

/// A float value and the positions of its counterparts among the watched values.
#[derive(Clone, Debug)]
pub(super) struct ValuePair {
    pub(super) value: String,
    /// Title of the node of the quantized model that produces the value.
    pub(super) layer: String,
    pub(super) operator: String,
    pub(super) accumulated: usize,
    pub(super) added: Option<usize>,
    pub(super) weights: Option<usize>,
    pub(super) activations: Option<usize>,
    /// Rounding to integers in the quantized model.
    pub(super) rounding: Option<FakeQuantization>,
    /// Bounds of the Relu or Clip that alone reads the value: its integers need no wider range.
    pub(super) reader_clamp: Option<(f32, f32)>,
}

/// The combined model and its pairs of values.
pub(super) struct Combined {
    pub(super) model: Model,
    pub(super) watched: Vec<Watched>,
    pub(super) pairs: Vec<ValuePair>,
    /// Float values without a counterpart.
    pub(super) unpaired: Vec<String>,
    pub(super) simulated: Simulated,
}

/// Builds the combined model. Both models must be prepared and have the same opset.
pub(super) fn combine(float: &Model, quantized: &Model) -> Result<Combined, CompareError> {
    let simulated = simulate(quantized);
    let mut builder = CombinedBuilder::new(float, &simulated);
    builder.quantized();
    let (pairs, watched, unpaired) = builder.pairs()?;
    let mut model = builder.out;
    // An observer follows all values that it watches, so the order of nodes decides how early it
    // runs.
    let nodes = interleaved(model.graph.take_nodes(), &watched);
    model.graph.replace_nodes(nodes);
    Ok(Combined {
        model,
        watched,
        pairs,
        unpaired,
        simulated,
    })
}

struct CombinedBuilder<'a> {
    float: &'a Model,
    elements: HashMap<&'a str, DataType>,
    fed: HashSet<&'a str>,
    simulated: &'a Simulated,
    /// The combined model under construction.
    out: Model,
    defined: HashSet<String>,
}

impl<'a> CombinedBuilder<'a> {
    fn new(float: &'a Model, simulated: &'a Simulated) -> CombinedBuilder<'a> {
        let graph = &float.graph;
        CombinedBuilder {
            float,
            elements: graph.element_types(),
            fed: graph
                .inputs
                .iter()
                .filter_map(|i| i.name.as_deref())
                .collect(),
            simulated,
            out: float.clone(),
            defined: HashSet::new(),
        }
    }

    /// True if the float model has a value of this name that can replace the quantized model's.
    fn is_float_value(&self, name: &str) -> bool {
        self.fed.contains(name) || self.float.graph.producer(name).is_some()
    }

    /// Copies a constant of the quantized model under a new name.
    fn constant(&mut self, name: &str) -> Option<String> {
        let mut tensor = self.simulated.model.graph.initializers.get(name)?.clone();
        let own = format!("q/{name}");
        tensor.name = Some(own.clone());
        if self.defined.insert(own.clone()) {
            self.out.graph.initializers.insert(tensor);
        }
        Some(own)
    }

    /// Rounds a value under a new name, once.
    fn round(&mut self, value: &str, rounding: &FakeQuantization, output: String) -> String {
        if self.defined.insert(output.clone()) {
            let nodes = rounding.nodes(&mut self.out, value, &output);
            self.out.graph.extend(nodes);
        }
        output
    }

    /// Copies the whole quantized model, with values named `q/…`.
    fn quantized(&mut self) {
        let simulated = self.simulated;
        for node in simulated.model.graph.nodes() {
            let mut copy = node.clone();
            copy.name = Some(format!("q/{}", node.title()));
            for input in copy.input.iter_mut().filter(|i| !i.is_empty()) {
                *input = self.accumulated(input);
            }
            copy.replace_captured(|name| self.accumulated(name));
            for output in copy.output.iter_mut().filter(|o| !o.is_empty()) {
                *output = format!("q/{output}");
            }
            self.out.graph.push(copy);
        }
        for output in simulated.model.graph.outputs() {
            let name = output.name.clone().unwrap_or_default();
            let name = Some(self.accumulated(&name));
            self.out.graph.push_output(ValueInfoProto {
                name,
                ..Default::default()
            });
        }
    }

    /// Name of a value as the quantized model computes it.
    fn accumulated(&mut self, name: &str) -> String {
        if let Some(constant) = self.constant(name) {
            return constant;
        }
        if let Some((source, rounding)) = self.simulated.rounded.get(name) {
            let value = self.accumulated(source);
            return self.round(&value, rounding, format!("q/{name}"));
        }
        if self.fed.contains(name) {
            return name.to_string();
        }
        format!("q/{name}")
    }

    /// Name of a value of the quantized model, computed from the nearest float values.
    fn computed_from_floats(&mut self, name: &str, rounds: bool) -> String {
        if let Some(constant) = self.constant(name) {
            return constant;
        }
        if let Some((source, rounding)) = self.simulated.rounded.get(name) {
            let value = match self.is_float_value(source) {
                true => source.clone(),
                false
                    if self.is_float_value(name)
                        && self.simulated.model.graph.producer(source).is_none() =>
                {
                    name.to_string()
                }
                false => self.computed_from_floats(source, rounds),
            };
            return match rounds {
                true => self.round(&value, rounding, format!("d/{source}/rounded")),
                false => value,
            };
        }
        if self.is_float_value(name) {
            return name.to_string();
        }
        let prefix = if rounds { "d" } else { "w" };
        let computed = format!("{prefix}/{name}");
        if let Some(maker) = self.simulated.model.graph.producer(name)
            && !self.defined.contains(&computed)
        {
            self.shadow(maker, prefix, rounds, &HashMap::new());
        }
        computed
    }

    /// Copies a node of the quantized model to read float values, with results named `prefix/…`.
    /// `others` replaces inputs by slot.
    fn shadow(&mut self, node: usize, prefix: &str, rounds: bool, others: &HashMap<usize, String>) {
        let node = &self.simulated.model.graph.nodes()[node];
        let mut copy = node.clone();
        copy.name = Some(format!("{prefix}/{}", node.title()));
        for output in copy.output.iter_mut().filter(|o| !o.is_empty()) {
            *output = format!("{prefix}/{output}");
            self.defined.insert(output.clone());
        }
        for (slot, input) in copy.input.iter_mut().enumerate() {
            if let Some(other) = others.get(&slot) {
                input.clone_from(other);
            } else if !input.is_empty() {
                *input = self.computed_from_floats(input, rounds);
            }
        }
        copy.replace_captured(|name| self.computed_from_floats(name, rounds));
        self.out.graph.push(copy);
    }

    /// All float values that nodes produce, with their counterparts.
    #[allow(clippy::type_complexity)]
    fn pairs(&mut self) -> Result<(Vec<ValuePair>, Vec<Watched>, Vec<String>), CompareError> {
        let (mut pairs, mut watched, mut unpaired) = (Vec::new(), Vec::new(), Vec::new());
        let by_title: BTreeMap<&str, &Node> = self
            .float
            .graph
            .nodes()
            .iter()
            .map(|n| (n.title(), n))
            .collect();
        for node in self.float.graph.nodes() {
            for value in node.output.iter().filter(|o| !o.is_empty()) {
                let known = self.elements.get(value.as_str());
                if known.is_some_and(|&element| element != DataType::Float) {
                    continue;
                }
                let Some((pair, beside)) = self.pair(value, &by_title) else {
                    unpaired.push(value.clone());
                    continue;
                };
                pairs.push(pair);
                watched.push(Watched {
                    value: value.clone(),
                    beside,
                });
            }
        }
        match pairs.is_empty() {
            true => Err(CompareError::NothingInCommon),
            false => Ok((pairs, watched, unpaired)),
        }
    }

    fn pair(
        &mut self,
        value: &str,
        float_nodes: &BTreeMap<&str, &Node>,
    ) -> Option<(ValuePair, Vec<String>)> {
        let simulated = self.simulated;
        // The value as its node produces it, and as its consumers read it.
        let (raw, read, rounding) = match simulated.rounded.get(value) {
            Some((source, rounding)) => (source.clone(), value.to_string(), Some(rounding)),
            None => match simulated.first_rounded.get(value) {
                Some(form) => {
                    let rounding = simulated.rounded.get(form).map(|(_, rounding)| rounding);
                    (value.to_string(), form.clone(), rounding)
                }
                None => (value.to_string(), value.to_string(), None),
            },
        };
        let place = self.simulated.model.graph.producer(&raw)?;
        let node = &simulated.model.graph.nodes()[place];
        let mut beside = vec![self.accumulated(&read)];
        let mut add = |name: Option<String>| {
            name.map(|name| {
                beside.push(name);
                beside.len()
            })
        };
        let added = format!("d/{raw}");
        if !self.defined.contains(&added) {
            self.shadow(place, "d", true, &HashMap::new());
        }
        let added = match rounding {
            Some(rounding) => self.round(&added, rounding, format!("d/{value}/out")),
            None => added,
        };
        let added = add(Some(added));
        let float_node = float_nodes.get(node.title()).copied();
        let constant = |name: &String| simulated.constants.contains(name);
        let has_integers = node.input.iter().any(constant);
        let (mut weights, mut activations) = (None, None);
        if let Some(float_node) = float_node.filter(|_| has_integers) {
            weights = add(self.weights_only(place, float_node, &raw, value));
            activations = add(self.activations_only(place, float_node, &raw, value, rounding));
        }
        let pair = ValuePair {
            value: value.to_string(),
            layer: node.title().to_string(),
            operator: node.operator(),
            accumulated: 1,
            added,
            weights,
            activations,
            rounding: rounding.cloned(),
            reader_clamp: rounding.and_then(|_| self.reader_clamp(value)),
        };
        Some((pair, beside))
    }

    /// Bounds of the Relu or Clip that alone reads a float value.
    fn reader_clamp(&self, value: &str) -> Option<(f32, f32)> {
        let graph = &self.float.graph;
        let reader = graph.only_consumer(value)?;
        let inner = reader.is_input(0) && !graph.is_output(value);
        quantize::clamp_bounds(graph, &graph.nodes()[reader.node]).filter(|_| inner)
    }

    /// The layer with integer weights and no other rounding.
    fn weights_only(
        &mut self,
        place: usize,
        float_node: &Node,
        raw: &str,
        value: &str,
    ) -> Option<String> {
        // If the range of the integers replaced a clamp, it is applied here.
        let clamps = self.clamps(float_node, value)?;
        let computed = format!("w/{raw}");
        if !self.defined.contains(&computed) {
            self.shadow(place, "w", false, &HashMap::new());
        }
        let mut last = computed;
        for clamp in clamps {
            let mut copy = clamp;
            copy.name = Some(format!("w/{}", copy.title()));
            copy.input[0].clone_from(&last);
            last = format!("w/{}/clamped", copy.output[0]);
            copy.output[0].clone_from(&last);
            self.out.graph.push(copy);
        }
        Some(last)
    }

    /// The Relu and Clip nodes from a node's result to a value; `None` if other nodes lie between,
    /// or more than four.
    fn clamps(&self, from: &Node, value: &str) -> Option<Vec<Node>> {
        let mut clamps = Vec::new();
        let mut value = value.to_string();
        while !from.output.contains(&value) {
            let node = &self.float.graph.nodes()[self.float.graph.producer(&value)?];
            if clamps.len() == 4 || !["Relu", "Clip"].iter().any(|name| node.is(name)) {
                return None;
            }
            value.clone_from(node.input.first()?);
            clamps.push(node.clone());
        }
        clamps.reverse();
        Some(clamps)
    }

    /// The layer with float weights, with its inputs and output rounded.
    fn activations_only(
        &mut self,
        place: usize,
        float_node: &Node,
        raw: &str,
        value: &str,
        rounding: Option<&FakeQuantization>,
    ) -> Option<String> {
        let node = &self.simulated.model.graph.nodes()[place];
        if float_node.op_type != node.op_type || float_node.input.len() != node.input.len() {
            return None;
        }
        let mut others = HashMap::new();
        for (slot, (integer, float)) in node.input.iter().zip(&float_node.input).enumerate() {
            if self.simulated.constants.contains(integer) {
                self.float.graph.initializers.get(float)?;
                others.insert(slot, float.clone());
            }
        }
        self.shadow(place, "a", true, &others);
        let computed = format!("a/{raw}");
        Some(match rounding {
            Some(rounding) => self.round(&computed, rounding, format!("a/{value}/out")),
            None => computed,
        })
    }
}
