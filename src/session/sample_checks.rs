//! Samples before a run: requirements of the model's inputs, previews, and checks of each sample.

use serde::Serialize;

use super::opened::{OpenedModel, has_free_axis};
use super::prepared::PreparedModel;
use super::{Error, Session};
use crate::samples::{
    self, FileStart, InputSpec, Preview, SampleError, SampleProblem, ShapeMismatch,
};
use crate::tensor::Tensor;

/// A sample that cannot be used with the current preprocessing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnusableSample {
    /// Name of the sample.
    pub sample: String,
    /// The problem and its remedy, as a sentence.
    pub reason: String,
    /// True if another image size or way of resizing may solve it.
    pub asks_for_size: bool,
}

impl Session {
    /// Name, element type and shape of each input that a sample must provide.
    pub fn input_specs(&self) -> Vec<InputSpec> {
        self.opened.input_specs()
    }

    /// Previews of the decoded sample, one for each input.
    pub fn preview(
        &self,
        sample: &samples::Encoded,
        settings: &samples::SampleSettings,
    ) -> Result<Vec<Preview>, Error> {
        Ok(samples::preview(sample, &self.input_specs(), settings)?)
    }

    /// Checks a sample before a run, from the beginnings of its files. [`samples::bytes_to_check`]
    /// tells how many bytes that takes.
    pub fn check(
        &mut self,
        name: &str,
        parts: &[FileStart],
        settings: &samples::SampleSettings,
    ) -> Result<(), UnusableSample> {
        let unusable = |problem: &SampleProblem| UnusableSample {
            sample: name.into(),
            reason: problem.message_for(name),
            asks_for_size: problem.asks_for_size(),
        };
        let inputs = self.input_specs();
        let shapes = match samples::check(name, parts, &inputs, settings) {
            Ok(shapes) => shapes,
            Err(SampleError::Sample { problem, .. }) => return Err(unusable(&problem)),
            Err(other) => {
                return Err(UnusableSample {
                    sample: name.into(),
                    reason: other.to_string(),
                    asks_for_size: false,
                });
            }
        };
        match shapes.filter(|_| has_free_axis(&inputs)) {
            Some(shapes) => match self.opened.refusal(&shapes, self.stage.prepared()) {
                Some(refusal) => Err(unusable(&SampleProblem::rejected_shapes(&shapes, &refusal))),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Decodes a sample for the model's inputs.
    pub fn decode(
        &self,
        sample: &samples::Encoded,
        settings: &samples::SampleSettings,
    ) -> Result<Vec<Tensor>, Error> {
        self.opened.decode(sample, settings)
    }
}

impl OpenedModel {
    /// Reason why inputs of these shapes don't fit the model, if any. The answer is cached by
    /// shape. The prepared model knows more shapes, if there is one.
    fn refusal(
        &mut self,
        shapes: &[Vec<usize>],
        prepared: Option<&PreparedModel>,
    ) -> Option<ShapeMismatch> {
        if let Some(known) = self.refusals.get(shapes) {
            return known.clone();
        }
        let slices: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let mismatch = match prepared {
            Some(ready) => ShapeMismatch::find(&ready.model.graph, &slices),
            None => {
                let model = self.model().ok()?;
                // The shape rules take one shape for each graph input; old files list initializers
                // among these.
                let fed = model.graph.inputs.len() == slices.len();
                fed.then(|| ShapeMismatch::find(&model.graph, &slices))
                    .flatten()
            }
        };
        self.refusals.insert(shapes.to_vec(), mismatch.clone());
        mismatch
    }
}
