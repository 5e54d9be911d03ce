//! The steps of a block in a run, and the constants that follow from what it learned.

use std::collections::HashMap;

use octet_graph::Node;
use octet_onnx::schema::TensorProto;

use crate::TuneError;
use crate::block_run::PlannedBlock;
use crate::blocks::{
    BlockLearner, BlockProgram, BlockSolution, LearnedKinds, LoadSample, LoadedSample, is_judge,
};
use crate::frontier::MarkedCut;
use crate::learned_part::{GIVEN, LayerReport, NOT_POSSIBLE, TunedPart};
use crate::operators::moves;
use crate::options::TuneAlgorithm;
use crate::segments::is_repeated;
use crate::tuning::{GAIN, Tuning};

/// The settings of a block's steps.
struct BlockSteps {
    /// Without an algorithm, scales and biases learn.
    algorithm: Option<TuneAlgorithm>,
    iterations: usize,
    /// The share of the values that are rounded in a step.
    rounded: f32,
    seed: u64,
}

impl Tuning {
    /// The constants of a block whose beginning is marked, in the float and the quantized model.
    pub(crate) fn block(
        &self,
        place: usize,
        marks: &[MarkedCut; 2],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Vec<TensorProto>, LayerReport), TuneError> {
        let planned = &self.blocks.as_deref().unwrap_or_default()[place];
        let (options, report) = (&self.options, self.untouched(planned));
        let how = BlockSteps {
            algorithm: Some(options.algorithm),
            iterations: options.iterations,
            rounded: options.drop_ratio,
            seed: options.seed.wrapping_add((1 << 32) + place as u64),
        };
        self.learn_block(planned, marks, how, report, stop)
    }

    /// Learns scales and biases of the whole model from the float model's outputs.
    pub(crate) fn distil(
        &self,
        marks: &[MarkedCut; 2],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Vec<TensorProto>, LayerReport), TuneError> {
        let how = BlockSteps {
            algorithm: None,
            iterations: self.options.distillation,
            rounded: 1.0,
            seed: self.options.seed.wrapping_add(1 << 33),
        };
        let report = LayerReport {
            part: TunedPart::Model,
            layer: "outputs".into(),
            operator: "distillation".into(),
            taken: NOT_POSSIBLE.into(),
            ..LayerReport::unchanged()
        };
        let enough = (0..self.shapes.len()).any(is_judge);
        match self.whole().filter(|_| enough) {
            Some(planned) => self.learn_block(&planned, marks, how, report, stop),
            None => Ok((Vec::new(), report)),
        }
    }

    /// The report of a block that can't learn.
    pub(crate) fn left_block(&self, place: usize) -> LayerReport {
        self.untouched(&self.blocks.as_deref().unwrap_or_default()[place])
    }

    fn learn_block(
        &self,
        planned: &PlannedBlock,
        marks: &[MarkedCut; 2],
        how: BlockSteps,
        report: LayerReport,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Vec<TensorProto>, LayerReport), TuneError> {
        let kinds = LearnedKinds {
            weights: true,
            steps: self.options.activation_scales,
        };
        let Some((programs, of_sample)) = self.programs(&planned.block, kinds) else {
            return Ok((Vec::new(), report));
        };
        let load =
            |sample: usize, program: &BlockProgram| self.loaded(planned, marks, sample, program);
        let first = programs
            .first()
            .ok_or(TuneError::Broken("a block's program"))?;
        let layers = first.layers.iter().map(|leaves| {
            let layer = &self.layers[leaves.place];
            Ok::<_, TuneError>((layer, layer.floats(&self.float.graph)?.0))
        });
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        let free = |name: &str| self.options.activation_scales && self.may_learn(name);
        let learner = BlockLearner {
            free_scales: first.scales.iter().map(|scale| free(&scale.name)).collect(),
            programs,
            of_sample,
            layers,
            options: &self.options,
            algorithm: how.algorithm,
            iterations: how.iterations,
            rounded: how.rounded,
            seed: how.seed,
            stop,
        };
        let (report, solution) = self.judged(&learner, &load, report)?;
        let constants = solution.map(|solution| self.constants(&learner, &solution));
        Ok((constants.transpose()?.unwrap_or_default(), report))
    }

    /// The report of a block that changes nothing.
    fn untouched(&self, planned: &PlannedBlock) -> LayerReport {
        let nodes = &planned.block.nodes;
        let own = self
            .layers
            .iter()
            .filter(|layer| nodes.contains(&layer.node));
        let titles: Vec<&str> = own.map(|layer| layer.title.as_str()).collect();
        let layer = match titles.as_slice() {
            [] => String::new(),
            [one] => one.to_string(),
            [first, .., last] => format!("{first} … {last}"),
        };
        LayerReport {
            part: TunedPart::Block,
            layer,
            taken: NOT_POSSIBLE.into(),
            operator: format!("block of {}", titles.len()),
            ..LayerReport::unchanged()
        }
    }

