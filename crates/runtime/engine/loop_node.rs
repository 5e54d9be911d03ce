//! Loop: runs a body for a number of iterations or while a condition holds.
//!
//! A value carried into the next iteration may change its shape. Without any iteration, each
//! collected output is empty and has the declared shape. Undeclared sizes are 0 there, as in ONNX
//! Runtime.

use super::body::BodyGraph;
use super::control_node::{LiveValues, NodeLabel, describe};
use super::slices;
use super::submodel::ExecutionMode;
use crate::EngineError;
use crate::run_context::RunContext;
use octet_graph::{Dim, Model, Node, tensor_type_of};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::ValueInfoProto;

pub(crate) struct LoopNode {
    label: NodeLabel,
    iterations: Option<String>,
    condition: Option<String>,
    carried: Vec<String>,
    body: BodyGraph,
}

impl LoopNode {
    pub(super) fn new(
        model: &Model,
        node: &Node,
        mode: ExecutionMode,
    ) -> Result<LoopNode, EngineError> {
        let label = NodeLabel::new(node);
        let body = BodyGraph::new(model, node, "body", mode)?;
        let carried: Vec<String> = node.input.iter().skip(2).cloned().collect();
        if let Some(place) = carried.iter().position(String::is_empty) {
            return Err(label.error(&format!("its input {}", place + 2), "missing", "given"));
        }
        body.fits(&label, carried.len() + 2, node.output.len() + 1)?;
        if carried.len() > node.output.len() {
            let expected = format!("{} at least", carried.len());
            return Err(label.error("the number of its outputs", node.output.len(), expected));
        }
        Ok(LoopNode {
            iterations: node.input_at(0).map(str::to_owned),
            condition: node.input_at(1).map(str::to_owned),
            label,
            carried,
            body,
        })
    }

    pub(super) fn run(
        &self,
        live: &LiveValues,
        run: &mut RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        let label = &self.label;
        let most = match &self.iterations {
            Some(name) => self.number(label.input(live, name)?)?,
            None => i64::MAX,
        };
        let mut going = match &self.condition {
            Some(name) => label.boolean("its condition", label.input(live, name)?)?,
            None => true,
        };
        let values = self.carried.iter();
        let values = values.map(|name| label.input(live, name).cloned());
        let mut values = values.collect::<Result<Vec<Tensor>, _>>()?;
        let collected = &self.body.outputs[1 + values.len()..];
        let mut stacks = vec![Vec::new(); collected.len()];
        let mut condition = self.scalar(1, Values::Bool(vec![going]));
        let mut iteration = 0;
        while going && iteration < most {
            label.count_iteration(run.iterations)?;
            let number = self.scalar(0, Values::I64(vec![iteration]));
            let mut fed = Vec::with_capacity(values.len() + 2);
            fed.extend(number.into_iter().chain(condition.take()));
            fed.append(&mut values);
            let mut made = self.body.run(label, fed, live, run)?.into_iter();
            condition = made.next();
            if let Some(condition) = &condition {
                going = label.boolean("the condition that its graph returns", condition)?;
            }
            values.extend(made.by_ref().take(self.carried.len()));
            let carried = values.iter().map(|value| value.values().len()).sum();
            label.check_size("the state that it carries to the next iteration", carried)?;
            for (stack, one) in stacks.iter_mut().zip(made) {
                keep(label, stack, one)?;
            }
            iteration += 1;
        }
        for (stack, port) in stacks.iter().zip(collected) {
            values.push(stacked(label, stack, 0, port)?);
        }
        Ok(values)
    }

    /// A scalar in the shape that the body declares for this input: some bodies want a list of one.
    fn scalar(&self, input: usize, value: Values) -> Option<Tensor> {
        let declared = self.body.inputs.get(input).and_then(tensor_type_of);
        let axes = declared
            .and_then(|actual| actual.shape)
            .map_or(0, |shape| shape.len());
        Tensor::new(vec![1; axes.min(1)], value)
    }

    fn number(&self, tensor: &Tensor) -> Result<i64, EngineError> {
        match tensor.values() {
            Values::I64(one) if one.len() == 1 => Ok(one[0]),
            _ => {
                let actual = describe(tensor);
                Err(self
                    .label
                    .error("its trip count", actual, "one integer of 64 bits"))
            }
        }
    }
}

/// Collects the result of an iteration.
pub(super) fn keep(
    label: &NodeLabel,
    stack: &mut Vec<Tensor>,
    one: Tensor,
) -> Result<(), EngineError> {
    let elements = one.values().len().saturating_mul(stack.len() + 1);
    label.check_size("the results that it collects", elements)?;
    stack.push(one);
    Ok(())
}

/// Stacks the results of all iterations along an axis; without iterations, an empty tensor of the
/// declared shape.
pub(super) fn stacked(
    label: &NodeLabel,
    results: &[Tensor],
    axis: usize,
    port: &ValueInfoProto,
) -> Result<Tensor, EngineError> {
    let what = || {
        format!(
            "the results that it collects for `{}`",
            port.name.as_deref().unwrap_or_default()
        )
    };
    if !results.is_empty() {
        return slices::stacked(results, axis).ok_or_else(|| {
            let shapes: Vec<String> = results.iter().take(4).map(describe).collect();
            label.error(
                &what(),
                shapes.join(", "),
                "of one type and shape in all iterations",
            )
        });
    }
    let declared = tensor_type_of(port);
    let empty = declared.and_then(|declared| {
        let size = |dim: &Dim| match dim {
            Dim::Known(size) => *size,
            _ => 0,
        };
        let mut shape: Vec<usize> = declared.shape?.iter().map(size).collect();
        (axis <= shape.len()).then(|| shape.insert(axis, 0))?;
        slices::empty(declared.element, &shape)
    });
    empty.ok_or_else(|| {
        label.error(
            &what(),
            "empty, because there is no iteration,",
            "of a declared shape",
        )
    })
}
