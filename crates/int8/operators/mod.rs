//! Operators, one file each: matching, preferred layout, lowering and execution.
//!
//! [`ALL`] lists their matchers.

mod arithmetic;
#[cfg(test)]
mod arithmetic_tests;
mod block_product;
mod channel_tables;
mod concat;
mod conditional;
mod depth_space;
mod dynamic_quantize;
mod elementwise;
mod gather;
mod normalize;
mod pad;
mod pooling;
mod products;
mod quantize_linear;
mod reduce;
mod reshape;
mod resize;
mod selection;
mod slice;
mod softmax;
mod split;
mod tables;
mod transpose;
mod windows;

pub use block_product::{BLOCK_PRODUCT, MATMUL_NBITS};

use crate::pattern::matcher::{MatchPass, OperatorMatcher};

/// The matchers of all operators.
pub(crate) const ALL: &[&OperatorMatcher] = &[
    &block_product::BLOCK,
    &channel_tables::BATCH_NORMALIZATION,
    &concat::CONCAT,
    &conditional::WHERE,
    &depth_space::DEPTH_SPACE,
    &dynamic_quantize::DYNAMIC_QUANTIZE,
    &elementwise::ELEMENTWISE,
    &gather::GATHER,
    &normalize::IMAGES,
    &normalize::LAYERS,
    &pad::PAD,
    &pooling::POOLING,
    &products::convolution::CONVOLUTION,
    &products::integer_product::INTEGER_PRODUCT,
    &products::matrix_product::GEMM,
    &products::matrix_product::MAT_MUL,
    &quantize_linear::DEQUANTIZE,
    &quantize_linear::QUANTIZE,
    &reduce::EXTREME,
    &reduce::MEAN,
    &reshape::RESHAPE,
    &resize::RESIZE,
    &slice::SLICE,
    &softmax::SOFTMAX,
    &split::SPLIT,
    &transpose::TRANSPOSE,
];

/// True for an operator whose inputs and results are integers by definition.
pub(crate) fn is_defined_on_integers(operator: &str) -> bool {
    let mut defined = ALL.iter().filter(|one| one.pass == MatchPass::Defined);
    defined.any(|one| one.names.contains(&operator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_is_listed_once() {
        let mut names: Vec<&str> = ALL.iter().flat_map(|one| one.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
