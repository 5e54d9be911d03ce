//! The int8 compiler's regions and block-wise products as operators of tract's graph.

pub(super) mod matmul_nbits;
pub(super) mod quantize_linear;
pub(super) mod region;

use std::sync::Arc;

use octet_int8::Program;
use octet_kernels::int8::BlockWeights;

/// Data that tract's graph refers to but does not contain.
#[derive(Default)]
pub(super) struct GraphData {
    /// Programs of the integer regions.
    pub(super) programs: Vec<Arc<Program>>,
    /// Weights of the block-wise products.
    pub(super) blocks: Vec<Arc<BlockWeights>>,
}
