//! Scan: runs a body for each slice of its inputs along an axis, forwards or backwards.

use super::body::{BodyGraph, list};
use super::control_node::{LiveValues, NodeLabel, describe};
use super::loop_node::{keep, stacked};
use super::slices;
use super::submodel::ExecutionMode;
use crate::EngineError;
use crate::run_context::RunContext;
use octet_graph::prepare::position;
use octet_graph::{Model, Node, tensor_type_of};
use octet_onnx::in_memory::Tensor;

pub(crate) struct ScanNode {
    label: NodeLabel,
    states: Vec<String>,
    read: Vec<(String, ScanAxis)>,
    output_axes: Vec<ScanAxis>,
    body: BodyGraph,
}

/// Axis and direction of a scan.
#[derive(Clone, Copy)]
struct ScanAxis {
    axis: i64,
    backwards: bool,
}

impl ScanNode {
    pub(super) fn new(
        model: &Model,
        node: &Node,
        mode: ExecutionMode,
    ) -> Result<ScanNode, EngineError> {
        let label = NodeLabel::new(node);
        let body = BodyGraph::new(model, node, "body", mode)?;
        let inputs = node.input.len();
        let reads = node.int("num_scan_inputs").unwrap_or(0);
        let reads = usize::try_from(reads).unwrap_or(0);
        let states = match inputs.checked_sub(reads) {
            Some(states) if reads > 0 && states <= node.output.len() => states,
            _ => {
                let expected =
                    format!("from 1 to {inputs}, with an output for each of its other inputs");
                return Err(label.error("num_scan_inputs", reads, expected));
            }
        };
        if node.input.iter().any(String::is_empty) {
            return Err(label.error("one of its inputs", "missing", "given"));
        }
        body.fits(&label, inputs, node.output.len())?;
        let scan_axes = |which: &str, count: usize| -> Result<Vec<ScanAxis>, EngineError> {
            let axes = list(node, &format!("scan_{which}_axes"), count)?;
            let directions = list(node, &format!("scan_{which}_directions"), count)?;
            let scan_axis = |(axis, direction)| ScanAxis {
                axis,
                backwards: direction == 1,
            };
            Ok(axes.into_iter().zip(directions).map(scan_axis).collect())
        };
        let names = node.input.iter().skip(states).cloned();
        Ok(ScanNode {
            states: node.input.iter().take(states).cloned().collect(),
            read: names.zip(scan_axes("input", reads)?).collect(),
            output_axes: scan_axes("output", node.output.len() - states)?,
            label,
            body,
        })
    }

    pub(super) fn run(
        &self,
        live: &LiveValues,
        run: &mut RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        let label = &self.label;
        let read = self.read.iter().map(|(name, scan_axis)| {
            let tensor = label.input(live, name)?;
            let axis = self.axis(scan_axis, tensor.shape().len(), name)?;
            Ok((tensor, axis, scan_axis.backwards))
        });
        let read = read.collect::<Result<Vec<_>, EngineError>>()?;
        let iterations = read
            .first()
            .map_or(0, |(tensor, axis, _)| tensor.shape()[*axis]);
        for (tensor, axis, _) in &read {
            if tensor.shape()[*axis] != iterations {
                let expected =
                    format!("of size {iterations} on axis {axis}, as its first scanned input");
                return Err(label.error("a scanned input", describe(tensor), expected));
            }
        }
        let values = self.states.iter();
        let values = values.map(|name| label.input(live, name).cloned());
        let mut values = values.collect::<Result<Vec<Tensor>, _>>()?;
        let mut stacks = vec![Vec::new(); self.output_axes.len()];
        for iteration in 0..iterations {
            label.count_iteration(run.iterations)?;
            let mut fed = std::mem::take(&mut values);
            for (tensor, axis, backwards) in &read {
                let place = if *backwards {
                    iterations - 1 - iteration
                } else {
                    iteration
                };
                fed.extend(slices::slice(tensor, *axis, place));
            }
            let mut made = self.body.run(label, fed, live, run)?.into_iter();
            values.extend(made.by_ref().take(self.states.len()));
            for (stack, one) in stacks.iter_mut().zip(made) {
                keep(label, stack, one)?;
            }
        }
        let ports = self.body.outputs.iter().skip(self.states.len());
        for ((mut stack, scan_axis), port) in stacks.into_iter().zip(&self.output_axes).zip(ports) {
            if scan_axis.backwards {
                stack.reverse();
            }
            let declared = || Some(tensor_type_of(port)?.shape?.len());
            let axes = stack.first().map(|one| one.shape().len()).or_else(declared);
            let name = port.name.as_deref().unwrap_or_default();
            let axis = self.axis(scan_axis, axes.unwrap_or(0) + 1, name)?;
            values.push(stacked(label, &stack, axis, port)?);
        }
        Ok(values)
    }

    fn axis(&self, scan_axis: &ScanAxis, axes: usize, name: &str) -> Result<usize, EngineError> {
        position(scan_axis.axis, axes).ok_or_else(|| {
            let what = format!("the scan axis of `{name}`");
            self.label
                .error(&what, scan_axis.axis, format!("one of {axes}"))
        })
    }
}
