//! Operators that tract has, but not as ONNX Runtime computes them: ours of tract's parts, registered in the place of tract's.

mod conv_transpose;

use tract_onnx::Onnx;
use tract_onnx::tract_hir::internal::*;

type Built = TractResult<(Box<dyn InferenceOp>, Vec<String>)>;

/// Puts ours in the place of tract's.
pub(super) fn register(onnx: &mut Onnx) {
    onnx.op_register
        .insert("ConvTranspose", conv_transpose::build);
}

#[cfg(test)]
mod tests;
