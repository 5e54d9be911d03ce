//! Stores the float weights that came in 16 bits with 16 bits again, so that the file doesn't grow.
//! A Cast makes float32 of each; engines compute it once, when they load the model.
//!
//! Most weights are exact. A weight that absorbed a batch norm is rounded once, to its original
//! precision.

use super::Upcast;
use super::ports::cast;
use crate::{Graph, MICROSOFT, Names, Node};
use octet_onnx::half::{LEAST_NORMAL_HALF, TOO_LARGE_FOR_HALF, narrow_half};
use octet_onnx::schema::{DataType, TensorProto};
use octet_onnx::tensor::TensorError;

/// Smallest number of elements that is worth a Cast node.
pub(super) const MIN_ELEMENTS: usize = 1024;

impl Upcast {
    /// Stores large float32 constants in 16 bits if every number is exact, or if they came in 16
    /// bits. Returns the number of constants that had to be rounded.
    pub(super) fn restore_weights(
        &self,
        graph: &mut Graph,
        names: &mut Names,
    ) -> Result<usize, TensorError> {
        let Some(element) = self.element else {
            return Ok(0);
        };
        let mut rounded = 0;
        let constants = graph.initializers.iter();
        let large = constants.filter(|tensor| {
            let count = tensor.element_count();
            tensor.data_type == Some(DataType::Float as i32)
                && count.is_ok_and(|n| n >= MIN_ELEMENTS)
        });
        let large: Vec<String> = large.filter_map(|tensor| tensor.name.clone()).collect();
        let mut casts: Vec<Node> = Vec::new();
        for name in large {
            let quantized = is_quantized(graph, &name);
            let rounds = self.weights.contains(&name) && !quantized;
            let narrow = match graph.initializers.get(&name) {
                Some(tensor) if rounds || !quantized || tensor.widened_from().is_some() => {
                    narrowed(tensor, element, rounds)?
                }
                _ => None,
            };
            let Some((mut narrow, exact)) = narrow else {
                continue;
            };
            rounded += usize::from(!exact);
            let own = names.fresh(&format!("{name}_{}", element.name()));
            casts.push(cast(names, &own, &name, DataType::Float));
            narrow.name = Some(own);
            graph.initializers.remove(&name);
            graph.initializers.insert(narrow);
        }
        graph.insert(0, casts);
        let mut result = Ok(());
        graph.edit_all(|_, node| {
            if result.is_ok() {
                result = restore_in_bodies(node, names);
            }
        });
        result?;
        // The notes on the source mean nothing in a file.
        let constants = graph.initializers.tensors.iter_mut();
        constants.for_each(|tensor| tensor.note_widened_from(None));
        Ok(rounded)
    }
}

/// Stores the large constants of a node's bodies in the type from which they were widened.
fn restore_in_bodies(node: &mut Node, names: &mut Names) -> Result<(), TensorError> {
    for body in node.subgraphs_mut() {
        let mut casts = Vec::new();
        for tensor in &mut body.initializers {
            let count = tensor.element_count()?;
            let came_from = tensor.widened_from().filter(|_| count >= MIN_ELEMENTS);
            let narrow = match came_from {
                Some(element) => narrowed(tensor, element, false)?,
                None => None,
            };
            tensor.note_widened_from(None);
            if let (Some((mut narrow, _)), Some(element)) = (narrow, came_from) {
                let name = tensor.name.clone().unwrap_or_default();
                let own = names.fresh(&format!("{name}_{}", element.name()));
                casts.push(cast(names, &own, &name, DataType::Float));
                narrow.name = Some(own);
                *tensor = narrow;
            }
        }
        for inner in &mut body.nodes {
            restore_in_bodies(inner, names)?;
        }
        body.nodes.splice(0..0, casts);
    }
    Ok(())
}

/// True if a node quantizes the constant, whose integers rounding could change, or if the constant
/// belongs to quantized weights: its type is that of the node's computation.
fn is_quantized(graph: &Graph, name: &str) -> bool {
    let mut readers = graph.consumers(name).iter();
    readers.any(|reader| {
        let node = &graph.nodes()[reader.node];
        node.is("QuantizeLinear") || node.is("DequantizeLinear") || of_blocks(node)
    })
}

/// True for the operators of ONNX Runtime on weights in blocks.
fn of_blocks(node: &Node) -> bool {
    let names = ["MatMulNBits", "MatMulBnb4", "GatherBlockQuantized"];
    node.domain.as_deref() == Some(MICROSOFT) && names.contains(&node.op_type.as_str())
}

/// The constant in 16 bits and whether it is exact. `None` if it isn't exact and can't be rounded.
fn narrowed(
    tensor: &TensorProto,
    element: DataType,
    rounds: bool,
) -> Result<Option<(TensorProto, bool)>, TensorError> {
    if tensor.is_external() {
        // Other external constants are still to be computed.
        let stored = tensor.widened_from().map(|element| TensorProto {
            data_type: Some(element as i32),
            ..tensor.clone()
        });
        return Ok(stored.map(|mut stored| {
            stored.note_widened_from(None);
            (stored, true)
        }));
    }
    let (mut exact, mut largest) = (true, 0.0f32);
    let mut raw = Vec::new();
    tensor.each_f32_block(|block| {
        let same = |&float: &f32| element.rounded(float).to_bits() == float.to_bits();
        exact = exact && block.iter().all(same);
        largest = block.iter().fold(largest, |a, v| a.max(v.abs()));
        if exact || rounds {
            raw.extend(block.iter().flat_map(|&float| match element {
                DataType::Float16 => narrow_half(float).to_le_bytes(),
                _ => ((element.rounded(float).to_bits() >> 16) as u16).to_le_bytes(),
            }));
        }
    })?;
    // If the largest number is normal, no rounding error exceeds 16-bit precision relative to it.
    let fits = match element {
        DataType::Float16 => (LEAST_NORMAL_HALF..TOO_LARGE_FOR_HALF).contains(&largest),
        _ => element.rounded(largest).is_finite(),
    };
    if !(exact || rounds && fits) {
        return Ok(None);
    }
    let name = tensor.name.as_deref().unwrap_or_default();
    let shape = tensor.shape()?;
    let narrow = TensorProto::from_raw(name, element, &shape, raw.into());
    Ok(Some((narrow, exact)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_half_is_rounded_where_it_came_in_as_one_and_its_largest_is_normal() {
        let narrowed = |value: f32, element, rounds| {
            let tensor = TensorProto::from_f32("w", &[2], &[0.0, value]);
            let narrow_and_exact = narrowed(&tensor, element, rounds).unwrap();
            narrow_and_exact.map(|(narrow, exact)| {
                (
                    narrow.widened().unwrap().unwrap().to_f32().unwrap()[1],
                    exact,
                )
            })
        };
        let (half, brain) = (DataType::Float16, DataType::Bfloat16);
        for (value, element, rounds, wanted) in [
            (0.5, half, false, Some((0.5, true))),
            (0.1, half, false, None),
            (0.1, half, true, Some((0.099_975_586, false))),
            (-0.1, brain, true, Some((-0.100_097_656, false))),
            (7e4, half, true, None),
            (1e-6, half, true, None),
            (1e-6, brain, true, Some((9.983_778e-7, false))),
            (f32::MAX, brain, true, None),
            (f32::INFINITY, half, true, Some((f32::INFINITY, true))),
        ] {
            assert_eq!(
                narrowed(value, element, rounds),
                wanted,
                "{value} {element:?}"
            );
        }
    }
}
