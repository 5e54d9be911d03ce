//! Blocks of layers that learn together, by reverse mode.
//!
//! The integers of the quantized model's frontier are a block's inputs, the float model's values its
//! targets. In a step, some values stay unrounded, as QDrop proposes: so the block learns neither
//! for rounded nor for float values alone.

mod learner;
mod program;
mod ranges;

pub(crate) use learner::{BlockLearner, BlockSolution, LoadSample, LoadedSample, is_judge};
pub(crate) use program::{BlockProgram, LearnedKinds, is_supported};
pub(crate) use ranges::{LayerBlock, blocks, whole};