    /// The values of a sample at the ends of a block.
    fn loaded<'a>(
        &'a self,
        planned: &PlannedBlock,
        [originals, integers]: &'a [MarkedCut; 2],
        sample: usize,
        program: &BlockProgram,
    ) -> Result<LoadedSample<'a>, TuneError> {
        let store = &self.store;
        let quantized = program.inputs.iter();
        let quantized = quantized.map(|input| integers.load(sample, &input.name, store));
        let (float, targets) = (planned.float_inputs.iter(), planned.float_outputs.iter());
        let float = float.map(|name| originals.load(sample, name, store));
        let targets = targets.map(|name| self.originals.load(sample, name, store));
        Ok(LoadedSample {
            quantized: quantized.collect::<Result<_, _>>()?,
            float: float.collect::<Result<_, _>>()?,
            targets: targets.collect::<Result<_, _>>()?,
        })
    }

    /// The proposal of a learner, if samples that did not teach gain by it.
    fn judged(
        &self,
        learner: &BlockLearner,
        load: LoadSample,
        mut report: LayerReport,
    ) -> Result<(LayerReport, Option<BlockSolution>), TuneError> {
        let graph = &self.quantized.graph;
        let layers = learner
            .layers
            .iter()
            .map(|(layer, _)| layer.solution(graph));
        let scale = |name: &str| -> Result<f32, TuneError> {
            let tensor = graph.initializers.get(name);
            let numbers = tensor
                .ok_or(TuneError::Broken("a scale of a block"))?
                .to_f32()?;
            Ok(numbers[0])
        };
        let scales = learner.programs[0]
            .scales
            .iter()
            .map(|one| scale(&one.name));
        let given = BlockSolution {
            layers: layers.collect::<Result<_, _>>()?,
            scales: scales.collect::<Result<_, _>>()?,
        };
        report.taken = GIVEN.into();
        let before = learner.errors(&given, true, load)?;
        let (solution, curve) = learner.learn(&given, load)?;
        let after = learner.errors(&solution, true, load)?;
        // Outputs count alike, whatever the size of their values.
        let pairs = before.iter().zip(&after);
        let ratio = pairs.map(|(before, after)| after / before.max(f64::MIN_POSITIVE));
        let ratio = ratio.sum::<f64>() / before.len().max(1) as f64;
        let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        report.before = mean(&before);
        report.after = report.before;
        report.curve = curve;
        let gains = ratio < 1.0 - GAIN;
        if !gains {
            return Ok((report, None));
        }
        report.after = mean(&after);
        report.taken = "learned".into();
        Ok((report, Some(solution)))
    }

    /// The constants of the quantized model with a solution. A bias has the scale of its layer's
    /// input, so it follows a scale that changed.
    fn constants(
        &self,
        learner: &BlockLearner,
        solution: &BlockSolution,
    ) -> Result<Vec<TensorProto>, TuneError> {
        let graph = &self.quantized.graph;
        let mut constants = Vec::new();
        let mut changed: HashMap<&str, f32> = HashMap::new();
        let scales = learner.programs[0].scales.iter().zip(&solution.scales);
        for ((scale, &learned), _) in scales.zip(&learner.free_scales).filter(|(_, free)| **free) {
            let tensor = graph.initializers.get(&scale.name);
            let shape = tensor
                .ok_or(TuneError::Broken("a scale of a block"))?
                .shape()?;
            constants.push(TensorProto::from_f32(&scale.name, &shape, &[learned]));
            changed.insert(&scale.name, learned);
        }
        for layer in &self.layers {
            let own = learner
                .layers
                .iter()
                .position(|(other, _)| other.node == layer.node);
            let new = changed.get(layer.input_scale_name.as_str()).copied();
            let input_scale = new.unwrap_or(layer.input_scale);
            match own {
                Some(own) => constants.extend(layer.constants(&solution.layers[own], input_scale)),
                None if new.is_some() => {
                    constants.extend(layer.constants(&layer.solution(graph)?, input_scale));
                }
                None => {}
            }
        }
        Ok(constants)
    }

    /// Reads the scales of the layers' inputs from the quantized model again.
    pub(crate) fn read_input_scales(&mut self) -> Result<(), TuneError> {
        for layer in &mut self.layers {
            let tensor = self
                .quantized
                .graph
                .initializers
                .get(&layer.input_scale_name);
            if let Some(&scale) = tensor
                .map(TensorProto::to_f32)
                .transpose()?
                .iter()
                .flatten()
                .next()
            {
                layer.input_scale = scale;
            }
        }
        Ok(())
    }

    /// True if a scale belongs to one value alone, and all biases that follow it are those of layers.
    fn may_learn(&self, name: &str) -> bool {
        let graph = &self.quantized.graph;
        let nodes = |value: &str| graph.consumers(value).iter().map(|reader| reader.node);
        let pairs = |node: &usize| {
            let node = &graph.nodes()[*node];
            node.op_type == "QuantizeLinear" || is_repeated(node)
        };
        let is_quantizer = |node: &usize| graph.nodes()[*node].op_type == "QuantizeLinear";
        let mut quantizers = nodes(name).filter(is_quantizer);
        let (Some(quantizer), None) = (quantizers.next(), quantizers.next()) else {
            return false;
        };
        let (input, output) = (
            &graph.nodes()[quantizer].input,
            &graph.nodes()[quantizer].output,
        );
        let (Some(input), Some(integers)) = (input.first(), output.first()) else {
            return false;
        };
        // A value that is only moved has the scale of its source.
        let keeps = |node: &Node| moves(node) || node.is("MaxPool");
        if graph
            .producer(input)
            .is_some_and(|node| keeps(&graph.nodes()[node]))
        {
            return false;
        }
        let of_value = |node: usize| node == quantizer || nodes(integers).any(|own| own == node);
        let reads_well = |node: usize| {
            let layer = self.layers.iter().find(|layer| layer.node == node);
            let reader = &graph.nodes()[node];
            match layer {
                Some(layer) => layer.bias.is_none() || layer.per_output,
                None => {
                    !keeps(reader)
                        && !reader.is("Conv")
                        && !reader.is("Gemm")
                        && !reader.is("ConvTranspose")
                }
            }
        };
        let reals = nodes(integers).filter_map(|node| graph.nodes()[node].output.first());
        nodes(name).all(|node| pairs(&node) && of_value(node))
            && nodes(integers).all(|node| is_repeated(&graph.nodes()[node]))
            && !graph.is_output(integers)
            && reals
                .into_iter()
                .all(|value| !graph.is_output(value) && nodes(value).all(reads_well))
    }
}
