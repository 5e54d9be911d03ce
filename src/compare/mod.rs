//! Compares a quantized model with its float model on samples: the error of every layer and output,
//! the layers it comes from, and remedies.
//!
//! One run computes the float values and their quantized counterparts side by side. Memory then
//! holds a few live values and not all those of two models. If that run fails, each model runs by
//! itself and only the outputs are compared. This is several times as fast, so the page does it first.

mod answers;
mod boxes;
mod combine;
mod difference;
mod error_split;
mod evidence;
mod exact_total;
mod fake_quantization;
mod interval;
mod language;
mod layers;
mod next_step;
mod node_order;
mod output_kinds;
mod outputs;
mod restore_names;
mod simulate;
mod sums;
mod value_statistics;
mod verdict;
mod warnings;

use serde::Serialize;

pub use answers::SampleAnswers;
pub use boxes::{BoxMatches, DetectedBox, DetectionErrors};
pub use difference::{Difference, DifferenceMetrics};
pub use fake_quantization::FakeQuantization;
pub(crate) use interval::{paired_change, ratio, student, wilson};
pub use language::TokenErrors;
pub use next_step::NextStep;
pub use output_kinds::OutputKind;
pub(crate) use output_kinds::{OutputTraits, shape_of_rows};
pub use outputs::OutputError;
pub(crate) use outputs::{floats, greatest};
pub use sums::{ComparisonSums, OtherSums};
pub use verdict::{Decision, QualityMeasure, Verdict};
pub use warnings::{Warning, WarningKind, slower};

use crate::graph::Model;
use crate::prepare::equalize::{ChannelFactors, EqualizeError};
use crate::prepare::{PrepareError, raise_opset};
use crate::runtime::{Engine, EngineError};
use crate::tensor::Tensor;
use combine::combine;
use error_split::ErrorSplit;
use language::TextPlaces;
use layers::Layers;
use outputs::{OutputAccumulators, picture_size};
use simulate::simulate;
use value_statistics::ValueStatistics;
use warnings::InputStatistics;

/// Reasons why two models can't be compared.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CompareError {
    #[error(
        "no value has the same name in both models: use the float model that the quantized one was \
         made from"
    )]
    NothingInCommon,
    #[error(
        "the models have {float} and {quantized} outputs: use the float model that the quantized \
         one was made from"
    )]
    Outputs { float: usize, quantized: usize },
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Equalize(#[from] EqualizeError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Error that quantization causes in the output of a layer. If only a Relu or Clip reads the
/// output, both sides are clamped by it first.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayerError {
    /// Title of the node that produces the value.
    pub layer: String,
    /// Its operator.
    pub operator: String,
    /// Name of the value.
    pub value: String,
    /// True if the value is rounded to integers.
    pub rounded: bool,
    /// Error with all layers up to this one quantized.
    pub accumulated: DifferenceMetrics,
    /// Error that this layer adds when its inputs are the float model's values; `None` for data
    /// movement.
    pub added: Option<DifferenceMetrics>,
    /// SQNR of the added error in decibels with only the weights as integers.
    pub weights_only: Option<f64>,
    /// SQNR of the added error in decibels with only the activations as integers.
    pub activations_only: Option<f64>,
    /// Share of the float values outside the range of the integers.
    pub clipped: f64,
    /// Smallest float value over all samples.
    pub min: f32,
    /// Largest float value over all samples.
    pub max: f32,
    /// Range that the integers represent.
    pub range: Option<(f32, f32)>,
    /// Noise over signal of this layer, as a share of the sum over all layers.
    pub harm: f64,
}

/// Result of comparing two models on samples.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Number of samples.
    pub samples: usize,
    /// Errors of the outputs.
    pub outputs: Vec<OutputError>,
    /// Advice on whether the quantized model can replace the float model; `None` if no output can be
    /// judged.
    pub verdict: Option<Verdict>,
    /// The output with the lowest SQNR, among those that can be judged.
    pub headline: Option<String>,
    /// Layers in the order of the float model; empty if they could not be compared.
    pub layers: Vec<LayerError>,
    /// Reason why only the outputs were compared; `None` if the layers were compared too.
    pub layers_failed: Option<String>,
    /// Titles of the layers that add most error, the worst first.
    pub worst: Vec<String>,
    /// Values of the float model without a counterpart in the quantized one.
    pub unpaired: Vec<String>,
    /// Conspicuous findings with their causes.
    pub warnings: Vec<Warning>,
}

/// Limit on the worst layers that are named.
const MAX_WORST: usize = 10;

/// A comparison in progress.
pub struct Comparing {
    /// `Err` is the reason why only the outputs are compared; none if nothing else was asked for.
    layers: Result<Layers, Option<String>>,
    /// One engine for each model, created when the combined model fails.
    separate_engines: Option<[Engine; 2]>,
    outputs: OutputAccumulators,
    inputs: InputStatistics,
    /// The inputs that hold a text; `None` if the model takes none.
    text: Option<TextPlaces>,
    float: Model,
    split: Option<ErrorSplit>,
    quantized: Model,
    samples: usize,
}

impl Comparing {
    /// Starts a comparison of two prepared models, with their layers.
    pub fn new(float: Model, quantized: Model) -> Result<Comparing, CompareError> {
        let (float, quantized) = alike(float, quantized)?;
        let combined = combine(&float, &quantized)?;
        let inputs = InputStatistics::new(&float, &combined.simulated);
        let layers = Layers {
            engine: Engine::watching(combined.model.clone(), combined.watched.clone()),
            sums: combined
                .pairs
                .iter()
                .map(|_| ValueStatistics::default())
                .collect(),
            combined,
        };
        Ok(Comparing::with(float, quantized, Ok(layers), inputs))
    }

