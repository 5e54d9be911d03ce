//! Operators that are the same hold what they hold once.
//!
//! For every convolution tract makes tables of where each window lies. A network that repeats a block has the same ones hundreds
//! of times.

use tract_onnx::prelude::TypedModel;

/// What tract calls the operators that have such tables.
const TABLES: &str = "LazyIm2col";

/// Puts a copy of the first in the place of each such operator that is the same: copies share their tables.
pub(super) fn share(model: &mut TypedModel) {
    let mut different: Vec<usize> = Vec::new();
    for id in 0..model.nodes.len() {
        if model.nodes[id].op.name() != TABLES {
            continue;
        }
        let nodes = &model.nodes;
        match different.iter().find(|&&one| nodes[one].op == nodes[id].op) {
            Some(&one) => model.nodes[id].op = nodes[one].op.clone(),
            None => different.push(id),
        }
    }
}
