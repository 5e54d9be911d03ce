//! Shares the im2col tables of equal operators.
//!
//! tract builds a table of window offsets for every convolution. A network that repeats a block has
//! hundreds of equal ones.

use tract_onnx::prelude::TypedModel;

/// tract's name of the operators with such tables.
const TABLES: &str = "LazyIm2col";

/// Replaces each equal operator by a copy of the first: copies share their tables.
pub(super) fn dedup(model: &mut TypedModel) {
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
