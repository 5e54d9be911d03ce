//! Scan: runs a body for each slice of its inputs along an axis, forwards or backwards.

use super::super::EngineError;
use super::super::execute::Run;
use super::body::{Body, list};
use super::repeat::{keep, stacked};
use super::{Form, Held, Said, elements, in_words};
use crate::graph::{Model, tensor_type_of};
use crate::onnx::schema::NodeProto;
use crate::prepare::position;
use crate::tensor::Tensor;

pub(in crate::engine) struct Scan {
    said: Said,
    states: Vec<String>,
    read: Vec<(String, Way)>,
    made: Vec<Way>,
    body: Body,
}

/// Axis and direction of a scan.
#[derive(Clone, Copy)]
struct Way {
    axis: i64,
    backwards: bool,
}

impl Scan {
    pub(super) fn new(model: &Model, node: &NodeProto, form: Form) -> Result<Scan, EngineError> {
        let said = Said::of(node);
        let body = Body::new(model, node, "body", form)?;
        let inputs = node.input.len();
        let reads = node.int("num_scan_inputs").unwrap_or(0);
        let reads = usize::try_from(reads).unwrap_or(0);
        let states = match inputs.checked_sub(reads) {
            Some(states) if reads > 0 && states <= node.output.len() => states,
            _ => {
                let wanted = format!("1 to {inputs}, and an output for each of its other inputs");
                return Err(said.wrong("num_scan_inputs", reads, wanted));
            }
        };
        if node.input.iter().any(String::is_empty) {
            return Err(said.wrong("one of its inputs", "absent", "there"));
        }
        body.fits(&said, inputs, node.output.len())?;
        let ways = |which: &str, count: usize| -> Result<Vec<Way>, EngineError> {
            let axes = list(node, &format!("scan_{which}_axes"), count)?;
            let directions = list(node, &format!("scan_{which}_directions"), count)?;
            let way = |(axis, direction)| Way {
                axis,
                backwards: direction == 1,
            };
            Ok(axes.into_iter().zip(directions).map(way).collect())
        };
        let names = node.input.iter().skip(states).cloned();
        Ok(Scan {
            states: node.input.iter().take(states).cloned().collect(),
            read: names.zip(ways("input", reads)?).collect(),
            made: ways("output", node.output.len() - states)?,
            said,
            body,
        })
    }

    pub(super) fn run(&self, held: &Held, run: &mut Run) -> Result<Vec<Tensor>, EngineError> {
        let said = &self.said;
        let read = self.read.iter().map(|(name, way)| {
            let tensor = said.held(held, name)?;
            let axis = self.axis(way, tensor.shape().len(), name)?;
            Ok((tensor, axis, way.backwards))
        });
        let read = read.collect::<Result<Vec<_>, EngineError>>()?;
        let turns = read
            .first()
            .map_or(0, |(tensor, axis, _)| tensor.shape()[*axis]);
        for (tensor, axis, _) in &read {
            if tensor.shape()[*axis] != turns {
                let wanted = format!("{turns} long on axis {axis}, as the first that it reads");
                return Err(said.wrong("what it reads", in_words(tensor), wanted));
            }
        }
        let values = self.states.iter();
        let values = values.map(|name| said.held(held, name).cloned());
        let mut values = values.collect::<Result<Vec<Tensor>, _>>()?;
        let mut stacks = vec![Vec::new(); self.made.len()];
        for turn in 0..turns {
            said.turn(run.turns)?;
            let mut fed = std::mem::take(&mut values);
            for (tensor, axis, backwards) in &read {
                let place = if *backwards { turns - 1 - turn } else { turn };
                fed.extend(elements::slice(tensor, *axis, place));
            }
            let mut made = self.body.run(said, fed, held, run)?.into_iter();
            values.extend(made.by_ref().take(self.states.len()));
            for (stack, one) in stacks.iter_mut().zip(made) {
                keep(said, stack, one)?;
            }
        }
        let ports = self.body.outputs.iter().skip(self.states.len());
        for ((mut stack, way), port) in stacks.into_iter().zip(&self.made).zip(ports) {
            if way.backwards {
                stack.reverse();
            }
            let declared = || Some(tensor_type_of(port)?.shape?.len());
            let axes = stack.first().map(|one| one.shape().len()).or_else(declared);
            let name = port.name.as_deref().unwrap_or_default();
            let axis = self.axis(way, axes.unwrap_or(0) + 1, name)?;
            values.push(stacked(said, &stack, axis, port)?);
        }
        Ok(values)
    }

    fn axis(&self, way: &Way, axes: usize, name: &str) -> Result<usize, EngineError> {
        position(way.axis, axes).ok_or_else(|| {
            let what = format!("the axis that it goes along of `{name}`");
            self.said.wrong(&what, way.axis, format!("one of {axes}"))
        })
    }
}
