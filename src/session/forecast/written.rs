//! What quantizing will make: the size of the file and of what is in it.

use std::collections::HashSet;

use super::Error;
use crate::graph::Model;
use crate::onnx::schema::{DataType, TensorProto};
use crate::quantize::{self, ElementType, Plan, Scheme};

/// What two nodes and four constants for an activation take in the file, and two of these for a weight.
const PAIR_BYTES: u64 = 400;

/// What quantizing makes.
pub(super) struct Written {
    /// Size of the file.
    pub(super) file: u64,
    /// Of it what weights become.
    pub(super) integers: u64,
    /// How many nodes it has.
    pub(super) nodes: u64,
}

impl Written {
    /// Of a prepared model whose float file has so many bytes.
    pub(super) fn of(
        bytes: usize,
        model: &Model,
        settings: &quantize::Settings,
    ) -> Result<Written, Error> {
        let graph = &model.graph;
        let bits = bits_of_weights(settings);
        // What the plan for static quantization takes for integers is about what the other schemes take, too.
        let plan = Plan::new(model, settings)?;
        let quantized: HashSet<&str> = plan
            .choices()
            .iter()
            .filter(|choice| choice.quantized)
            .map(|choice| choice.node.as_str())
            .collect();
        let float = graph
            .initializers
            .iter()
            .filter(|tensor| tensor.data_type == Some(DataType::Float as i32));
        let (mut saved, mut integers) = (0, 0);
        let uses = graph.uses();
        for tensor in float.filter(|tensor| tensor.dims.len() >= 2) {
            let name = tensor.name.as_deref().unwrap_or_default();
            let mut readers = uses.consumers(name).iter();
            let all = settings.scheme == Scheme::Float16;
            if all || readers.any(|&(node, _)| quantized.contains(graph.nodes[node].title())) {
                let bytes = size(tensor);
                let small = bytes * bits / 32;
                saved += bytes.saturating_sub(small);
                integers += small;
            }
        }
        let constants: u64 = graph.initializers.iter().map(size).sum();
        let structure = (bytes as u64).saturating_sub(constants);
        let pairs = match settings.scheme {
            Scheme::Static => quantized.len() as u64 * 2,
            Scheme::Float16 => 0,
            _ => quantized.len() as u64,
        };
        let structure = structure.min(constants) + pairs * PAIR_BYTES;
        Ok(Written {
            file: constants.saturating_sub(saved) + structure,
            integers,
            // Of a pair two nodes stand at an activation, and one at a weight.
            nodes: graph.nodes.len() as u64 + pairs * 3 / 2,
        })
    }
}

fn size(tensor: &TensorProto) -> u64 {
    tensor.raw_data.as_ref().map_or(0, |raw| raw.len() as u64)
}

/// The bits of a weight.
pub(super) fn bits_of_weights(settings: &quantize::Settings) -> u64 {
    match settings.scheme {
        Scheme::Float16 => 16,
        Scheme::Blocks => u64::from(settings.blocks.bits),
        _ => match settings.weights.element {
            Some(ElementType::I16 | ElementType::U16) => 16,
            Some(ElementType::I4 | ElementType::U4) => 4,
            _ => 8,
        },
    }
}
