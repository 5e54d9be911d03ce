//! A run over the layers of a model.

use std::collections::VecDeque;

use octet_graph::Model;
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::TensorProto;
use schemars::JsonSchema;
use serde::Serialize;

use crate::TuneError;
use crate::block_run::PlannedBlock;
use crate::closed_form::InputBlock;
use crate::frontier::{Frontier, MarkedCut};
use crate::layers::{TunedLayer, layers};
use crate::learned_part::{LayerReport, LearnedPart};
use crate::options::{FrontierPlace, TuneOptions};
use crate::problem::positions_within;
use crate::store::{Store, failed};
use crate::value_file::OpenValueFile;

/// Of this many samples, one judges the whole model.
const JUDGED: usize = 4;
/// A proposal must lower the error by this share.
pub(crate) const GAIN: f64 = 1e-3;
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
    /// The expected memory of the layer that needs most; `None` without layers.
    pub forecast: Option<TuneForecast>,
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
    /// Bytes of its data and of its learning, at most.
    pub layer_bytes: usize,
    /// Number of layers.
    pub layers: usize,
}

/// A run over the layers of a model. Samples are added first.
pub struct Tuning {
    pub(crate) float: Model,
    pub(crate) quantized: Model,
    pub(crate) options: TuneOptions,
    pub(crate) layers: Vec<TunedLayer>,
    /// Blocks in their order; `None` before the first sample, whose shapes they depend on.
    pub(crate) blocks: Option<Vec<PlannedBlock>>,
    pub(crate) originals: Frontier,
    pub(crate) integers: Frontier,
    pub(crate) store: Store,
    /// Samples that judge the whole model.
    pub(crate) judges: Vec<Vec<Tensor>>,
    /// The shapes of the inputs of each sample.
    pub(crate) shapes: Vec<Vec<Vec<usize>>>,
    /// The first parts, which learned in a run that was stopped.
    known: VecDeque<LearnedPart>,
}

/// A place where the frontiers stop.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    /// The node of the quantized model before which they stop, and that of the float model.
    pub(crate) node: usize,
    pub(crate) float_node: usize,
    /// The layer at this node.
    pub(crate) layer: Option<usize>,
    /// The blocks that end and begin here.
    pub(crate) ends: Option<usize>,
    pub(crate) begins: Option<usize>,
}

impl Tuning {
    /// Prepares the run. The quantized model holds QuantizeLinear and DequantizeLinear nodes.
    /// `file` opens the file of values, if the options ask for one.
    pub fn new(
        float: Model,
        quantized: Model,
        options: TuneOptions,
        file: OpenValueFile,
    ) -> Result<Tuning, TuneError> {
        let mut layers = layers(&float, &quantized, &options.operators);
        if options.only_largest {
            let largest = layers
                .iter()
                .max_by_key(|layer| bytes_of(layer, &options))
                .map(|layer| layer.node);
            layers.retain(|layer| Some(layer.node) == largest);
        }
        let halves = options.resting != FrontierPlace::Floats;
        Ok(Tuning {
            originals: Frontier::new(&float.graph, &[], halves)?,
            integers: Frontier::new(&quantized.graph, &[], false)?,
            store: match options.resting {
                FrontierPlace::File => Store::in_file(file().map_err(failed)?),
                _ => Store::Memory,
            },
            float,
            quantized,
            options,
            layers,
            blocks: None,
            judges: Vec::new(),
            shapes: Vec::new(),
            known: VecDeque::new(),
        })
    }

