//! Preparation of a search: the tensors of the model, their costs and their noises.

use std::collections::BTreeMap;

use super::choose::{settings_of, without_rules};
use super::costs::{Costs, NodeTimes, TimeSource, modelled, with_conversions};
use super::measure::{MeasuredOutput, local_errors, with_outputs};
use super::run::BudgetSearch;
use super::segments::SegmentedModel;
use super::sensitivities::Sensitivity;
use super::tensors::{RoundedModel, SearchTensor, float_bytes};
use super::{Bits, SearchError, SearchedModel};
use crate::graph::{Dim, Model};
use crate::quantize::{ScaleGroups, Settings};
use crate::runtime::{self, Engine};
use crate::tensor::Tensor;

/// The number of parts into which the float model is cut.
const PARTS: usize = 16;
/// The number of samples that show the rounding errors of activations.
pub(super) const LOCAL_SAMPLES: usize = 2;

/// The tensors of a model, their costs and their noises.
pub(super) struct PreparedSearch {
    pub(super) groups: ScaleGroups,
    pub(super) tensors: Vec<SearchTensor>,
    pub(super) costs: Costs,
    pub(super) times: TimeSource,
    pub(super) segmented: SegmentedModel,
    /// The judged outputs, where noise is measured.
    pub(super) outputs: Vec<MeasuredOutput>,
    /// The float model with the measured values as outputs.
    pub(super) measured: Model,
    pub(super) found: Vec<Sensitivity>,
    /// The noise of each tensor with 8 bits on the first sample, as a share of the signal of all.
    pub(super) first: Vec<f64>,
}

impl BudgetSearch {
    /// Quantizes the model with 4, 8 and 16 bits and lists the tensors and their costs.
    pub(super) fn tensors(&self, model: &dyn SearchedModel) -> Result<PreparedSearch, SearchError> {
        let plain = without_rules(&self.base, &[]);
        let mut groups = model.groups(&Settings {
            guard: self.base.guard,
            ..plain
        })?;
        groups.groups.retain(|group| !group.is_fixed);
        if groups.groups.is_empty() {
            return Err(SearchError::NothingToChoose);
        }
        let float = model.model();
        let chosen =
            |choice: &[(String, Bits)]| model.quantize(&settings_of(&self.base, &groups, choice));
        let uniform = |bits: Bits| {
            let wanted = groups.groups.iter().filter(|group| match bits {
                // Few runtimes take activations of four bits, so they are candidates on request.
                Bits::Four => match group.is_constant {
                    true => self.options.weights.contains(&Bits::Four),
                    false => self.options.activations.contains(&Bits::Four),
                },
                _ => true,
            });
            let choice: Vec<(String, Bits)> =
                wanted.map(|group| (group.name.clone(), bits)).collect();
            chosen(&choice)
        };
        let eight = uniform(Bits::Eight)?;
        let sixteen = uniform(Bits::Sixteen)?;
        let four = uniform(Bits::Four)?;
        let rounded = [
            (Bits::Four, &four),
            (Bits::Eight, &eight),
            (Bits::Sixteen, &sixteen),
        ]
        .map(|(bits, quantized)| (bits, RoundedModel::new(quantized)));
        let mut tensors = Vec::new();
        for group in &groups.groups {
            let four_bits = group.element.with_bits(4);
            let forms = rounded.iter().filter_map(|(bits, rounded)| {
                let is_four = *bits == Bits::Four;
                let mut elements = four.tensors.iter();
                let has_four = elements.any(|tensor| {
                    tensor.name == group.name
                        && four_bits.is_some_and(|four| four.data_type() == tensor.element)
                });
                (!is_four || has_four).then_some(())?;
                Some((*bits, rounded.of(float, group)?))
            });
            let forms: BTreeMap<_, _> = forms.collect();
            if !forms.contains_key(&Bits::Eight) {
                continue;
            }
            let mut tensor = SearchTensor {
                bytes: rounded
                    .iter()
                    .map(|(bits, rounded)| (*bits, rounded.bytes(group)))
                    .chain([(Bits::Float, float_bytes(float, group))])
                    .collect(),
                bias_savings: rounded[1].1.bias_savings(float, group),
                group: group.clone(),
                rounded: forms,
                local: BTreeMap::new(),
            };
            for bits in Bits::ALL {
                if let Some(error) = tensor.constant_error(float, bits) {
                    tensor.local.insert(bits, error);
                }
            }
            tensors.push(tensor);
        }
        let bytes = model.file_bytes(&eight)? as f64;
        // Weights keep 8 bits here: those of 16 are multiplied in float.
        let wide = || {
            let activations = groups.groups.iter().filter(|group| !group.is_constant);
            let choice = activations.map(|group| (group.name.clone(), Bits::Sixteen));
            chosen(&choice.collect::<Vec<_>>())
        };
        let modelled = self.modelled(float)?;
        let (nodes, times) = match model.times(&eight, &wide)? {
            Some(measured) => (with_conversions(measured, &modelled), TimeSource::Profile),
            None => (modelled, TimeSource::Model),
        };
        let costs = Costs::new(float, &tensors, &groups, bytes, nodes);
        let found = match &self.options.sensitivities {
            Some(file) => {
                let names: Vec<String> = tensors.iter().map(|t| t.group.name.clone()).collect();
                file.in_order(&names)?
            }
            None => Vec::new(),
        };
        let judged = self.judged(float)?;
        let outputs = MeasuredOutput::of(float, |place| judged[place]);
        let values = MeasuredOutput::names(&outputs);
        let measured = with_outputs(float, &values);
        // The parts are cut from the whole model, so that the work of its nodes is known by index.
        let segmented = SegmentedModel::new(float, &values, PARTS, |node| costs.work(node));
        Ok(PreparedSearch {
            groups,
            tensors,
            costs,
            times,
            segmented,
            outputs,
            measured,
            found,
            first: Vec::new(),
        })
    }

    /// For each output of the model, if it can be judged.
    fn judged(&self, float: &Model) -> Result<Vec<bool>, SearchError> {
        let engine = Engine::new(float.clone(), Vec::new());
        let outputs = engine.run(&self.choosing[0].inputs[..], |_, _| {}, || false)?;
        Ok(self.judge.judged(&outputs))
    }

    fn modelled(&self, float: &Model) -> Result<Vec<NodeTimes>, SearchError> {
        let types = runtime::infer_types_of(float, &self.choosing[0].inputs)?;
        let shape = |name: &str| -> Option<Vec<u64>> {
            let known = types
                .get(name)
                .cloned()
                .or_else(|| float.graph.tensor_type(name))?;
            let size = |dim: &Dim| match dim {
                Dim::Known(size) => Some(*size as u64),
                _ => None,
            };
            known.shape?.iter().map(size).collect()
        };
        Ok(modelled(float, shape))
    }

    pub(super) fn local_errors(
        &mut self,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SearchError> {
        let samples: Vec<&[Tensor]> = self
            .choosing
            .iter()
            .take(LOCAL_SAMPLES)
            .map(|sample| sample.inputs.as_slice())
            .collect();
        let known = self.known.as_mut();
        let known = known.ok_or_else(|| SearchError::Other("the search has not begun".into()))?;
        let errors = local_errors(&known.measured, &known.tensors, &samples, stop)?;
        for (tensor, errors) in known.tensors.iter_mut().zip(errors) {
            tensor.local.extend(errors);
        }
        Ok(())
    }
}
