//! The blocks of a run: which there are, and where the frontiers stop for them.

use std::collections::BTreeMap;

use octet_graph::Graph;
use octet_graph::prepare::{Types, infer_from};

use crate::blocks::{
    BlockProgram, LayerBlock, LearnedKinds, blocks, is_judge, is_supported, whole,
};
use crate::segments::is_repeated;
use crate::tuning::{Stop, Tuning};

/// A block of the run.
#[derive(Clone)]
pub(crate) struct PlannedBlock {
    pub(crate) block: LayerBlock,
    /// The values of the float model, in the order of the block's inputs and outputs.
    pub(crate) float_inputs: Vec<String>,
    pub(crate) float_outputs: Vec<String>,
}

/// The float model's value that a resting value of the quantized one stands for.
fn float_name(float: &Graph, quantized: &Graph, resting: &str) -> Option<String> {
    let maker = quantized
        .producer(resting)
        .map(|node| &quantized.nodes()[node]);
    let quantizer = maker.filter(|node| node.op_type == "QuantizeLinear");
    let name = quantizer.map_or(Some(resting), |node| node.input_at(0));
    // An output of the model has the name of its dequantized value.
    let readers = quantized.consumers(resting).iter();
    let readers = readers.map(|reader| &quantized.nodes()[reader.node]);
    let reals = readers
        .filter(|node| is_repeated(node))
        .filter_map(|node| node.output.first().map(String::as_str));
    let known = |name: &&str| {
        let mut inputs = float.inputs.iter();
        inputs.any(|port| port.name.as_deref() == Some(*name)) || float.producer(name).is_some()
    };
    name.into_iter()
        .chain(reals)
        .find(known)
        .map(str::to_string)
}

/// The place in a float model behind the nodes that make some values.
fn place_behind(float: &Graph, names: &[String]) -> usize {
    let makers = names.iter().filter_map(|name| float.producer(name));
    makers.max().map_or(0, |maker| maker + 1)
}

impl Tuning {
    /// The types of all values of the quantized model, for inputs of these shapes.
    pub(crate) fn types(&self, shapes: &[Vec<usize>]) -> Types {
        let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let mut graph = self.quantized.graph.clone();
        // Pairs of 4 and 16 bits are of another domain before opset 21; their shapes are alike.
        graph.edit_all(|_, node| {
            if node.op_type == "QuantizeLinear" || is_repeated(node) {
                node.domain = None;
            }
        });
        infer_from(&graph, &shapes)
    }

    /// The blocks, for inputs of the shapes of the first sample.
    pub(crate) fn plan_blocks(&self) -> Vec<PlannedBlock> {
        if !(self.options.blocks && self.options.learn) || self.options.only_largest {
            return Vec::new();
        }
        let (quantized, float) = (&self.quantized.graph, &self.float.graph);
        let types = self.types(self.shapes.first().map_or(&[], Vec::as_slice));
        let nodes = 0..quantized.nodes().len();
        let supported = nodes.map(|node| is_supported(&self.quantized, &types, node));
        let supported: Vec<bool> = supported.collect();
        let layers: Vec<usize> = self.layers.iter().map(|layer| layer.node).collect();
        let is_size = |name: &str| {
            types
                .get(name)
                .is_some_and(|value| value.all_integers().is_some())
        };
        let planned = blocks(quantized, &supported, &layers, &is_size).into_iter();
        let planned = planned.filter_map(|block| self.planned(block, float));
        planned.collect()
    }

    /// The whole model as a block.
    pub(crate) fn whole(&self) -> Option<PlannedBlock> {
        let types = self.types(self.shapes.first().map_or(&[], Vec::as_slice));
        let is_size = |name: &str| {
            types
                .get(name)
                .is_some_and(|value| value.all_integers().is_some())
        };
        let block = whole(&self.quantized.graph, &is_size);
        self.planned(block, &self.float.graph)
    }

    fn planned(&self, block: LayerBlock, float: &Graph) -> Option<PlannedBlock> {
        let quantized = &self.quantized.graph;
        let of = |names: &[String]| -> Option<Vec<String>> {
            let floats = names.iter().map(|name| float_name(float, quantized, name));
            floats.collect()
        };
        Some(PlannedBlock {
            float_inputs: of(&block.inputs)?,
            float_outputs: of(&block.outputs)?,
            block,
        })
    }

