//! Lowering: what all operators use to write their instructions, and to convert their operands and
//! results.

pub(crate) mod compiler;
pub(crate) mod conversions;
pub(crate) mod elementwise_sides;
pub(crate) mod lowered_step;
pub(crate) mod moves;
pub(crate) mod packed_matrices;
mod step_output;
pub(crate) mod weight_budget;
