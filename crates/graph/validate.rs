//! Validates the nodes of a model before an engine sees them.
//!
//! tract trusts attributes: an invalid one makes it panic, which ends the engine in a browser, or
//! use memory and time without limit. ONNX Runtime rejects everything that is rejected here.
//! Unknown types and shapes are not checked.

use crate::Model;
use crate::inferred_value::Types;
use crate::operators::{NodeContext, Operator};

/// An invalid node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operator} (node `{node}`): {what} is {actual} and must be {expected}")]
pub struct InvalidNode {
    /// The operator of the node.
    pub operator: String,
    /// The name of the node as people see it.
    pub node: String,
    /// The attribute, input or shape that is invalid.
    pub what: String,
    /// The actual value.
    pub actual: String,
    /// The values that are allowed.
    pub expected: String,
}

/// Fails at an invalid node of a model with these inferred types. Outputs too large for this
/// machine are refused only in a model that `runs` here.
pub fn validate(model: &Model, types: &Types, runs: bool) -> Result<(), InvalidNode> {
    for node in model.graph.nodes() {
        let ctx = NodeContext {
            node,
            types,
            opset: model.opset(),
        };
        let sizes = || if runs { ctx.outputs() } else { Ok(()) };
        let actual = Operator::validate(&ctx).and_then(|()| sizes());
        actual.map_err(|refusal| InvalidNode {
            operator: node.operator(),
            node: node.title().to_owned(),
            what: refusal.what,
            actual: refusal.actual,
            expected: refusal.expected,
        })?;
    }
    Ok(())
}
