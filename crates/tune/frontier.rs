//! The frontier: the values of the current cut for all samples, which advances segment by segment.
//!
//! All samples run once through the model in all, whatever the number of cuts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use octet_graph::{Graph, Model};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::DataType;
use octet_runtime::Engine;
use rayon::prelude::*;

use crate::TuneError;
use crate::segments::{GraphSegment, segments};
use crate::store::{LoadedValue, Store, StoredValue};

/// A longer list of integers holds data, not sizes, axes or bounds.
const MAX_SHAPE_LENGTH: usize = 64;

/// The values of one model between two segments.
pub(crate) struct Frontier {
    segments: Vec<GraphSegment>,
    next: usize,
    /// Floats rest as halves.
    halves: bool,
    /// The values of each sample.
    samples: Vec<SampleFrontier>,
}

/// The values at an earlier cut, where a block begins, and the segment that follows it.
pub(crate) struct MarkedCut {
    next: usize,
    samples: Vec<SampleFrontier>,
}

/// The values of a sample. Those of a marked cut are shared with it.
type SampleFrontier = BTreeMap<String, Arc<StoredValue>>;

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

    /// Cuts the graph elsewhere, before the first segment has run.
    pub(crate) fn cut(&mut self, graph: &Graph, cuts: &[usize]) -> Result<(), TuneError> {
        self.segments = segments(graph, cuts)?;
        Ok(())
    }

    /// The number of segments that have run.
    pub(crate) fn passed(&self) -> usize {
        self.next
    }

    /// True if the frontier after `count` segments holds a value.
    pub(crate) fn will_hold(&self, graph: &Graph, count: usize, name: &str) -> bool {
        let mut held = graph
            .inputs
            .iter()
            .any(|port| port.name.as_deref() == Some(name));
        for segment in self.segments.iter().take(count) {
            let is = |names: &[String]| names.iter().any(|other| other == name);
            held = held && !is(&segment.ended) || is(&segment.outputs);
        }
        held
    }

    /// Keeps the values of this cut.
    pub(crate) fn mark(&self) -> MarkedCut {
        MarkedCut {
            next: self.next,
            samples: self.samples.clone(),
        }
    }

    /// Goes back to an earlier cut.
    pub(crate) fn rewind(&mut self, cut: &MarkedCut, store: &Store) {
        self.next = cut.next;
        free_all(
            std::mem::replace(&mut self.samples, cut.samples.clone()),
            store,
        );
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
            let stored = store.keep(StoredValue::new(tensor, false))?;
            let name = port.name.clone().unwrap_or_default();
            values.insert(name, Arc::new(stored));
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
        values.map(|stored| stored.bytes()).sum()
    }

    /// A value of a sample.
    pub(crate) fn load(
        &self,
        sample: usize,
        name: &str,
        store: &Store,
    ) -> Result<LoadedValue<'_>, TuneError> {
        store.load(stored(&self.samples, sample, name)?)
    }

    /// The shape of a value of a sample.
    pub(crate) fn shape(&self, sample: usize, name: &str) -> Result<&[usize], TuneError> {
        Ok(stored(&self.samples, sample, name)?.shape())
    }

    /// The element type of a value of a sample.
    pub(crate) fn element(&self, sample: usize, name: &str) -> Result<DataType, TuneError> {
        Ok(stored(&self.samples, sample, name)?.element())
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
        // Few samples at a time, since a file's values are in memory meanwhile. Two for each thread, so
        // that threads wait less for the slowest.
        let together = 2 * rayon::current_num_threads().max(1);
        for together in self.samples.chunks_mut(together) {
            let inputs = together.iter().map(|values| {
                let names = segment.inputs.iter();
                names
                    .map(|name| store.load(value_of(values, name)?))
                    .collect()
            });
            let inputs = inputs.collect::<Result<Vec<Vec<LoadedValue>>, TuneError>>()?;
            let run = |inputs: Vec<LoadedValue>| -> Result<Vec<StoredValue>, TuneError> {
                let inputs = inputs.into_iter().map(LoadedValue::tensor);
                let outputs = engines.run(inputs.collect::<Result<_, _>>()?, stop)?;
                let encoded = outputs
                    .iter()
                    .map(|tensor| StoredValue::new(tensor, halves));
                Ok(encoded.collect())
            };
            let outputs = inputs.into_par_iter().map(run);
            let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
            for (values, outputs) in together.iter_mut().zip(outputs) {
                for ended in &segment.ended {
                    if let Some(stored) = values.remove(ended) {
                        free(stored, store);
                    }
                }
                for (name, output) in segment.outputs.iter().zip(outputs) {
                    values.insert(name.clone(), Arc::new(store.keep(output)?));
                }
            }
        }
        self.next += 1;
        Ok(())
    }
}

fn stored<'a>(
    samples: &'a [SampleFrontier],
    sample: usize,
    name: &str,
) -> Result<&'a StoredValue, TuneError> {
    let values = samples.get(sample);
    value_of(
        values.ok_or(TuneError::Broken("a sample of the frontier"))?,
        name,
    )
}

fn value_of<'a>(values: &'a SampleFrontier, name: &str) -> Result<&'a StoredValue, TuneError> {
    let stored = values.get(name).map(AsRef::as_ref);
    stored.ok_or(TuneError::Broken("a value of the frontier"))
}

impl MarkedCut {
    /// A value of a sample.
    pub(crate) fn load(
        &self,
        sample: usize,
        name: &str,
        store: &Store,
    ) -> Result<LoadedValue<'_>, TuneError> {
        store.load(stored(&self.samples, sample, name)?)
    }

    /// Bytes of the values that no other cut holds.
    pub(crate) fn bytes(&self) -> usize {
        let values = self.samples.iter().flat_map(BTreeMap::values);
        let alone = values.filter(|stored| Arc::strong_count(stored) == 1);
        alone.map(|stored| stored.bytes()).sum()
    }

    /// Frees the values that no other cut holds.
    pub(crate) fn release(self, store: &Store) {
        free_all(self.samples, store);
    }
}

fn free_all(samples: Vec<SampleFrontier>, store: &Store) {
    let values = samples.into_iter().flatten();
    values.for_each(|(_, stored)| free(stored, store));
}

/// Frees a value that no other cut holds.
fn free(stored: Arc<StoredValue>, store: &Store) {
    if let Some(stored) = Arc::into_inner(stored) {
        store.free(stored);
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
