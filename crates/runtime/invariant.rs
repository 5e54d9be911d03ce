//! Invariants of the engine. A broken one is a defect of ours, not of the model.

/// An invariant of the engine that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineInvariant {
    /// A submodel returns each of its outputs.
    #[error("a part of the model made fewer values than it has outputs")]
    SubmodelOutputs,
    /// The parts of a model compute all its outputs.
    #[error("an output of the model has no value")]
    ModelOutputs,
    /// A value lives until its last reader.
    #[error("the value `{0}` is missing")]
    LiveValue(String),
    /// Each value that a node reads is an input, a constant or the output of a node.
    #[error("the value `{0}` is used, but no node computes it")]
    Producer(String),
}
