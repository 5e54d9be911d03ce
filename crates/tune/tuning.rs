//! A run over the layers of a model.

use std::path::Path;

use octet_graph::Model;
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::TensorProto;
use octet_runtime::Engine;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::TuneError;
use crate::closed_form::{Freedom, solve_layer};
use crate::frontier::Frontier;
use crate::layers::{TunedLayer, layers};
use crate::learn::learn;
use crate::options::{FrontierPlace, TuneOptions};
use crate::problem::{LayerProblem, positions_within};
use crate::solution::Solution;
use crate::store::Store;

/// Of this many samples, one judges the whole model.
const JUDGED: usize = 4;
/// A proposal must lower the error by this share.
const GAIN: f64 = 1e-3;

/// A layer whose constants were learned.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayerReport {
    /// Title of the layer.
    pub layer: String,
    /// Its operator.
    pub operator: String,
    /// The proposal that was taken: `given`, `closed form` or `learned`.
    pub taken: String,
    /// Mean squared error at positions that did not teach, before.
    pub before: f64,
    /// Mean squared error there, with the constants that were taken.
    pub after: f64,
    /// Mean squared error along the steps of the fine-tuning.
    pub curve: Vec<f64>,
}

/// The error of the whole model on samples that did not teach.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// SQNR of the outputs in dB, before.
    pub before: f64,
    /// SQNR with the learned constants.
    pub after: f64,
    /// False if the learned constants were worse, and therefore not taken.
    pub taken: bool,
}

/// Result of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TuningSummary {
    /// Layers in their order.
    pub layers: Vec<LayerReport>,
    /// The whole model; `None` with fewer than four samples.
    pub judgement: Option<Judgement>,
    /// Number of samples.
    pub samples: usize,
    /// The most bytes of the values between two layers.
    pub frontier_bytes: usize,
}

/// Learned constants.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// Constants of the quantized model, in place of those of the same names.
    pub constants: Vec<TensorProto>,
    /// The summary.
    pub summary: TuningSummary,
}

/// Expected memory of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TuneForecast {
    /// The layer that needs the most memory.
    pub layer: String,
    /// Bytes of its data and of its learning.
    pub layer_bytes: usize,
    /// Number of layers.
    pub layers: usize,
}

/// A run over the layers of a model. Samples are added first.
pub struct Tuning {
    float: Model,
    quantized: Model,
    options: TuneOptions,
    layers: Vec<TunedLayer>,
    originals: Frontier,
    integers: Frontier,
    store: Store,
    /// Samples that judge the whole model.
    judges: Vec<Vec<Tensor>>,
    samples: usize,
}

impl Tuning {
    /// Prepares the run. The quantized model holds QuantizeLinear and DequantizeLinear nodes.
    /// `folder` is that of a file of values, if the options ask for one.
    pub fn new(
        float: Model,
        quantized: Model,
        options: TuneOptions,
        folder: &Path,
    ) -> Result<Tuning, TuneError> {
        let mut layers = layers(&float, &quantized, &options.operators);
        if options.only_largest {
            let largest = layers
                .iter()
                .max_by_key(|layer| bytes_of(layer, &options))
                .map(|layer| layer.node);
            layers.retain(|layer| Some(layer.node) == largest);
        }
        let cuts =
            |of: &dyn Fn(&TunedLayer) -> usize| layers.iter().map(of).collect::<Vec<usize>>();
        let (integer_cuts, mut float_cuts) =
            (cuts(&|layer| layer.node), cuts(&|layer| layer.float_node));
        // The float model may hold its nodes in another order; a cut then lies at the first of the
        // layers that follow, whose inputs exist there at the latest.
        for place in 1..float_cuts.len() {
            float_cuts[place] = float_cuts[place].max(float_cuts[place - 1]);
        }
        let halves = options.resting != FrontierPlace::Floats;
        Ok(Tuning {
            originals: Frontier::new(&float.graph, &float_cuts, halves)?,
            integers: Frontier::new(&quantized.graph, &integer_cuts, false)?,
            store: match options.resting {
                FrontierPlace::File => Store::in_file(folder)?,
                _ => Store::Memory,
            },
            float,
            quantized,
            options,
            layers,
            judges: Vec::new(),
            samples: 0,
        })
    }

