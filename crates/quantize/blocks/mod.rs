//! Settings of blocks of weights, and their grids: consecutive weights along the reduction axis share
//! a scale, so 2, 4 or 8 bits are enough.

mod mixed_bits;
mod settings;

pub use mixed_bits::MixedBits;
pub use settings::{
    BlockChoice, BlockForm, BlockMethod, BlockSettings, FloatActivations, FloatType,
};

pub(crate) use octet_kernels::block_weights::{BlockGrid, Levels, packed};

use octet_kernels::block_weights::GridMethod;
use octet_onnx::schema::DataType;

impl BlockSettings {
    /// The number of integers and the position of the zero point.
    pub(crate) fn levels(&self) -> Levels {
        Levels {
            bits: self.bits,
            symmetric: self.is_symmetric(),
        }
    }

    /// The method that chooses the grid of a block.
    pub(crate) fn grid_method(&self) -> GridMethod {
        match self.method {
            BlockMethod::Rtn | BlockMethod::Awq => GridMethod::Ends,
            BlockMethod::Hqq => GridMethod::HalfQuadratic,
            BlockMethod::KQuant => GridMethod::KQuant(self.size),
            BlockMethod::Search | BlockMethod::Gptq => GridMethod::Search,
        }
    }

    /// The rounding of a scale of this type before the integers are computed. Like ONNX Runtime, RTN
    /// rounds a float16 scale and no bfloat16 scale, and k-quant rounds none.
    pub(crate) fn scale_rounding(&self, scales: DataType) -> fn(f32) -> f32 {
        match (self.method, scales) {
            (BlockMethod::KQuant, _)
            | (BlockMethod::Rtn | BlockMethod::Awq, DataType::Bfloat16) => |scale| scale,
            (_, DataType::Float16) => |scale| DataType::Float16.rounded(scale),
            (_, DataType::Bfloat16) => |scale| DataType::Bfloat16.rounded(scale),
            _ => |scale| scale,
        }
    }
}
