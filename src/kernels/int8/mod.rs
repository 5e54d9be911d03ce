//! Integer kernels: activations u8, weights i8, channels last.
//!
//! Conventions (docs/kernels.md has them at length): an i8 tensor is brought to u8 where it enters, by flipping the
//! top bit of its values and of its zero point; u8 weights are brought to i8 in the same way. Sums are i32
//! and wrap. Every kernel gives the same integers in every form, those of its plain form in [`reference`].
//! What does not fit together is an [`Error`], never a panic.

mod blocks;
mod conv;
mod convert;
mod depthwise;
mod error;
mod form;
mod gemm;
mod layout;
mod moves;
mod normalize;
mod output;
mod pairwise;
mod pool;
#[cfg(any(test, target_feature = "relaxed-simd"))]
mod probe;
mod reals;
pub mod reference;
mod resize;
mod shape;
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
mod shuffle;
mod table;
mod turn;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod vector;
mod wide;

pub use blocks::{BlockWeights, Blocks, ZeroPoints, block_gemm, rows_of_tiles};
pub use conv::{ConvShape, ConvWeights, TransposedWeights, Way, conv, transposed};
pub use convert::{
    Scale, Target, dequantize, dynamic_quantize, dynamic_scale, flip, quantize, scale_between,
};
pub use depthwise::{DepthwiseWeights, depthwise};
pub use error::Error;
pub use form::Form;
pub use gemm::{Layout, Weights, gemm, gemm_columns};
pub use layout::{
    BlockOrder, Padding, depth_to_space, padded, permute, select, space_to_depth, stepped,
};
pub use normalize::{Affine, layer_norm, softmax, softmax_reals};
pub use output::{Output, Requantize};
pub use pairwise::{Operand, add, extreme, multiply};
pub use pool::{
    Average, average_pool, extreme_over, global_average_pool, max_pool, max_pool_reals,
};
pub use reals::{Arithmetic, Reals, arithmetic, layer_norm_reals, mean};
pub use resize::{
    Between, Coordinates, Nearest, linear_pixels, nearest_pixels, resize_linear, resize_nearest,
};
pub use shape::{Image, Rows, Window};
pub use table::{Table, WideTable, copy_rows};
pub use turn::{
    dequantize_to_channels_first, quantize_to_channels_last, to_channels_first, to_channels_last,
};
pub use wide::{Grid, Plane, join, join_bytes, join_sums, plane, snap, snap_in_place};
