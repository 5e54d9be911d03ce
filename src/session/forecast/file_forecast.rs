//! Forecast of the quantized file: its size and the sizes of its parts.

use std::collections::HashSet;

use super::Error;
use crate::graph::Model;
use crate::onnx::schema::{DataType, TensorProto};
use crate::quantize::{self, ElementType, Plan, Scheme};

/// Bytes in the file of a Q/DQ pair on an activation: two nodes and four constants. A weight takes
/// half of that.
const PAIR_BYTES: u64 = 400;

/// Forecast of the quantized file.
pub(super) struct FileForecast {
    /// Size of the file in bytes.
    pub(super) file: u64,
    /// Part of it that quantized weights take.
    pub(super) integers: u64,
    /// Number of nodes.
    pub(super) nodes: u64,
}

impl FileForecast {
    /// Forecast for a prepared model whose float file has this many bytes.
    pub(super) fn new(
        bytes: usize,
        model: &Model,
        settings: &quantize::Settings,
    ) -> Result<FileForecast, Error> {
        let graph = &model.graph;
        let bits = bits_of_weights(settings);
        // The plan of static quantization quantizes about the same nodes as the other schemes.
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
        for tensor in float.filter(|tensor| tensor.dims.len() >= 2) {
            let name = tensor.name.as_deref().unwrap_or_default();
            let mut readers = graph.consumers(name).iter();
            let all = settings.scheme == Scheme::Float16;
            if all || readers.any(|reader| quantized.contains(graph.nodes()[reader.node].title())) {
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
        Ok(FileForecast {
            file: constants.saturating_sub(saved) + structure,
            integers,
            // A pair adds two nodes on an activation and one on a weight.
            nodes: graph.nodes().len() as u64 + pairs * 3 / 2,
        })
    }
}

fn size(tensor: &TensorProto) -> u64 {
    tensor.raw_data.as_ref().map_or(0, |raw| raw.len() as u64)
}

/// Bits of one weight.
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
