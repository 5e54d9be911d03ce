//! Invariants of a plan. A broken one is a defect of ours, not of the model or its settings.

/// An invariant of a plan that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanInvariant {
    /// Each value with a scale of its own has a representation.
    #[error("the plan has no representation of the value `{0}`")]
    Representation(String),
    /// Each activation with a scale of its own has a source of its range.
    #[error("the plan has no source for the range of the value `{0}`")]
    RangeSource(String),
}
