//! The frontier: the values of the current cut for all samples, which advances segment by segment.
//!
//! All samples run once through the model in all, whatever the number of cuts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use octet_graph::{Graph, Model};
use octet_onnx::in_memory::{Tensor, Values};
use octet_runtime::Engine;
use rayon::prelude::*;

use crate::TuneError;
use crate::segments::{GraphSegment, segments};
use crate::store::{Store, StoredValue};

/// A longer list of integers holds data, not sizes, axes or bounds.
const MAX_SHAPE_LENGTH: usize = 64;

/// The values of one model between two segments.
pub(crate) struct Frontier {
    segments: Vec<GraphSegment>,
    next: usize,
    /// Floats rest as halves.
    halves: bool,
    /// The values of each sample.
    samples: Vec<BTreeMap<String, StoredValue>>,
}

impl Frontier {
    /// The frontier before the first segment of a graph that is cut before some nodes.
    pub(crate) fn new(graph: &Graph, cuts: &[usize], halves: bool) -> Result<Frontier, TuneError> {
        Ok(Frontier {
            segments: segments(graph, cuts)?,
            next: 0,
            halves,
            samples: Vec::new(),
        })
    }

    /// Adds a sample, whose tensors are in the order of the graph's inputs.
    pub(crate) fn add(
        &mut self,
        graph: &Graph,
        inputs: &[Tensor],
        store: &Store,
    ) -> Result<(), TuneError> {
        let mut values = BTreeMap::new();
        for (port, tensor) in graph.inputs.iter().zip(inputs) {
            // The inputs are the samples themselves, so they are exact.
            let stored = store.put(tensor, false)?;
            values.insert(port.name.clone().unwrap_or_default(), stored);
        }
        self.samples.push(values);
        Ok(())
    }

    /// Number of samples.
    pub(crate) fn samples(&self) -> usize {
        self.samples.len()
    }

    /// Bytes of all values at rest.
    pub(crate) fn bytes(&self) -> usize {
        let values = self.samples.iter().flat_map(BTreeMap::values);
        values.map(StoredValue::bytes).sum()
    }

    /// A value of a sample.
    pub(crate) fn value(
        &self,
        sample: usize,
        name: &str,
        store: &Store,
    ) -> Result<Tensor, TuneError> {
        let stored = self.samples.get(sample).and_then(|values| values.get(name));
        store.get(stored.ok_or(TuneError::Broken("a value of the frontier"))?)
    }

    /// Runs all samples through the next segment of a model.
    pub(crate) fn advance(
        &mut self,
        model: &Model,
        integers: bool,
        store: &Store,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), TuneError> {
        let Some(segment) = self.segments.get(self.next) else {
            return Ok(());
        };
        let engines = SegmentEngines {
            segment,
            model,
            integers,
            made: Mutex::default(),
        };
        let halves = self.halves;
        self.samples.par_iter_mut().try_for_each(|values| {
            let inputs = segment.inputs.iter().map(|name| {
                let stored = values
                    .get(name)
                    .ok_or(TuneError::Broken("an input of a segment"));
                store.get(stored?)
            });
            let inputs = inputs.collect::<Result<Vec<Tensor>, TuneError>>()?;
            let outputs = engines.run(inputs, stop)?;
            for ended in &segment.ended {
                if let Some(stored) = values.remove(ended) {
                    store.free(stored);
                }
            }
            for (name, tensor) in segment.outputs.iter().zip(outputs) {
                values.insert(name.clone(), store.put(&tensor, halves)?);
            }
            Ok::<(), TuneError>(())
        })?;
        self.next += 1;
        Ok(())
    }
}

/// An engine, and the values that are constants in it.
type EngineOfSizes = (Vec<Tensor>, Arc<Engine>);

/// The engines of a segment, one for each set of sizes that it computes with.
struct SegmentEngines<'a> {
    segment: &'a GraphSegment,
    model: &'a Model,
    integers: bool,
    made: Mutex<Vec<EngineOfSizes>>,
}

impl SegmentEngines<'_> {
    fn run(
        &self,
        inputs: Vec<Tensor>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Tensor>, TuneError> {
        if self.segment.outputs.is_empty() {
            return Ok(Vec::new());
        }
        let named = self.segment.inputs.iter().zip(inputs);
        let (known, fed): (Vec<_>, Vec<_>) = named.partition(|(_, tensor)| may_be_shape(tensor));
        let engine = self.engine(&known, &fed);
        let fed: Vec<Tensor> = fed.into_iter().map(|(_, tensor)| tensor).collect();
        Ok(engine.run(fed, |_, _| {}, stop)?)
    }

    fn engine(&self, known: &[(&String, Tensor)], fed: &[(&String, Tensor)]) -> Arc<Engine> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |constants: &[Tensor]| constants.iter().eq(known.iter().map(|(_, tensor)| tensor));
        if let Some((_, engine)) = made.iter().find(|(constants, _)| same(constants)) {
            return engine.clone();
        }
        fn pairs<'p>(values: &'p [(&String, Tensor)]) -> Vec<(&'p str, &'p Tensor)> {
            let pairs = values.iter().map(|(name, tensor)| (name.as_str(), tensor));
            pairs.collect()
        }
        let model = self.segment.model(self.model, &pairs(fed), &pairs(known));
        let engine = Engine::new(model, Vec::new());
        let engine = Arc::new(if self.integers {
            engine.on_integers()
        } else {
            engine
        });
        made.push((
            known.iter().map(|(_, tensor)| tensor.clone()).collect(),
            engine.clone(),
        ));
        engine
    }
}

/// True if a value may hold sizes, axes or bounds.
fn may_be_shape(tensor: &Tensor) -> bool {
    let integers = matches!(tensor.values(), Values::I64(_) | Values::I32(_));
    integers && tensor.shape().len() < 2 && tensor.values().len() <= MAX_SHAPE_LENGTH
}