    /// True if a layer learns in a block.
    pub(crate) fn in_block(&self, place: usize) -> bool {
        let node = self.layers[place].node;
        let mut blocks = self.blocks.iter().flatten();
        blocks.any(|planned| planned.block.nodes.contains(&node))
    }

    /// The places where the frontiers stop, in order.
    pub(crate) fn stops(&self) -> Vec<Stop> {
        let mut stops: BTreeMap<usize, Stop> = BTreeMap::new();
        let float = &self.float.graph;
        for (place, planned) in self.blocks.iter().flatten().enumerate() {
            let begin = stops.entry(planned.block.nodes.start).or_default();
            begin.begins = Some(place);
            let behind = place_behind(float, &planned.float_inputs);
            begin.float_node = begin.float_node.max(behind);
            let end = stops.entry(planned.block.nodes.end).or_default();
            end.ends = Some(place);
            let behind = place_behind(float, &planned.float_outputs);
            end.float_node = end.float_node.max(behind);
        }
        if self.options.distillation > 0 {
            // The outputs of the float model are its targets.
            let end = stops.entry(self.quantized.graph.nodes().len()).or_default();
            end.float_node = float.nodes().len();
        }
        for (place, layer) in self.layers.iter().enumerate() {
            let stop = stops.entry(layer.node).or_default();
            stop.layer = Some(place);
            stop.float_node = stop.float_node.max(layer.float_node);
        }
        let mut stops: Vec<Stop> = stops
            .into_iter()
            .map(|(node, stop)| Stop { node, ..stop })
            .collect();
        // The float model may hold its nodes in another order; a stop then lies at the first of the
        // layers that follow, whose inputs exist there at the latest.
        for place in 1..stops.len() {
            stops[place].float_node = stops[place].float_node.max(stops[place - 1].float_node);
        }
        stops
    }

    /// For each block, whether the frontiers hold its values and the samples suffice.
    pub(crate) fn usable_blocks(&self, stops: &[Stop]) -> Vec<bool> {
        let enough = (0..self.shapes.len()).any(is_judge);
        let blocks = self.blocks.iter().flatten().enumerate();
        let usable = |(place, planned): (usize, &PlannedBlock)| {
            let at = |of: fn(&Stop) -> Option<usize>| {
                stops
                    .iter()
                    .position(|stop| of(stop) == Some(place))
                    .map_or(0, |stop| stop + 1)
            };
            let (begin, end) = (at(|stop| stop.begins), at(|stop| stop.ends));
            let held = |integers: &[String], floats: &[String], count: usize| {
                let (graph, float) = (&self.quantized.graph, &self.float.graph);
                let integers = integers
                    .iter()
                    .all(|name| self.integers.will_hold(graph, count, name));
                integers
                    && floats
                        .iter()
                        .all(|name| self.originals.will_hold(float, count, name))
            };
            enough
                && held(&planned.block.inputs, &planned.float_inputs, begin)
                && held(&planned.block.outputs, &planned.float_outputs, end)
        };
        blocks.map(usable).collect()
    }

    /// Programs of a block for all samples: one for each set of shapes.
    pub(crate) fn programs(
        &self,
        block: &LayerBlock,
        kinds: LearnedKinds,
    ) -> Option<(Vec<BlockProgram>, Vec<usize>)> {
        let mut known: Vec<&Vec<Vec<usize>>> = Vec::new();
        let (mut programs, mut of_sample) = (Vec::new(), Vec::new());
        for shapes in &self.shapes {
            let place = known.iter().position(|other| *other == shapes);
            if place.is_none() {
                let types = self.types(shapes);
                programs.push(BlockProgram::new(
                    (&self.quantized, &types),
                    &self.layers,
                    block,
                    kinds,
                )?);
                known.push(shapes);
            }
            of_sample.push(place.unwrap_or(known.len() - 1));
        }
        Some((programs, of_sample))
    }
}
