//! Integer kernels: u8 activations, i8 weights, NHWC.
//!
//! docs/kernels.md describes the conventions. Activation tensors of i8 become u8 on entry, by
//! flipping the top bit of their values and of their zero point. u8 weights become i8 likewise.
//! Accumulators are i32 and wrap. Every kernel returns the same integers on every ISA, equal to
//! those of the module `reference`. Invalid arguments give an [`Error`], never a panic.

mod blocks;
mod byte_copy;
mod conv;
mod convert;
mod data_movement;
mod depthwise;
mod error;
mod gemm;
mod int16;
mod isa;
mod isa_selection;
mod layout_conversion;
mod normalize;
mod output;
mod pairwise;
mod pool;
#[cfg(any(test, target_feature = "relaxed-simd"))]
mod probe;
mod reals;
pub mod reference;
mod relaxed_dot;
mod resize;
mod scale;
mod shape;
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
mod shuffle;
mod table;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod vector;

pub use blocks::{BlockWeights, BlockwiseMatrix, ZeroPoints, block_gemm, rows_of_tiles};
pub use conv::{ConvAlgorithm, ConvShape, ConvWeights, TransposedWeights, conv, transposed};
pub use convert::{dequantize, dynamic_quantize, dynamic_scale, flip, quantize, scale_between};
pub use data_movement::{
    BlockOrder, Padding, depth_to_space, padded, permute, select, space_to_depth, stepped,
};
pub use depthwise::{DepthwiseWeights, depthwise};
pub use error::Error;
pub use gemm::{WeightLayout, Weights, gemm, gemm_columns};
pub use int16::{Int16Grid, Plane, join, join_bytes, join_sums, plane, snap, snap_in_place};
pub use isa::Isa;
pub use layout_conversion::{
    dequantize_to_channels_first, quantize_to_channels_last, to_channels_first, to_channels_last,
};
pub use normalize::{Affine, layer_norm, softmax, softmax_reals};
pub use output::{Output, Requantize};
pub use pairwise::{Operand, add, extreme, multiply};
pub use pool::{
    Average, average_pool, extreme_over, global_average_pool, max_pool, max_pool_reals,
};
pub use reals::{Arithmetic, Reals, arithmetic, layer_norm_reals, mean};
pub use resize::{
    Coordinates, LinearTap, Nearest, linear_pixels, nearest_pixels, resize_linear, resize_nearest,
};
pub use scale::{Scale, Target};
pub use shape::{Image, Rows, Window};
pub use table::{Table, WideTable, copy_rows};

// Former names, until their users are renamed.
pub use blocks::BlockwiseMatrix as Blocks;
pub use conv::ConvAlgorithm as Way;
pub use gemm::WeightLayout as Layout;
pub use int16::Int16Grid as Grid;
pub use isa::Isa as Form;
pub use resize::LinearTap as Between;
