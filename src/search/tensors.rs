//! The tensors of a search: what each becomes with each number of bits.
//!
//! The model is quantized once for each number of bits, all tensors alike. From these models come
//! the rounding of each activation and the rounded values of each weight, with all that
//! quantization does to them: clipping, GPTQ, corrected biases.

use std::collections::{BTreeMap, HashMap, HashSet};

use prost::Message;

use super::Bits;
use crate::compare::FakeQuantization;
use crate::graph::{Graph, Model, Node};
use crate::onnx::schema::TensorProto;
use crate::quantize::{self, Quantized, ScaleGroup, TensorKind};

/// Form of a group of tensors with some number of bits.
#[derive(Clone, Debug)]
pub enum Rounded {
    /// Activations: rounding to a grid.
    Grid(FakeQuantization),
    /// A constant and the biases that follow its scale: other values.
    Constants {
        /// The values of the constant.
        values: TensorProto,
        /// Bias by the node that reads it.
        biases: Vec<(usize, TensorProto)>,
    },
}

/// A group of tensors that share a scale, with its rounded forms.
#[derive(Clone, Debug)]
pub struct SearchTensor {
    /// The group.
    pub group: ScaleGroup,
    /// Bytes in the file for each number of bits: constants, scales, and the nodes of its pairs.
    pub bytes: BTreeMap<Bits, f64>,
    /// For each bias, the node that reads it and the bytes that float saves: without integers of its
    /// layer's input, a bias is float whatever its weight is.
    pub bias_savings: Vec<(usize, f64)>,
    /// The rounded form for each number of bits.
    pub rounded: BTreeMap<Bits, Rounded>,
    /// Rounding error of the tensor itself for each number of bits, as a mean square.
    pub local: BTreeMap<Bits, f64>,
}

/// The nodes of a graph by title; `None` for titles that several nodes have.
fn by_title(graph: &Graph) -> HashMap<&str, Option<usize>> {
    let mut titles: HashMap<&str, Option<usize>> = HashMap::new();
    for (index, node) in graph.nodes().iter().enumerate() {
        let entry = titles.entry(node.title());
        entry
            .and_modify(|known| *known = None)
            .or_insert(Some(index));
    }
    titles
}

/// A quantized model with an index of its nodes.
pub struct RoundedModel<'a> {
    quantized: &'a Quantized,
    titles: HashMap<&'a str, Option<usize>>,
    /// Bytes of the file that belong to each tensor of the float model.
    bytes: HashMap<String, usize>,
}

impl<'a> RoundedModel<'a> {
    /// Indexes a quantized model.
    pub fn new(quantized: &'a Quantized) -> RoundedModel<'a> {
        RoundedModel {
            titles: by_title(&quantized.model.graph),
            bytes: bytes_by_tensor(&quantized.model),
            quantized,
        }
    }

    /// The rounded form of a group of the float model; `None` if it is float in this model.
    pub fn of(&self, float: &Model, group: &ScaleGroup) -> Option<Rounded> {
        if !group.is_constant {
            let mut tensors = self.quantized.tensors.iter();
            let tensor =
                tensors.find(|t| t.kind == TensorKind::Activation && t.name == group.name)?;
            let grid = FakeQuantization::new(tensor.element, tensor.scale, tensor.zero_point)?;
            return Some(Rounded::Grid(grid));
        }
        let values = float
            .graph
            .consumers(&group.name)
            .iter()
            .find_map(|reader| {
                let reader = &float.graph.nodes()[reader.node];
                let slot = reader.input.iter().position(|name| *name == group.name)?;
                self.constant(reader, slot, &group.name)
            })?;
        let biases = group.biases.iter().filter_map(|(node, name)| {
            let reader = &float.graph.nodes()[*node];
            Some((*node, self.constant(reader, 2, name)?))
        });
        Some(Rounded::Constants {
            biases: biases.collect(),
            values,
        })
    }

    /// The dequantized constant that the node of this title reads, under its float name.
    fn constant(&self, node: &Node, slot: usize, name: &str) -> Option<TensorProto> {
        let graph = &self.quantized.model.graph;
        let node = &graph.nodes()[(*self.titles.get(node.title())?)?];
        let maker = &graph.nodes()[graph.producer(node.input_at(slot)?)?];
        let values = quantize::dequantized(maker, &self.quantized.model)?;
        Some(TensorProto {
            name: Some(name.to_string()),
            ..values
        })
    }

    /// For each bias of a group, its reader and the bytes that a float bias saves.
    pub fn bias_savings(&self, float: &Model, group: &ScaleGroup) -> Vec<(usize, f64)> {
        let saving = |(node, name): &(usize, String)| {
            let integers = self.bytes.get(name).copied().unwrap_or(0) as f64;
            let constant = float.graph.initializers.get(name);
            (*node, integers - constant.map_or(0, message_bytes) as f64)
        };
        group.biases.iter().map(saving).collect()
    }

    /// Bytes of the file that a group adds: its integers, scales, zero points and pairs, and those of
    /// its biases.
    pub fn bytes(&self, group: &ScaleGroup) -> f64 {
        let biases = group.biases.iter().map(|(_, name)| name);
        let names = group.members.iter().chain(biases);
        names.filter_map(|name| self.bytes.get(name)).sum::<usize>() as f64
    }
}

/// Bytes of a message inside another: its own, its length and its tag.
fn message_bytes(message: &impl Message) -> usize {
    let bytes = message.encoded_len();
    let length = bytes.max(1).ilog2() as usize / 7 + 1;
    1 + length + bytes
}

/// Bytes of the pairs and their constants, by the tensor of the float model.
fn bytes_by_tensor(model: &Model) -> HashMap<String, usize> {
    let graph = &model.graph;
    let mut all: HashMap<String, usize> = HashMap::new();
    let mut counted = HashSet::new();
    let pairs = graph
        .nodes()
        .iter()
        .filter(|node| matches!(node.op_type.as_str(), "QuantizeLinear" | "DequantizeLinear"));
    for node in pairs {
        let constants = node
            .input
            .iter()
            .filter_map(|name| graph.initializers.get(name));
        let constants = constants.filter(|constant| counted.insert(constant.title()));
        let bytes = message_bytes(&node.to_proto()) + constants.map(message_bytes).sum::<usize>();
        *all.entry(quantize::tensor_title(node).to_string())
            .or_default() += bytes;
    }
    all
}

/// Bytes of a group whose tensors stay float: those of its constants.
pub fn float_bytes(model: &Model, group: &ScaleGroup) -> f64 {
    let biases = group.biases.iter().map(|(_, name)| name);
    let names = std::iter::once(&group.name).chain(biases);
    let constants = names.filter_map(|name| model.graph.initializers.get(name));
    constants.map(message_bytes).sum::<usize>() as f64
}

/// A change of one group: the number of bits.
#[derive(Clone, Copy, Debug)]
pub struct TensorChange<'a> {
    /// The group.
    pub tensor: &'a SearchTensor,
    /// The number of bits.
    pub bits: Bits,
}

