//! The int8 compiler within tract: its regions and block-wise products are operators of tract's
//! graph, and tract evaluates its tables.

pub(super) mod matmul_nbits;
pub(super) mod quantize_linear;
pub(super) mod region;

use std::collections::HashSet;
use std::sync::Arc;

use octet_graph::Model;
use octet_int8::{FloatEvaluator, Fused, Program, Scope};
use octet_kernels::int8::BlockWeights;
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::NodeProto;

use super::{Engine, EngineError};

/// Data that tract's graph refers to but does not contain.
#[derive(Default)]
pub(super) struct GraphData {
    /// Programs of the integer regions.
    pub(super) programs: Vec<Arc<Program>>,
    /// Weights of the block-wise products.
    pub(super) blocks: Vec<Arc<BlockWeights>>,
}

/// Evaluates the compiler's tables with tract.
struct TableEvaluator;

impl FloatEvaluator for TableEvaluator {
    fn evaluate(&self, model: Model, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, String> {
        Engine::new(model, Vec::new())
            .run(inputs, |_, _| {}, || false)
            .map_err(|error| error.to_string())
    }
}

/// The model for float execution.
pub(super) fn in_float(model: &Model, watched: &[String]) -> (Model, GraphData) {
    let mut model = model.clone();
    let blocks = matmul_nbits::replace(&mut model, watched);
    octet_int8::rewrite_for_floats(&mut model, watched);
    let programs = Vec::new();
    (model, GraphData { programs, blocks })
}

/// Compiles all matches for inputs of these types and shapes.
pub(super) fn fuse(
    model: &Model,
    inputs: &[Tensor],
    watched: &[String],
    scope: Scope,
) -> Result<(Fused, GraphData), EngineError> {
    let titles: HashSet<&str> = model.graph.nodes.iter().map(NodeProto::title).collect();
    let mut rewritten = model.clone();
    let blocks = matmul_nbits::replace(&mut rewritten, watched);
    octet_int8::rewrite_for_integers(&mut rewritten, watched);
    let types = super::infer_types_of(&rewritten, inputs)?;
    let mut fused = octet_int8::compile(rewritten, &types, watched, scope, &TableEvaluator)
        .map_err(|error| EngineError::Plan {
            detail: format!("the graph with integer regions is not valid: {error}"),
        })?;
    // Nodes that the compiler inserted are not listed.
    for node in &mut fused.nodes {
        node.fused.retain(|title| titles.contains(title.as_str()));
    }
    let programs = std::mem::take(&mut fused.programs);
    Ok((fused, GraphData { programs, blocks }))
}
