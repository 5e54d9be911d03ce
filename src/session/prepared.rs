//! The second stage: the prepared model, with the type of every value. It can be quantized by the
//! schemes that need no ranges, and calibrated.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::error::{Error, OrderError};
use super::ranges::ModelRanges;
use crate::graph::{Model, TensorType};
use crate::onnx::schema::{ModelProto, TensorProto, ValueInfoProto};
use crate::prepare::{Functions, Prepared, Upcast, prepare};
use crate::quantize::{self, Plan, Quantized, Settings};
use crate::runtime::{self, Engine, EngineError};

/// Prepared model with a type for each value. `declared` keeps the types that the file declares:
/// only these are written out again.
pub(super) struct PreparedModel {
    pub(super) model: Model,
    pub(super) declared: Vec<ValueInfoProto>,
    pub(super) done: Vec<String>,
    /// Result of inlining the model's functions.
    pub(super) functions: Functions,
    /// Half-precision tensors of the file.
    pub(super) upcast: Upcast,
    /// True if the engine cannot run the model and therefore infers no types.
    unknown: bool,
    /// Peak of live memory during preparation.
    peak: u64,
    /// Engine for calibration, kept from a forecast or the begin of a calibration to its end.
    planned: Option<PlannedEngine>,
}

/// Engine that is prepared for a calibration, with the peak of preparing it.
pub(super) struct PlannedEngine {
    pub(super) engine: Arc<Engine>,
    pub(super) watched: Vec<String>,
    /// Peak of live memory during preparation and planning.
    pub(super) peak: u64,
}

impl PreparedModel {
    pub(super) fn new(header: &ModelProto) -> Result<PreparedModel, Error> {
        let model = Model::from_proto(header.clone())?;
        // This comes before the engine sees operators that only quantized models have.
        quantize::refuse_quantized(&model)?;
        let Prepared {
            mut model,
            done,
            functions,
            upcast,
        } = prepare(model)?;
        // Repeated for nodes that were inside functions.
        quantize::refuse_quantized(&model)?;
        // tract infers types of more operators than our own rules. It takes half the time of a
        // plan, so it runs only if types are missing.
        let types = match model.graph.is_typed() {
            true => {
                runtime::validate_unrun(&model)?;
                Some(BTreeMap::new())
            }
            false => typed_by_engine(&model)?,
        };
        let unknown = types.is_none();
        let file = header.graph.iter().flat_map(|graph| &graph.value_info);
        let named: HashSet<_> = file.map(|value| value.name.as_deref()).collect();
        let in_file = |value: &&ValueInfoProto| named.contains(&value.name.as_deref());
        let declared = model
            .graph
            .value_info
            .iter()
            .filter(in_file)
            .cloned()
            .collect();
        declare(&mut model, &types.unwrap_or_default());
        Ok(PreparedModel {
            model,
            declared,
            done,
            functions,
            upcast,
            unknown,
            peak: 0,
            planned: None,
        })
    }

    /// Sets the peak of live memory during preparation.
    pub(super) fn with_peak(self, peak: u64) -> PreparedModel {
        PreparedModel { peak, ..self }
    }

    /// Fails if the engine cannot run the model. The reason is a function that could not be
    /// inlined, or the engine's own.
    fn runs(&self) -> Result<(), Error> {
        if self.unknown {
            if let Some(reason) = self.functions.remaining_call() {
                return Err(Error::Prepare(reason.clone()));
            }
            runtime::infer_types(&self.model)?;
        }
        Ok(())
    }

    /// The engine that calibrates. It is kept until [`PreparedModel::drop_engine`].
    pub(super) fn planned(&mut self) -> Result<&mut PlannedEngine, Error> {
        let planned = match self.planned.take() {
            Some(planned) => planned,
            None => {
                self.runs()?;
                let watched = self.observed_values()?;
                PlannedEngine {
                    engine: Arc::new(Engine::new(self.model.clone(), watched.clone())),
                    watched,
                    peak: self.peak,
                }
            }
        };
        Ok(self.planned.insert(planned))
    }

