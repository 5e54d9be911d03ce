//! Validates the nodes of a model before tract sees them.
//!
//! tract trusts attributes: an invalid one makes it panic, which ends the engine in a browser, or
//! use memory and time without limit. ONNX Runtime rejects everything that is rejected here.
//! Unknown types and shapes are not checked.

mod axes;
mod inputs;
mod matmul_nbits;
mod shapes;
mod sizes;
mod windows;

use std::fmt::{Debug, Display};

use super::EngineError;
use octet_graph::prepare::{InferredValue, Types, count, infer, infer_from};
use octet_graph::{Dim, MICROSOFT, Model};
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::NodeProto;

/// Maximum number of elements of a tensor, within the address space of the machine.
const MAX_ELEMENTS: usize = 1 << if usize::BITS < 64 { 29 } else { 32 };

/// Limit for sizes, strides and pads, so that sums and products of two of them fit.
const MAX_SIZE: i64 = 1 << 31;

/// Fails at an invalid node, for inputs of these shapes if they are given. Returns the types of all
/// values.
pub(super) fn validate(model: &Model, inputs: Option<&[Tensor]>) -> Result<Types, EngineError> {
    let graph = &model.graph;
    let types = match inputs {
        Some(inputs) => infer_from(graph, &inputs.iter().map(Tensor::shape).collect::<Vec<_>>()),
        None => infer(graph),
    };
    each(model, &types, true)?;
    Ok(types)
}

/// Validates a model that isn't run here, as far as that is possible without inputs. It accepts
/// unknown operators, and outputs too large for this machine.
pub fn validate_unrun(model: &Model) -> Result<(), EngineError> {
    each(model, &infer(&model.graph), false)
}

fn each(model: &Model, types: &Types, runs: bool) -> Result<(), EngineError> {
    for node in &model.graph.nodes {
        let validator = NodeValidator {
            node,
            types,
            opset: model.opset(),
        };
        let sizes = || if runs { validator.outputs() } else { Ok(()) };
        let actual = validator.validate().and_then(|()| sizes());
        actual.map_err(|refusal| EngineError::Node {
            operator: node.operator(),
            node: node.title().to_owned(),
            what: refusal.what,
            actual: refusal.actual,
            expected: refusal.expected,
        })?;
    }
    Ok(())
}

/// The reason why a node is invalid.
struct InvalidNode {
    /// The attribute or input.
    what: String,
    actual: String,
    expected: String,
}

type Validation = Result<(), InvalidNode>;

fn refuse(what: &str, actual: impl Debug, expected: impl Display) -> Validation {
    Err(InvalidNode {
        what: what.to_owned(),
        actual: format!("{actual:?}"),
        expected: expected.to_string(),
    })
}

/// Fails unless `holds` is true.
fn ensure(holds: bool, what: &str, actual: impl Debug, expected: impl Display) -> Validation {
    match holds {
        true => Ok(()),
        false => refuse(what, actual, expected),
    }
}

struct NodeValidator<'a> {
    node: &'a NodeProto,
    types: &'a Types,
    opset: i64,
}

impl<'a> NodeValidator<'a> {
    fn validate(&self) -> Validation {
        match (self.node.domain.as_deref(), self.node.op_type.as_deref()) {
            (None | Some("" | "ai.onnx"), Some(operator)) => {
                self.inputs(operator)?;
                self.windows(operator)?;
                self.axes(operator)?;
                self.sizes(operator)?;
                self.shapes(operator)?;
            }
            (Some(MICROSOFT), Some("MatMulNBits")) => self.matmul_nbits()?,
            // tract ignores the domain and reads these as the standard operators.
            (Some(MICROSOFT), Some(operator)) => {
                self.inputs(operator)?;
                self.windows(operator)?;
                self.axes(operator)?;
                self.sizes(operator)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Fails if an output has more than [`MAX_ELEMENTS`] elements.
    fn outputs(&self) -> Validation {
        for name in &self.node.output {
            let sizes = self.types.get(name).and_then(InferredValue::sizes);
            if let Some(sizes) = sizes.filter(|sizes| count(sizes) > MAX_ELEMENTS) {
                let expected = format!("of at most {MAX_ELEMENTS} elements");
                return refuse(
                    &format!("the shape of its output `{name}`"),
                    sizes,
                    expected,
                );
            }
        }
        Ok(())
    }

    fn input(&self, slot: usize) -> Option<&'a InferredValue> {
        self.types.get(self.node.input_at(slot)?)
    }

    fn shape(&self, slot: usize) -> Option<&'a [Dim]> {
        self.input(slot)?.shape.as_deref()
    }

    /// The size of an input along an axis, if known.
    fn size(&self, slot: usize, axis: usize) -> Option<i64> {
        match self.shape(slot)?.get(axis)? {
            Dim::Known(size) => i64::try_from(*size).ok(),
            _ => None,
        }
    }

    /// An integer list that is an attribute in older opsets and an input in newer ones.
    fn list(&self, key: &str, slot: usize) -> Option<Vec<i64>> {
        match self.node.ints(key) {
            Some(list) => Some(list.to_vec()),
            None => self.input(slot)?.all_integers(),
        }
    }

    /// An integer attribute, or its default, of at least 1.
    fn positive(&self, key: &str, usual: Option<i64>) -> Result<i64, InvalidNode> {
        match self.node.int(key).or(usual) {
            Some(value) if (1..MAX_SIZE).contains(&value) => Ok(value),
            actual => {
                let actual = actual.map_or("missing".to_owned(), |actual| actual.to_string());
                Err(InvalidNode {
                    what: key.to_owned(),
                    actual,
                    expected: "at least 1 and of at most 31 bits".to_owned(),
                })
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
