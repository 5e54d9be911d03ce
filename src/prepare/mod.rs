//! Float to float: a model of any age and writing becomes one that the later stages can count on.
//! The passes land next; until then a model goes through as it is.

use crate::graph::Model;

/// Why a model could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {}

/// A prepared model and what was done to it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The model.
    pub model: Model,
    /// A sentence for each pass that changed something.
    pub done: Vec<String>,
}

/// Runs every pass.
pub fn prepare(model: Model) -> Result<Prepared, PrepareError> {
    let done = Vec::new();
    Ok(Prepared { model, done })
}
