//! Products with block-wise quantized matrices, which a kernel outside of regions computes on
//! floats.

use crate::float_reason::FloatReason;
use crate::pattern::matcher::{MatchPass, NodeMatcher, OperatorMatcher};

/// Operator name of a block-wise product that another kernel runs; exported models never contain
/// it.
pub const BLOCK_PRODUCT: &str = "OctetBlocks";

/// The ONNX Runtime operator in place of which [`BLOCK_PRODUCT`] stands.
pub const MATMUL_NBITS: &str = "MatMulNBits";

pub(super) const BLOCK: OperatorMatcher = OperatorMatcher {
    names: &[BLOCK_PRODUCT],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(|_, _| Err(FloatReason::BlockWiseProduct)),
};
