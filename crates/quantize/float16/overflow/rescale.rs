//! Far activations divided by powers of two.
//!
//! Each divided value has a name of its own; the old name is the value itself, which exists only where
//! a node needs it. Layers beside take the powers into their constants, normalizations into their
//! epsilon. Elsewhere a Mul by a power of two stands between, which is exact.

use std::collections::{HashMap, HashSet};

use super::BroughtNear;
use super::powers::Powers;
use crate::QuantizeError;
use crate::planned_model::RefusedConstants;
use octet_graph::operators::{DEFAULT_EPSILON, PowerRule};
use octet_graph::{Attribute, Graph, Model, Names, Node};
use octet_onnx::schema::{DataType, TensorProto, ValueInfoProto};

/// The end of a divided value's name.
pub const DIVIDED: &str = "_rescaled";

/// The model with divided activations; `None` if none can be divided.
pub(super) fn rescaled(
    model: &Model,
    refused: &RefusedConstants,
) -> Result<Option<BroughtNear>, QuantizeError> {
    let far = refused.far_activations();
    let Some(powers) = Powers::new(model, far) else {
        return Ok(None);
    };
    let mut writer = RescaledGraph {
        graph: &model.graph,
        powers: &powers,
        names: model.graph.names(),
        known: HashMap::new(),
        nodes: Vec::new(),
        constants: Vec::new(),
        declared: Vec::new(),
    };
    for (index, node) in model.graph.nodes().iter().enumerate() {
        writer.write(index, node)?;
    }
    let mut changed = model.clone();
    changed.graph.replace_nodes(writer.nodes);
    for constant in writer.constants {
        changed.graph.initializers.insert(constant);
    }
    changed.graph.value_info.extend(writer.declared);
    let graph = &mut changed.graph;
    let divided = powers.of.keys();
    let gone: HashSet<&str> = divided
        .copied()
        .filter(|name| graph.producer(name).is_none())
        .collect();
    graph.value_info.retain(|value| {
        let name = value.name.as_deref().unwrap_or_default();
        !gone.contains(name)
    });
    // Constants that have only divided copies go, and so do values without a reader.
    changed.graph.retain_initializers(|graph, name| {
        !graph.is_unused(name) || model.graph.consumers(name).is_empty()
    });
    let notes = far.iter().map(|(name, size)| match powers.power(name) {
        0 => format!(
            "`{name}`: values to ±{size} on the samples can't be rescaled, because its node is not linear or its weight \
             would become too small; its nodes stay float32"
        ),
        power => format!(
            "`{name}`: values to ±{size} on the samples are stored divided by {}; linear neighbours make up for it",
            1u64 << power
        ),
    });
    Ok(Some(BroughtNear {
        model: changed,
        notes: notes.collect(),
    }))
}

/// A graph that is being written with divided values.
struct RescaledGraph<'a> {
    graph: &'a Graph,
    powers: &'a Powers<'a>,
    names: Names,
    /// The name of a value or constant, multiplied by two to the negative power.
    known: HashMap<(String, i32), String>,
    nodes: Vec<Node>,
    constants: Vec<TensorProto>,
    declared: Vec<ValueInfoProto>,
}

impl RescaledGraph<'_> {
    fn write(&mut self, index: usize, node: &Node) -> Result<(), QuantizeError> {
        let mut written = node.clone();
        let reads: HashMap<usize, u32> = self.powers.reads(index, node).into_iter().collect();
        let rule = self.powers.rules[index].as_ref();
        for (slot, input) in node.input.iter().enumerate() {
            let power = reads.get(&slot).copied().unwrap_or(0) as i32;
            written.input[slot] = self.read(input, power)?;
        }
        let output = node
            .output
            .first()
            .map_or(0, |name| self.powers.power(name)) as i32;
        if let Some(&PowerRule::Absorbs {
            value,
            constant,
            divides,
            bias,
        }) = rule
        {
            let input = reads.get(&value).copied().unwrap_or(0) as i32;
            let more = if divides {
                input - output
            } else {
                output - input
            };
            written.input[constant] = self.read(&node.input[constant], more)?;
            if let Some(slot) = bias {
                written.input[slot] = self.read(&node.input[slot], output)?;
            }
        }
        if rule == Some(&PowerRule::Normalizes) {
            let power = reads.get(&0).copied().unwrap_or(0) as i32;
            if power != 0 {
                let epsilon = node.float("epsilon").unwrap_or(DEFAULT_EPSILON);
                written.set(Attribute::float("epsilon", epsilon * 2f32.powi(-2 * power)));
            }
        }
        let mut whole = Vec::new();
        for name in written.output.iter_mut().filter(|name| !name.is_empty()) {
            let power = self.powers.power(name) as i32;
            if power == 0 {
                continue;
            }
            let stored = self.names.fresh(&format!("{name}{DIVIDED}"));
            self.declare(name, &stored);
            self.known.insert((name.clone(), power), stored.clone());
            whole.extend(self.graph.is_output(name).then(|| name.clone()));
            *name = stored;
        }
        if written.output != node.output {
            written.name = Some(node.title().to_owned());
        }
        self.nodes.push(written);
        for name in whole {
            self.read(&name, 0)?;
        }
        Ok(())
    }

    /// The name under which a node reads a value or constant, divided by this power of two.
    fn read(&mut self, name: &str, power: i32) -> Result<String, QuantizeError> {
        let stored = self.powers.power(name) as i32;
        if name.is_empty() || power == 0 && stored == 0 {
            return Ok(name.to_owned());
        }
        if let Some(known) = self.known.get(&(name.to_owned(), power)) {
            return Ok(known.clone());
        }
        let wanted = match power {
            0 => name.to_owned(),
            _ => self.names.fresh(&format!("{name}{DIVIDED}")),
        };
        if let Some(tensor) = self.graph.initializers.get(name) {
            let factor = 2f64.powi(-power);
            let scaled = tensor.changed_f32(&wanted, |_, values| {
                for value in values {
                    *value = (f64::from(*value) * factor) as f32;
                }
            })?;
            self.constants.push(scaled);
        } else {
            let from = self.known.get(&(name.to_owned(), stored)).cloned();
            let from = from.unwrap_or_else(|| name.to_owned());
            let factor = self.names.fresh(&format!("{wanted}_factor"));
            let bytes = 2f32.powi(stored - power).to_le_bytes().to_vec().into();
            let constant = TensorProto::from_raw(&factor, DataType::Float, &[], bytes);
            self.constants.push(constant);
            let title = self.names.fresh(&format!("{wanted}_Mul"));
            self.nodes
                .push(Node::new("Mul", &title, &[&from, &factor], &[&wanted]));
            if power != 0 {
                self.declare(name, &wanted);
            }
        }
        self.known.insert((name.to_owned(), power), wanted.clone());
        Ok(wanted)
    }

    /// Gives a new value the type of another.
    fn declare(&mut self, like: &str, name: &str) {
        let kind = self.graph.tensor_type(like);
        self.declared
            .extend(kind.map(|kind| ValueInfoProto::new(name, &kind)));
    }
}