    /// The titles of the layers that will be learned.
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().map(|layer| layer.title.as_str())
    }

    /// The memory of the layer that needs most.
    pub fn forecast(&self) -> Option<TuneForecast> {
        let bytes = |layer: &&TunedLayer| bytes_of(layer, &self.options);
        let largest = self.layers.iter().max_by_key(bytes)?;
        Some(TuneForecast {
            layer: largest.title.clone(),
            layer_bytes: bytes_of(largest, &self.options),
            layers: self.layers.len(),
        })
    }

    /// Adds a sample.
    pub fn add(&mut self, inputs: Vec<Tensor>) -> Result<(), TuneError> {
        self.originals
            .add(&self.float.graph, &inputs, &self.store)?;
        self.integers
            .add(&self.quantized.graph, &inputs, &self.store)?;
        self.samples += 1;
        if self.samples.is_multiple_of(JUDGED) {
            self.judges.push(inputs);
        }
        Ok(())
    }

    /// Learns layer by layer. `done` receives each layer with its place. `stop` is asked in each
    /// step.
    pub fn run(
        mut self,
        mut done: impl FnMut(usize, &LayerReport),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Tuned, TuneError> {
        if self.samples == 0 {
            return Err(TuneError::NoSamples);
        }
        let before = self.quantized.clone();
        let mut all = Vec::new();
        let mut reports = Vec::new();
        let mut frontier_bytes = 0;
        for place in 0..self.layers.len() {
            self.originals
                .advance(&self.float, false, &self.store, stop)?;
            self.integers
                .advance(&self.quantized, true, &self.store, stop)?;
            frontier_bytes = frontier_bytes.max(self.originals.bytes() + self.integers.bytes());
            let (constants, report) = self.layer(place, stop)?;
            for constant in &constants {
                self.quantized.graph.initializers.insert(constant.clone());
            }
            all.extend(constants);
            done(place, &report);
            reports.push(report);
        }
        let judgement = self.judge(&before, stop)?;
        if judgement.is_some_and(|judgement| !judgement.taken) {
            all.clear();
        }
        Ok(Tuned {
            constants: all,
            summary: TuningSummary {
                layers: reports,
                judgement,
                samples: self.samples,
                frontier_bytes,
            },
        })
    }

    /// The constants of a layer.
    fn layer(
        &self,
        place: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Vec<TensorProto>, LayerReport), TuneError> {
        let (layer, options) = (&self.layers[place], &self.options);
        let (weights, bias) = layer.floats(&self.float.graph)?;
        let given = layer.solution(&self.quantized.graph)?;
        let seed = options.seed.wrapping_add(place as u64);
        let outputs = layer.rows.outputs();
        let (groups, inputs) = (layer.rows.view().groups(), layer.rows.inputs());
        let positions =
            positions_within(groups, inputs, outputs / groups.max(1), options.layer_bytes);
        let bias = bias.unwrap_or_default();
        let frontiers = (&self.originals, &self.integers);
        let mut problem = LayerProblem::gather(
            layer,
            [weights, bias],
            frontiers,
            &self.store,
            positions,
            seed,
        )?;
        problem.output = layer.output.filter(|_| options.output_qdq);
        let judged = |solution: &Solution| -> Result<f64, TuneError> {
            let losses = problem.losses(&problem.judged, solution)?;
            Ok(losses.iter().sum::<f64>() / losses.len().max(1) as f64)
        };
        let before = judged(&given)?;
        let mut best = (before, given, "given");
        let mut propose = |solution: Solution, name: &'static str| -> Result<(), TuneError> {
            let loss = judged(&solution)?;
            if loss < best.0 * (1.0 - GAIN) {
                best = (loss, solution, name);
            }
            Ok(())
        };
        if options.closed_form {
            let given = layer.solution(&self.quantized.graph)?;
            let proposals = [
                (0.0, false),
                (0.5, false),
                (1.0, false),
                (0.5, true),
                (1.0, true),
            ];
            for (shift, scales) in proposals {
                if stop() {
                    return Err(TuneError::Stopped);
                }
                let freedom = Freedom {
                    shift,
                    scales,
                    refit: scales,
                };
                let solved = solve_layer(
                    &problem,
                    &given,
                    layer.ends,
                    &layer.zero_points,
                    freedom,
                    layer.per_output,
                )?;
                propose(solved, "closed form")?;
            }
        }
        let mut curve = Vec::new();
        if options.learn {
            let from = best.1.clone();
            let how = (options, seed, layer.per_output);
            let learned = learn(&problem, &from, layer.ends, &layer.zero_points, how, stop)?;
            curve = learned.curve;
            let loss = judged(&learned.solution)?;
            if loss < best.0 * (1.0 - GAIN) {
                best = (loss, learned.solution, "learned");
            }
        }
        let (after, solution, taken) = best;
        let report = LayerReport {
            layer: layer.title.clone(),
            operator: layer.operator.clone(),
            taken: taken.into(),
            before,
            after,
            curve,
        };
        let constants = match taken {
            "given" => Vec::new(),
            _ => layer.constants(&solution),
        };
        Ok((constants, report))
    }

    /// Compares the model before and after with the float model, on the samples that judge.
    fn judge(
        &self,
        before: &Model,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Judgement>, TuneError> {
        if self.judges.is_empty() {
            return Ok(None);
        }
        let engines = [&self.float, before, &self.quantized];
        let engines = engines.map(|model| Engine::new(model.clone(), Vec::new()));
        let of_sample = |inputs: &Vec<Tensor>| -> Result<[f64; 3], TuneError> {
            let mut outputs = Vec::new();
            for engine in &engines {
                outputs.push(engine.run(inputs.as_slice(), |_, _| {}, stop)?);
            }
            let mut sums = [0.0; 3];
            for (index, float) in outputs[0].iter().enumerate() {
                let Some(float) = float.as_f32() else {
                    continue;
                };
                sums[0] += octet_kernels::sum_of_squares(float);
                for (sum, outputs) in sums[1..].iter_mut().zip(&outputs[1..]) {
                    let other = outputs[index].as_f32().unwrap_or_default();
                    let squares = float
                        .iter()
                        .zip(other)
                        .map(|(a, b)| f64::from(a - b).powi(2));
                    *sum += squares.sum::<f64>();
                }
            }
            Ok(sums)
        };
        let sums = self
            .judges
            .par_iter()
            .map(of_sample)
            .collect::<Result<Vec<_>, _>>()?;
        let total = |which: usize| sums.iter().map(|sums| sums[which]).sum::<f64>();
        let decibels = |noise: f64| 10.0 * (total(0) / noise.max(f64::MIN_POSITIVE)).log10();
        let (before, after) = (total(1), total(2));
        Ok(Some(Judgement {
            before: decibels(before),
            after: decibels(after),
            taken: after <= before,
        }))
    }
}

/// Bytes of a layer's data, and of the parameters that it learns.
fn bytes_of(layer: &TunedLayer, options: &TuneOptions) -> usize {
    let (groups, inputs) = (layer.rows.view().groups(), layer.rows.inputs());
    let outputs = layer.rows.outputs();
    let positions = positions_within(groups, inputs, outputs / groups.max(1), options.layer_bytes);
    // The positions are gathered by sample and then merged; a parameter has two moments, a gradient
    // and a real.
    2 * positions * (groups * inputs + outputs) * size_of::<f32>()
        + 5 * inputs * outputs * size_of::<f32>()
}