    /// Starts a comparison of the outputs alone.
    pub fn of_outputs(float: Model, quantized: Model) -> Result<Comparing, CompareError> {
        let (float, quantized) = alike(float, quantized)?;
        let inputs = InputStatistics::new(&float, &simulate(&quantized));
        Ok(Comparing::with(float, quantized, Err(None), inputs))
    }

    fn with(
        float: Model,
        quantized: Model,
        layers: Result<Layers, Option<String>>,
        inputs: InputStatistics,
    ) -> Comparing {
        let text = TextPlaces::new(&float);
        let caches = text.as_ref().is_some_and(|text| text.caches);
        Comparing {
            layers,
            separate_engines: None,
            outputs: OutputAccumulators::new(&float, caches),
            text,
            inputs,
            float,
            split: None,
            quantized,
            samples: 0,
        }
    }

    /// True if only the outputs were asked for.
    pub fn is_of_outputs(&self) -> bool {
        matches!(self.layers, Err(None))
    }

    /// From the next sample on, measures the output error of the weights alone and of the
    /// activations alone. This takes two more runs for each sample. Returns false if the quantized
    /// model has no weights behind DequantizeLinear.
    pub fn split(&mut self) -> bool {
        self.split = ErrorSplit::new(&self.float, &self.quantized);
        self.split.is_some()
    }

    /// Runs a sample; `label` is its class, if known. Returns what both models answer.
    pub fn feed(
        &mut self,
        inputs: &[Tensor],
        label: Option<usize>,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<SampleAnswers, CompareError> {
        let together = match &mut self.layers {
            Ok(layers) => match layers.feed(inputs, &stop) {
                Err(EngineError::Stopped) => return Err(EngineError::Stopped.into()),
                results => results.map_err(|error| Some(error.to_string())),
            },
            Err(reason) => Err(reason.clone()),
        };
        let mut float = match together {
            Ok(results) => results,
            Err(reason) => {
                let results = self.run_separately(inputs, &stop)?;
                self.layers = Err(reason);
                results
            }
        };
        self.inputs.observe(inputs);
        let quantized = float.split_off(float.len() / 2);
        let text = self.text.as_ref().and_then(|places| places.text(inputs));
        let picture = picture_size(inputs);
        let boxes = self
            .outputs
            .add(&float, &quantized, picture, text.as_ref(), label);
        if let Some(split) = &mut self.split {
            split.add(inputs, &float, &stop)?;
        }
        self.samples += 1;
        Ok(SampleAnswers {
            outputs: self.outputs.described(),
            float,
            quantized,
            prototypes: self.outputs.prototypes(),
            boxes,
        })
    }

    /// Outputs of each model run by itself, float model first. Both run at the same time.
    fn run_separately(
        &mut self,
        inputs: &[Tensor],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Tensor>, EngineError> {
        let [float, quantized] = self.separate_engines.get_or_insert_with(|| {
            let [float, quantized] =
                [&self.float, &self.quantized].map(|model| Engine::new(model.clone(), Vec::new()));
            [float, quantized.on_integers()]
        });
        let (float, quantized) = rayon::join(
            || float.run(inputs, |_, _| {}, stop),
            || quantized.run(inputs, |_, _| {}, stop),
        );
        Ok([float?, quantized?].concat())
    }

    /// Computes the result.
    pub fn finish(self) -> Comparison {
        let mut outputs = self.outputs.finish();
        let errors = self.split.iter().flat_map(ErrorSplit::finish);
        for ((output, _), (weights, activations)) in outputs.iter_mut().zip(errors) {
            output.weights_only = Some(weights);
            output.activations_only = Some(activations);
        }
        let (layers, simulated, unpaired, failed) = match self.layers {
            Ok(layers) => {
                let (errors, unlike) = layers.errors();
                let unpaired = [layers.combined.unpaired, unlike].concat();
                (errors, layers.combined.simulated, unpaired, None)
            }
            Err(reason) => (Vec::new(), simulate(&self.quantized), Vec::new(), reason),
        };
        let mut order: Vec<&LayerError> = layers.iter().filter(|l| l.harm > 0.0).collect();
        order.sort_by(|a, b| b.harm.total_cmp(&a.harm));
        let worst = order
            .iter()
            .take(MAX_WORST)
            .map(|l| l.layer.clone())
            .collect();
        let warnings = warnings::find(&self.float, &simulated, &layers, &self.inputs);
        let verdict = verdict::judge(&outputs, &layers);
        let outputs: Vec<OutputError> = outputs.into_iter().map(|(output, _)| output).collect();
        Comparison {
            samples: self.samples,
            verdict,
            headline: outputs::headline(&outputs),
            outputs,
            layers,
            layers_failed: failed,
            worst,
            unpaired,
            warnings,
        }
    }
}

/// Both models with the same opset, and equal names of equal values.
fn alike(mut float: Model, mut quantized: Model) -> Result<(Model, Model), CompareError> {
    // If the quantized model was equalized, its layers compare with a float model of the same
    // factors.
    if ChannelFactors::from_metadata(&float)?.is_empty() {
        float = ChannelFactors::from_metadata(&quantized)?.applied(&float)?;
    }
    let opset = float.opset().max(quantized.opset());
    raise_opset(&mut float, opset)?;
    raise_opset(&mut quantized, opset)?;
    let (first, second) = (float.graph.outputs().len(), quantized.graph.outputs().len());
    if first != second {
        return Err(CompareError::Outputs {
            float: first,
            quantized: second,
        });
    }
    restore_names::restore(&float, &mut quantized);
    Ok((float, quantized))
}

#[cfg(test)]
mod tests;
