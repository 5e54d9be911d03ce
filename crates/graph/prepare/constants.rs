//! Makes every constant an initializer and removes initializers from the inputs. Tensor bytes stay
//! shared.

use crate::Graph;
use octet_onnx::schema::{AttributeType, DataType, NodeProto, TensorProto};
use octet_onnx::tensor::TensorError;

/// Removes initializers from the graph's inputs, so a default that could be fed becomes a constant.
/// IR version 3 required every weight to be an input. Returns the number removed.
pub(super) fn inputs(graph: &mut Graph) -> usize {
    let before = graph.inputs.len();
    let initializers = &graph.initializers;
    graph
        .inputs
        .retain(|v| !initializers.contains(v.name.as_deref().unwrap_or_default()));
    before - graph.inputs.len()
}

/// Turns the Constant nodes of the main graph into initializers. Returns the number of nodes.
pub(super) fn nodes(graph: &mut Graph) -> Result<usize, TensorError> {
    let mut gone = std::collections::HashSet::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        if let Some(tensor) = value(node)? {
            graph.initializers.insert(tensor);
            gone.insert(i);
        }
    }
    graph.remove_nodes(&gone);
    Ok(gone.len())
}

/// The tensor of a Constant node, named after its output; `None` for sparse tensors and other
/// nodes.
pub(super) fn value(node: &NodeProto) -> Result<Option<TensorProto>, TensorError> {
    if !node.is("Constant") {
        return Ok(None);
    }
    let (Some(attribute), Some(name)) = (node.attribute.first(), node.output.first()) else {
        return Ok(None);
    };
    let kind = attribute
        .r#type
        .and_then(|t| AttributeType::try_from(t).ok());
    Ok(match (attribute.name.as_deref(), kind) {
        (Some("value"), _) => match attribute.t.clone() {
            Some(mut tensor) => {
                tensor.element()?;
                tensor.name = Some(name.clone());
                Some(tensor)
            }
            None => None,
        },
        (Some("value_float"), _) => Some(TensorProto::from_f32(
            name,
            &[],
            &[attribute.f.unwrap_or_default()],
        )),
        (Some("value_int"), _) => Some(TensorProto::from_i64(
            name,
            &[],
            &[attribute.i.unwrap_or_default()],
        )),
        (Some("value_floats"), _) => Some(TensorProto::from_f32(
            name,
            &[attribute.floats.len()],
            &attribute.floats,
        )),
        (Some("value_ints"), _) => Some(TensorProto::from_i64(
            name,
            &[attribute.ints.len()],
            &attribute.ints,
        )),
        (Some("value_string" | "value_strings"), Some(kind)) => {
            let one = kind == AttributeType::String;
            Some(TensorProto {
                name: Some(name.clone()),
                dims: if one {
                    vec![]
                } else {
                    vec![attribute.strings.len() as i64]
                },
                data_type: Some(DataType::String as i32),
                string_data: if one {
                    vec![attribute.s.clone().unwrap_or_default()]
                } else {
                    attribute.strings.clone()
                },
                ..TensorProto::default()
            })
        }
        _ => None,
    })
}
