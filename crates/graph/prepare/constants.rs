//! Makes every constant an initializer and removes initializers from the inputs. Tensor bytes stay
//! shared.

use crate::Graph;
use crate::operators::constant_value;
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
    let mut constants = Vec::new();
    for (i, node) in graph.nodes().iter().enumerate() {
        if let Some(tensor) = constant_value(node)? {
            constants.push(tensor);
            gone.insert(i);
        }
    }
    for tensor in constants {
        graph.initializers.insert(tensor);
    }
    graph.remove_nodes(&gone);
    Ok(gone.len())
}
