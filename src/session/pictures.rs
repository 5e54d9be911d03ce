//! Samples before a run: what the model wants of them, how pictures are probably to be read, and whether each fits.

use std::collections::HashSet;

use serde::Serialize;

use super::{Error, Session};
use crate::graph::{Dim, Model, tensor_type_of};
use crate::onnx::schema::ModelProto;
use crate::samples::{self, Glimpse, InputSpec, Preview, Problem, Refusal, SampleError};

/// A sample that can't be used as samples are read now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Misfit {
    /// Its name.
    pub sample: String,
    /// What is wrong with it, and what to do.
    pub reason: String,
    /// Whether another size or way of resizing may mend it.
    pub asks_for_size: bool,
}

impl Session {
    /// What a sample must bring.
    pub fn input_specs(&self) -> Vec<InputSpec> {
        input_specs(&self.header)
    }

    /// What a sample looks like once decoded, input by input.
    pub fn preview(
        &self,
        sample: &samples::Encoded,
        settings: &samples::Settings,
    ) -> Result<Vec<Preview>, Error> {
        Ok(samples::preview(sample, &self.input_specs(), settings)?)
    }

    /// Looks at a sample before a run, of whose files so much must be there as [`samples::glimpsed`] says: what is wrong with
    /// it, if that can be seen.
    pub fn check(
        &mut self,
        name: &str,
        parts: &[Glimpse],
        settings: &samples::Settings,
    ) -> Result<(), Misfit> {
        let misfit = |problem: &Problem| Misfit {
            sample: name.into(),
            reason: problem.of_sample(name),
            asks_for_size: problem.asks_for_size(),
        };
        let inputs = self.input_specs();
        let shapes = match samples::check(name, parts, &inputs, settings) {
            Ok(shapes) => shapes,
            Err(SampleError::Sample { problem, .. }) => return Err(misfit(&problem)),
            Err(other) => {
                return Err(Misfit {
                    sample: name.into(),
                    reason: other.to_string(),
                    asks_for_size: false,
                });
            }
        };
        match shapes.filter(|_| any_open(&inputs)) {
            Some(shapes) => match self.refusal(&shapes) {
                Some(refusal) => Err(misfit(&Problem::of_shapes(&shapes, &refusal))),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Where the model can't go on with inputs of these shapes; looked for once for each.
    fn refusal(&mut self, shapes: &[Vec<usize>]) -> Option<Refusal> {
        if let Some(known) = self.refusals.get(shapes) {
            return known.clone();
        }
        let given: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let found = match &self.prepared {
            Some(ready) => Refusal::of(&ready.model.graph, &given),
            None => {
                let model = Model::from_proto(self.header.clone()).ok()?;
                // The rules take shapes for the first inputs; old files list constants among them.
                let fed = model.graph.inputs.len() == given.len();
                fed.then(|| Refusal::of(&model.graph, &given)).flatten()
            }
        };
        self.refusals.insert(shapes.to_vec(), found.clone());
        found
    }
}

/// Whether a sample may choose the size of an axis. Where it may not, a shape that doesn't fit is the model's own fault.
pub(super) fn any_open(inputs: &[InputSpec]) -> bool {
    let open = |dim: &Dim| !matches!(dim, Dim::Known(1..));
    inputs.iter().any(|input| input.shape.iter().any(open))
}

/// What a sample must bring for this model.
pub(super) fn input_specs(header: &ModelProto) -> Vec<InputSpec> {
    let Some(graph) = &header.graph else {
        return Vec::new();
    };
    let constants: HashSet<_> = graph
        .initializer
        .iter()
        .map(|t| t.name.as_deref())
        .collect();
    let fed = graph
        .input
        .iter()
        .filter(|input| !constants.contains(&input.name.as_deref()));
    fed.filter_map(|input| {
        let declared = tensor_type_of(input)?;
        Some(InputSpec {
            name: input.name.clone()?,
            element: declared.element,
            shape: declared.shape.unwrap_or_default(),
        })
    })
    .collect()
}
