//! Validates the nodes of a model before tract sees them.

use super::EngineError;
use octet_graph::Model;
use octet_graph::prepare::{Types, infer, infer_from};
use octet_graph::validate::{InvalidNode, validate as validate_nodes};
use octet_onnx::in_memory::Tensor;

/// Fails at an invalid node, for inputs of these shapes if they are given. Returns the types of all
/// values.
pub(super) fn validate(model: &Model, inputs: Option<&[Tensor]>) -> Result<Types, EngineError> {
    let graph = &model.graph;
    let types = match inputs {
        Some(inputs) => infer_from(graph, &inputs.iter().map(Tensor::shape).collect::<Vec<_>>()),
        None => infer(graph),
    };
    validate_nodes(model, &types, true)?;
    Ok(types)
}

/// Validates a model that isn't run here, as far as that is possible without inputs. It accepts
/// unknown operators, and outputs too large for this machine.
pub fn validate_unrun(model: &Model) -> Result<(), EngineError> {
    Ok(validate_nodes(model, &infer(&model.graph), false)?)
}

impl From<InvalidNode> for EngineError {
    fn from(invalid: InvalidNode) -> EngineError {
        EngineError::Node {
            operator: invalid.operator,
            node: invalid.node,
            what: invalid.what,
            actual: invalid.actual,
            expected: invalid.expected,
        }
    }
}
