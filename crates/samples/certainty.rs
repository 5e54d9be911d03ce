//! Certainty of what is proposed for a model.

use serde::Serialize;

/// Certainty of a part of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The file states it, or nothing else would run.
    Sure,
    /// Models like this one usually have it.
    Likely,
    /// It is common; there is no other hint.
    Guess,
}
