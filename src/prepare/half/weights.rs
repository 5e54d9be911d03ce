//! Weights that are still floats at the end, and still the halves they were, are written as halves again: a file would be larger than the one
//! it was made of else. A Cast that engines compute once, as they load the model, makes float32 of each.

use super::Half;
use super::ports::cast;
use crate::graph::{Graph, Names};
use crate::onnx::half::narrow_half;
use crate::onnx::schema::{DataType, NodeProto, TensorProto};
use crate::onnx::tensor::TensorError;

/// Smaller constants aren't worth a node.
const LEAST: usize = 1024;

impl Half {
    /// Writes large constants of float32 that are halves, each and all, as these.
    pub(super) fn restore_weights(
        &self,
        graph: &mut Graph,
        names: &mut Names,
    ) -> Result<(), TensorError> {
        let Some(element) = self.element else {
            return Ok(());
        };
        let constants = graph.initializers.iter();
        let large = constants.filter(|tensor| {
            let count = tensor.element_count();
            tensor.data_type == Some(DataType::Float as i32) && count.is_ok_and(|n| n >= LEAST)
        });
        let large: Vec<String> = large.filter_map(|tensor| tensor.name.clone()).collect();
        let mut casts: Vec<NodeProto> = Vec::new();
        for name in large {
            let narrow = match graph.initializers.get(&name) {
                Some(tensor) => narrowed(tensor, element)?,
                None => None,
            };
            let Some(mut narrow) = narrow else {
                continue;
            };
            let own = names.fresh(&format!("{name}_{}", element.name()));
            casts.push(cast(names, &own, &name, DataType::Float));
            narrow.name = Some(own);
            graph.initializers.remove(&name);
            graph.initializers.insert(narrow);
        }
        graph.nodes.splice(0..0, casts);
        Ok(())
    }
}

/// The same numbers as halves; `None` where one is none.
fn narrowed(tensor: &TensorProto, element: DataType) -> Result<Option<TensorProto>, TensorError> {
    let mut exact = true;
    let mut raw = Vec::new();
    tensor.each_f32_block(|block| {
        let same = |&float: &f32| element.rounded(float).to_bits() == float.to_bits();
        exact = exact && block.iter().all(same);
        if exact {
            raw.extend(block.iter().flat_map(|&float| match element {
                DataType::Float16 => narrow_half(float).to_le_bytes(),
                _ => ((float.to_bits() >> 16) as u16).to_le_bytes(),
            }));
        }
    })?;
    if !exact {
        return Ok(None);
    }
    let name = tensor.name.as_deref().unwrap_or_default();
    let shape = tensor.shape()?;
    Ok(Some(TensorProto::from_raw(
        name,
        element,
        &shape,
        raw.into(),
    )))
}