    /// The titles of the layers that will be learned.
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().map(|layer| layer.title.as_str())
    }

    /// The number of reports of [`Tuning::run`]: those of layers, of blocks, and of the model.
    pub fn reports(&self) -> usize {
        let blocks = self.blocks.iter().flatten();
        let layers = (0..self.layers.len()).filter(|&place| self.learns_alone(place));
        blocks.count() + layers.count() + usize::from(self.options.distillation > 0)
    }

    /// True if a layer has proposals of its own.
    fn learns_alone(&self, place: usize) -> bool {
        self.options.closed_form || self.options.learn && !self.in_block(place)
    }

    /// The memory of the layer that needs most. With few positions a layer takes less.
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
        let shapes = inputs.iter().map(|input| input.shape().to_vec());
        self.shapes.push(shapes.collect());
        if self.blocks.is_none() {
            self.blocks = Some(self.plan_blocks());
        }
        if self.shapes.len().is_multiple_of(JUDGED) {
            self.judges.push(inputs);
        }
        Ok(())
    }

    /// Takes over the first parts of a run with the same model, settings and samples.
    pub fn resume(&mut self, parts: Vec<LearnedPart>) {
        self.known = parts.into();
    }

    /// The next part: one that is known, or one that learns now.
    fn next_part(
        &mut self,
        learn: impl FnOnce(&Tuning) -> Result<(Vec<TensorProto>, LayerReport), TuneError>,
    ) -> Result<LearnedPart, TuneError> {
        match self.known.pop_front() {
            Some(part) => Ok(part),
            None => learn(self).map(LearnedPart::from),
        }
    }

    /// Learns layer by layer. `done` receives each part with its place. `stop` is asked in each
    /// step.
    pub fn run(
        mut self,
        mut done: impl FnMut(usize, &LearnedPart),
        stop_asked: &(dyn Fn() -> bool + Sync),
    ) -> Result<Tuned, TuneError> {
        if self.shapes.is_empty() {
            return Err(TuneError::NoSamples);
        }
        let before = self.quantized.clone();
        let stops = self.stops();
        let nodes = |of: fn(&Stop) -> usize| stops.iter().map(of).collect::<Vec<usize>>();
        let (graphs, cuts) = (
            (&self.float.graph, &self.quantized.graph),
            (nodes(|stop| stop.float_node), nodes(|stop| stop.node)),
        );
        self.originals.cut(graphs.0, &cuts.0)?;
        self.integers.cut(graphs.1, &cuts.1)?;
        let usable = self.usable_blocks(&stops);
        let both = |run: &Tuning| [run.originals.mark(), run.integers.mark()];
        let first = (self.options.distillation > 0).then(|| both(&self));
        let mut begun: Option<[MarkedCut; 2]> = None;
        let mut all = Constants::default();
        let mut reports = Vec::new();
        let forecast = self.forecast();
        let mut frontier_bytes = 0;
        for (place, stop) in stops.iter().enumerate() {
            self.originals
                .advance(&self.float, false, &self.store, stop_asked)?;
            self.integers
                .advance(&self.quantized, true, &self.store, stop_asked)?;
            let marks = begun.iter().chain(&first).flatten();
            let marked = marks.map(MarkedCut::bytes).sum::<usize>();
            let bytes = self.originals.bytes() + self.integers.bytes() + marked;
            frontier_bytes = frontier_bytes.max(bytes);
            let mut told = Vec::new();
            let (ended, left): (Option<usize>, Option<usize>) = match stop.ends {
                Some(block) if usable[block] => (Some(block), None),
                other => (None, other),
            };
            if let Some(block) = left {
                told.push(self.next_part(|run| Ok((Vec::new(), run.left_block(block))))?);
            }
            let ended = ended.and_then(|block| begun.take().map(|marks| (block, marks)));
            if let Some((block, marks)) = ended {
                let part = self.next_part(|run| run.block(block, &marks, stop_asked))?;
                if !part.constants.is_empty() {
                    all.take(&mut self.quantized, &part.constants);
                    self.read_input_scales()?;
                    self.integers.rewind(&marks[1], &self.store);
                    while self.integers.passed() <= place {
                        self.integers
                            .advance(&self.quantized, true, &self.store, stop_asked)?;
                    }
                }
                marks.into_iter().for_each(|cut| cut.release(&self.store));
                told.push(part);
            }
            if stop.begins.is_some_and(|block| usable[block]) {
                begun = Some(both(&self));
            }
            if let Some(layer) = stop.layer.filter(|&layer| self.learns_alone(layer)) {
                let part = self.next_part(|run| run.layer(layer, stop_asked))?;
                all.take(&mut self.quantized, &part.constants);
                told.push(part);
            }
            if let Some(first) = first.as_ref().filter(|_| place + 1 == stops.len()) {
                let part = self.next_part(|run| run.distil(first, stop_asked))?;
                all.take(&mut self.quantized, &part.constants);
                told.push(part);
            }
            for part in told {
                done(reports.len(), &part);
                reports.push(part.report);
            }
        }
        let judgement = self.judge(&before, stop_asked)?;
        if judgement.is_some_and(|judgement| !judgement.taken) {
            all.0.clear();
        }
        Ok(Tuned {
            constants: all.0,
            summary: TuningSummary {
                layers: reports,
                judgement,
                samples: self.shapes.len(),
                frontier_bytes,
                forecast,
            },
        })
    }
}

/// Constants that were taken, the last of each name.
#[derive(Default)]
struct Constants(Vec<TensorProto>);

impl Constants {
    fn take(&mut self, model: &mut Model, constants: &[TensorProto]) {
        for constant in constants {
            self.0.retain(|known| known.name != constant.name);
            model.graph.initializers.insert(constant.clone());
            self.0.push(constant.clone());
        }
    }
}

/// Bytes of a layer's data, of its closed form, and of the parameters that it learns.
fn bytes_of(layer: &TunedLayer, options: &TuneOptions) -> usize {
    let (groups, inputs) = (layer.rows.view().groups(), layer.rows.inputs());
    let outputs = layer.rows.outputs();
    let positions = positions_within(
        groups,
        inputs,
        outputs / groups.max(1),
        options.layer_values,
    );
    let data = positions * (groups * inputs * layer.input_bytes + outputs * size_of::<f32>());
    let blocks = match options.closed_form {
        true => groups * InputBlock::bytes_of(inputs),
        false => 0,
    };
    // A parameter has two moments, a gradient and a real.
    data + blocks + 5 * inputs * outputs * size_of::<f32>()
}
