//! Large weights, handed to tract without a copy.
//!
//! tract keeps constants in memory of its own, and products keep theirs in the order that a kernel reads: beside the file all
//! weights are there a second time, and while a plan is made a third. Here the large weight of a product is a [`Weight`]
//! instead: an operator that reads nothing and knows where the file's bytes are. Our own convolutions read them there. Where a single row is multiplied, as in front
//! of the classes of a classifier, [`row`] reads the weight where it lies, and where rows are
//! looked up in it, [`table`] does, and where it is added, [`addend`]. Once tract has chosen its kernels, [`pack`] comes
//! in where it would pack constants: that packs the weight when the run comes to it, from the file's bytes, and what it made
//! is freed behind the product. So only the weights of one layer are there twice. What is left, as of depthwise
//! convolutions, is copied when the run comes to it.

mod addend;
mod pack;
mod row;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use bytes::Bytes;
use tract_onnx::tract_core::optim::Optimizer;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::infer::{InferenceResult, InferenceRulesOp, Solver, TensorProxy};
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::to_typed;

pub(super) use addend::Addend;
use pack::Share;
use view::View;

/// Packing takes time in every run, which only what is large is worth: most of a large model, little of one that is made to
/// be quick.
pub(super) const LEAST: usize = 64 << 10;

const FLOAT: usize = size_of::<f32>();

/// A constant of floats whose bytes are somebody else's. It can't be evaluated outside a run, so that tract doesn't fold it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Weight {
    bytes: Place,
    shape: TVec<usize>,
}

impl Weight {
    /// A weight; `None` where bytes and shape don't belong together.
    pub(super) fn new(bytes: Bytes, shape: &[usize]) -> Option<Weight> {
        let count = shape.iter().try_fold(FLOAT, |a, &d| a.checked_mul(d))?;
        (count == bytes.len()).then(|| Weight {
            bytes: Place(bytes),
            shape: shape.into(),
        })
    }

    fn value(&self) -> TractResult<TVec<TValue>> {
        // SAFETY: every bit pattern is a float, and `new` checked the length.
        let tensor = unsafe { Tensor::from_raw_dt(f32::datum_type(), &self.shape, &self.bytes.0) }?;
        Ok(tvec!(tensor.into_tvalue()))
    }
}

/// Bytes of a file, the same as others only where they are the same place of it: all of them are never looked at.
#[derive(Clone)]
struct Place(Bytes);

impl Place {
    fn ends(&self) -> Range<*const u8> {
        self.0.as_ptr_range()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.ends() == other.ends()
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ends().hash(state);
    }
}

impl Op for Weight {
    fn name(&self) -> StaticName {
        "Weight".into()
    }

    op_as_typed_op!();
}

impl EvalOp for Weight {
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, _inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        self.value()
    }
}

impl TypedOp for Weight {
    fn output_facts(&self, _inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(f32::fact(&self.shape)))
    }

    as_op!();
}

impl InferenceRulesOp for Weight {
    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        _inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&outputs[0].datum_type, f32::datum_type())?;
        solver.equals(&outputs[0].shape, ShapeFactoid::from(&*self.shape))
    }

    as_op!();
    to_typed!();
}

/// The bytes of a weight that is seen as it lies in its file.
pub(super) fn in_file(model: &TypedModel, outlet: OutletId) -> TractResult<Option<Bytes>> {
    let view = View::of(model, outlet)?;
    let as_it_lies = view.filter(View::lies_as_counted);
    Ok(as_it_lies.map(|view| view.bytes.0))
}

/// tract's own code generation, with weights shared where it would pack them.
pub(super) fn optimized(model: TypedModel) -> TractResult<TypedModel> {
    let mut model = model.into_decluttered()?;
    row::read_in_place(&mut model)?;
    table::read_in_place(&mut model)?;
    addend::read_in_place(&mut model)?;
    let mut optimizer = Optimizer::codegen();
    optimizer.add_pass(optimizer.passes.len(), Box::new(Share));
    optimizer.optimize(&mut model)?;
    Ok(model)
}