/// A model with a change of one group. `inputs` are the inputs of the whole model; values that come
/// from elsewhere are changed where they are computed.
pub fn changed(model: &Model, change: TensorChange<'_>, inputs: &HashSet<String>) -> Model {
    let mut model = model.clone();
    match change.tensor.rounded.get(&change.bits) {
        Some(Rounded::Grid(grid)) => {
            for member in &change.tensor.group.members {
                round_value(&mut model, member, grid, inputs);
            }
        }
        Some(Rounded::Constants { values, biases }) => {
            change_constant(&mut model, values);
            for (_, bias) in biases {
                change_constant(&mut model, bias);
            }
        }
        None => {}
    }
    model
}

/// Replaces a constant by its rounded values. A constant that this part of the model lacks stays
/// away.
fn change_constant(model: &mut Model, rounded: &TensorProto) {
    let Some(float) = model.graph.initializers.get(rounded.title()) else {
        return;
    };
    let counts = float.element_count().ok().zip(rounded.element_count().ok());
    if counts.is_some_and(|(float, rounded)| float == rounded) {
        model.graph.initializers.insert(rounded.clone());
    }
}

/// Rounds a value after the node that computes it, or before all nodes for an input of the model.
fn round_value(model: &mut Model, value: &str, grid: &FakeQuantization, inputs: &HashSet<String>) {
    let (place, source, output) = match model.graph.producer(value) {
        Some(producer) => {
            let exact = format!("{value}/exact");
            let renamed = HashMap::from([(value.to_string(), exact.clone())]);
            model
                .graph
                .edit(producer, |node| node.rename_outputs(&renamed));
            (producer + 1, exact, value.to_string())
        }
        None if inputs.contains(value) && !model.graph.consumers(value).is_empty() => {
            let rounded = format!("{value}/rounded");
            model.graph.replace_uses(value, &rounded);
            (0, value.to_string(), rounded)
        }
        None => return,
    };
    let nodes = grid.nodes(model, &source, &output);
    model.graph.insert(place, nodes);
}

impl SearchTensor {
    /// Mean squared error of a constant's rounded values.
    pub fn constant_error(&self, model: &Model, bits: Bits) -> Option<f64> {
        let Rounded::Constants { values, .. } = self.rounded.get(&bits)? else {
            return None;
        };
        let float = model
            .graph
            .initializers
            .get(&self.group.name)?
            .to_f32()
            .ok()?;
        let rounded = values.to_f32().ok()?;
        let square = |(&a, &b): (&f32, &f32)| f64::from(a - b) * f64::from(a - b);
        let sum: f64 = float.iter().zip(&rounded).map(square).sum();
        Some(sum / float.len().max(1) as f64)
    }
}