    /// Frees the engine that calibrates.
    pub(super) fn drop_engine(&mut self) {
        self.planned = None;
    }

    /// Values that a calibration observes: all that any settings may need.
    pub(super) fn observed_values(&self) -> Result<Vec<String>, Error> {
        Ok(Plan::observed_values(&self.model)?)
    }

    /// The model that these ranges belong to: the equalized one, if calibration made one.
    pub(super) fn calibrated<'a>(&'a self, ranges: Option<&'a ModelRanges>) -> &'a Model {
        let equalized = ranges.and_then(ModelRanges::equalized);
        equalized.map_or(&self.model, |equalized| &equalized.model)
    }

    /// The model that these settings quantize.
    pub(super) fn model_for<'a>(
        &'a self,
        settings: &Settings,
        ranges: Option<&'a ModelRanges>,
    ) -> Result<&'a Model, OrderError> {
        if !settings.needs_samples() {
            return Ok(&self.model);
        }
        let equalized = ranges.and_then(ModelRanges::equalized);
        let (wanted, done) = (
            settings.equalizes(),
            equalized.map(|equalized| equalized.strength),
        );
        match wanted == done {
            true => Ok(self.calibrated(ranges)),
            false => Err(OrderError::OtherEqualization { wanted, done }),
        }
    }

    /// The message of a quantized model, with half-precision ports restored and only the types that
    /// the file declared. Returns a note on weights that had to be rounded.
    pub(super) fn written(&self, mut model: Model) -> Result<(ModelProto, Option<String>), Error> {
        let rounded = self.upcast.restore(&mut model);
        let rounded = rounded.map_err(quantize::QuantizeError::from)?;
        model.graph.value_info = quantize::remaining_declarations(&model.graph, &self.declared);
        Ok((model.to_proto(), rounded))
    }

    /// Quantizes the model. `learned` constants replace those of the same names.
    pub(super) fn quantize(
        &self,
        settings: &Settings,
        ranges: Option<&ModelRanges>,
        learned: &[TensorProto],
    ) -> Result<Quantized, Error> {
        let model = self.model_for(settings, ranges)?;
        let activations = ranges.map(ModelRanges::activation_ranges);
        let mut quantized = quantize::apply_learned(model, settings, activations, learned)?;
        let equalized = ranges.and_then(ModelRanges::equalized);
        let equalized = equalized.filter(|_| settings.equalizes().is_some());
        quantized
            .notes
            .extend(equalized.map(|equalized| equalized.note()));
        quantized.notes.extend(self.functions.notes());
        quantized.notes.extend(self.upcast.note());
        Ok(quantized)
    }
}

/// Types inferred by the engine; `None` if it doesn't know all operators. Schemes that need no
/// samples never run the model; our own rules and the declared types suffice for them.
fn typed_by_engine(model: &Model) -> Result<Option<BTreeMap<String, TensorType>>, Error> {
    match runtime::infer_types(model) {
        Ok(types) => Ok(Some(types)),
        Err(EngineError::UnknownOperators { .. } | EngineError::Plan { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Adds inferred types to the graph, in place of declared types of the same values.
fn declare(model: &mut Model, types: &BTreeMap<String, TensorType>) {
    let graph = &mut model.graph;
    let ports: HashSet<String> = graph
        .inputs
        .iter()
        .chain(graph.outputs())
        .filter_map(|v| v.name.clone())
        .collect();
    graph
        .value_info
        .retain(|v| v.name.as_ref().is_some_and(|n| !types.contains_key(n)));
    for (name, inferred) in types {
        if !ports.contains(name) && !graph.initializers.contains(name) {
            graph.value_info.push(ValueInfoProto::new(name, inferred));
        }
    }
}
