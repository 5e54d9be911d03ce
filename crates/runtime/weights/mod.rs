//! Passes large weights to tract without a copy.
//!
//! tract copies constants, and products keep packed copies. All weights would exist twice besides
//! the file, and three times while a plan is built. Here a large weight is a [`SharedWeight`]: an
//! operator without inputs that refers to the bytes of the file.
//!
//! - Our own convolutions read these bytes directly.
//! - A product with a single row, as before the classes of a classifier, reads them in place
//!   ([`gemv`]), and so do row lookups ([`row_lookup`]) and additions ([`addend`]).
//! - After tract has chosen its kernels, [`pack`] replaces the packing of constants: a weight is
//!   packed from the file when the run arrives at its product, and freed behind it. So only the
//!   weights of one layer exist twice.
//! - All other weights, as of depthwise convolutions, are copied when the run arrives at them.

mod addend;
mod gemv;
mod pack;
mod row_lookup;
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
use pack::PackDuringRun;
use view::WeightView;

/// Smallest size of a shared weight. Packing in every run takes time that only large weights are
/// worth: most of a large model, few of a small and fast one.
pub(super) const MIN_SHARED_BYTES: usize = 64 << 10;

const FLOAT: usize = size_of::<f32>();

/// A constant of floats in bytes that others own. It can't be evaluated outside a run, so that
/// tract doesn't fold it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SharedWeight {
    bytes: FileBytes,
    shape: TVec<usize>,
}

impl SharedWeight {
    /// Creates a weight; `None` if the bytes don't fit the shape.
    pub(super) fn new(bytes: Bytes, shape: &[usize]) -> Option<SharedWeight> {
        let count = shape.iter().try_fold(FLOAT, |a, &d| a.checked_mul(d))?;
        (count == bytes.len()).then(|| SharedWeight {
            bytes: FileBytes(bytes),
            shape: shape.into(),
        })
    }

    fn value(&self) -> TractResult<TVec<TValue>> {
        // SAFETY: every bit pattern is a float, and `new` checked the length.
        let tensor = unsafe { Tensor::from_raw_dt(f32::datum_type(), &self.shape, &self.bytes.0) }?;
        Ok(tvec!(tensor.into_tvalue()))
    }
}

/// Bytes of a file, compared by address and length, so that the contents are never read.
#[derive(Clone)]
struct FileBytes(Bytes);

impl FileBytes {
    fn ends(&self) -> Range<*const u8> {
        self.0.as_ptr_range()
    }
}

impl fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl PartialEq for FileBytes {
    fn eq(&self, other: &FileBytes) -> bool {
        self.ends() == other.ends()
    }
}

impl Eq for FileBytes {}

impl Hash for FileBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ends().hash(state);
    }
}

impl Op for SharedWeight {
    fn name(&self) -> StaticName {
        "Weight".into()
    }

    op_as_typed_op!();
}

impl EvalOp for SharedWeight {
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, _inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        self.value()
    }
}

impl TypedOp for SharedWeight {
    fn output_facts(&self, _inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(f32::fact(&self.shape)))
    }

    as_op!();
}

impl InferenceRulesOp for SharedWeight {
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

/// The bytes of a weight whose elements are in the order of the file.
pub(super) fn in_file(model: &TypedModel, outlet: OutletId) -> TractResult<Option<Bytes>> {
    let view = WeightView::new(model, outlet)?;
    let contiguous = view.filter(WeightView::is_contiguous);
    Ok(contiguous.map(|view| view.bytes.0))
}

/// Optimizes a model as tract does, with shared weights in place of packed copies.
pub(super) fn optimized(model: TypedModel) -> TractResult<TypedModel> {
    let mut model = model.into_decluttered()?;
    gemv::read_in_place(&mut model)?;
    row_lookup::read_in_place(&mut model)?;
    addend::read_in_place(&mut model)?;
    let mut optimizer = Optimizer::codegen();
    optimizer.add_pass(optimizer.passes.len(), Box::new(PackDuringRun));
    optimizer.optimize(&mut model)?;
    Ok(model)
}
