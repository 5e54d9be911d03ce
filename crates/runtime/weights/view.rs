//! The layout of a weight in its file, seen through operators that only rearrange axes.

use tract_onnx::tract_core::ops::change_axes::IntoShape;
use tract_onnx::tract_hir::internal::*;

use super::{FileBytes, SharedWeight};

/// A weight behind operators that only rearrange its axes. Strides are in floats.
pub(super) struct WeightView {
    pub(super) bytes: FileBytes,
    pub(super) shape: TVec<usize>,
    pub(super) strides: TVec<usize>,
}

impl WeightView {
    /// Returns `None` if another operator is in between, or one that would move bytes.
    pub(super) fn new(model: &TypedModel, outlet: OutletId) -> TractResult<Option<WeightView>> {
        let mut node = model.node(outlet.node);
        let mut between = Vec::new();
        let weight = loop {
            if let Some(weight) = node.op_as::<SharedWeight>() {
                break weight;
            }
            if !node.op_is::<AxisOp>() && !node.op_is::<IntoShape>() {
                return Ok(None);
            }
            between.push(node);
            node = model.node(node.inputs[0].node);
        };
        let mut view = WeightView {
            bytes: weight.bytes.clone(),
            strides: natural(&weight.shape),
            shape: weight.shape.clone(),
        };
        for node in between.into_iter().rev() {
            let Some(shape) = node.outputs[0].fact.shape.as_concrete() else {
                return Ok(None);
            };
            let behind = match node.op_as::<AxisOp>() {
                Some(&AxisOp::Move(from, to)) => view.move_axis(from, to),
                Some(&AxisOp::Add(at)) => view.insert_axis(at),
                Some(&AxisOp::Rm(at)) => view.remove_axis(at),
                // A reshape needs the natural order.
                _ => view.reshape(shape),
            };
            let Some(behind) = behind.filter(|view| *view.shape == *shape) else {
                return Ok(None);
            };
            view = behind;
        }
        Ok(Some(view))
    }

    fn move_axis(mut self, from: usize, to: usize) -> Option<WeightView> {
        let (size, stride) = (self.shape.remove(from), self.strides.remove(from));
        self.shape.insert(to, size);
        self.strides.insert(to, stride);
        Some(self)
    }

    fn insert_axis(mut self, at: usize) -> Option<WeightView> {
        self.shape.insert(at, 1);
        self.strides.insert(at, 0);
        Some(self)
    }

    fn remove_axis(mut self, at: usize) -> Option<WeightView> {
        (self.shape.remove(at) == 1).then(|| {
            self.strides.remove(at);
            self
        })
    }

    /// Returns true if the elements are contiguous in row-major order.
    pub(super) fn is_contiguous(&self) -> bool {
        let whole = natural(&self.shape);
        let counted = self.shape.iter().zip(&self.strides).zip(&whole);
        counted
            .into_iter()
            .all(|((&size, stride), natural)| size == 1 || stride == natural)
    }

    fn reshape(self, shape: &[usize]) -> Option<WeightView> {
        self.is_contiguous().then(|| WeightView {
            bytes: self.bytes,
            strides: natural(shape),
            shape: shape.into(),
        })
    }
}

fn natural(shape: &[usize]) -> TVec<usize> {
    let mut strides: TVec<usize> = tvec!(1; shape.len());
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}
