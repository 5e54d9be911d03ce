//! Arithmetic on shapes that are known is done here, once: its results become initializers.

use std::collections::HashSet;

use super::shapes::{self, Known};
use crate::graph::Graph;
use crate::onnx::schema::{DataType, TensorProto};
use crate::onnx::tensor::TensorError;
use crate::tensor::{Tensor, Values};

/// Replaces every node whose results are known. Returns how many.
pub(super) fn fold(graph: &mut Graph) -> Result<usize, TensorError> {
    let types = shapes::infer(graph);
    let outputs: HashSet<String> = graph
        .outputs
        .iter()
        .filter_map(|v| v.name.clone())
        .collect();
    let mut gone = HashSet::new();
    let mut made = Vec::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        // Operators of other domains make values we know nothing of, so they never fold.
        let results: Option<Vec<TensorProto>> = node
            .output
            .iter()
            .filter(|name| !name.is_empty())
            .map(|name| {
                let known = types.get(name).filter(|_| !outputs.contains(name))?;
                Some(TensorProto::from_tensor(name, &tensor(known)?))
            })
            .collect();
        if let Some(results) = results.filter(|r| !r.is_empty()) {
            made.extend(results);
            gone.insert(i);
        }
    }
    graph.remove_nodes(&gone);
    made.into_iter()
        .for_each(|tensor| graph.initializers.insert(tensor));
    Ok(gone.len())
}

fn tensor(known: &Known) -> Option<Tensor> {
    let shape = known.sizes()?;
    if let (Some(floats), DataType::Float) = (&known.floats, known.element) {
        return Tensor::new(shape, Values::F32(floats.clone()));
    }
    let integers = known.all_integers()?;
    let values = match known.element {
        DataType::Int64 => Values::I64(integers),
        DataType::Int32 => Values::I32(integers.into_iter().map(|v| v as i32).collect()),
        DataType::Int16 => Values::I16(integers.into_iter().map(|v| v as i16).collect()),
        DataType::Int8 => Values::I8(integers.into_iter().map(|v| v as i8).collect()),
        DataType::Uint8 => Values::U8(integers.into_iter().map(|v| v as u8).collect()),
        DataType::Bool => Values::Bool(integers.into_iter().map(|v| v != 0).collect()),
        _ => return None,
    };
    Tensor::new(shape, values)
}
