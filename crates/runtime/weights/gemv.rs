//! Products of a single row (GEMV). Each weight is used once, so reading it in place is faster than
//! packing.

use std::sync::atomic::{AtomicBool, Ordering};

use octet_kernels::gemv::gemv;
use octet_kernels::pack::Matrix;
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::internal::*;

use super::FileBytes;
use super::view::WeightView;
use crate::share_rows::share_rows;

/// Columns of a product that one thread computes together.
const COLUMNS: usize = 32;

/// Replaces the products of a weight and a single row.
pub(super) fn read_in_place(model: &mut TypedModel) -> TractResult<()> {
    for id in 0..model.nodes.len() {
        let node = model.node(id);
        let Some((product, row)) = product(model, node)? else {
            continue;
        };
        let mut patch = TypedModelPatch::default();
        let tap = patch.tap_model(model, row)?;
        let wire = patch.wire_node(&node.name, product, &[tap])?[0];
        patch.shunt_outside(model, id.into(), wire)?;
        patch.apply(model)?;
    }
    // The nodes that read the weights before are still in the model.
    model.compact()
}

/// The product that a node computes, and the source of its row.
fn product(model: &TypedModel, node: &TypedNode) -> TractResult<Option<(RowProduct, OutletId)>> {
    let Some(sum) = node.op_as::<EinSum>() else {
        return Ok(None);
    };
    let plain = sum.q_params.is_none() && sum.operating_dt == f32::datum_type();
    if node.inputs.len() != 2 || !plain {
        return Ok(None);
    }
    for (slot, other) in [(0, 1), (1, 0)] {
        let Some(view) = WeightView::new(model, node.inputs[slot])? else {
            continue;
        };
        let row = model.outlet_fact(node.inputs[other])?;
        let output = &node.outputs[0].fact;
        let (Some(shape), Some(made)) = (row.shape.as_concrete(), output.shape.as_concrete())
        else {
            continue;
        };
        let Some(matrix) = matrix(sum, &view, [slot, other], shape) else {
            continue;
        };
        let floats = [row, output].map(|fact| fact.datum_type == f32::datum_type());
        if floats == [true; 2] && made.iter().product::<usize>() == matrix.mn {
            let (bytes, shape) = (view.bytes, made.into());
            let row = node.inputs[other];
            return Ok(Some((
                RowProduct {
                    bytes,
                    matrix,
                    shape,
                },
                row,
            )));
        }
    }
    Ok(None)
}

/// The weight as a matrix, if it is multiplied with a single row.
fn matrix(
    sum: &EinSum,
    view: &WeightView,
    [slot, other]: [usize; 2],
    row: &[usize],
) -> Option<Matrix> {
    let (mut k, mut mn) = (None, None);
    for axis in sum.axes.iter_all_axes() {
        // Index of the axis in the weight, the row and the output; fails if it occurs twice in one.
        let at = |places: &TVec<usize>| (places.len() <= 1).then(|| places.first().copied());
        let weight = at(&axis.inputs[slot])?;
        let of_row = at(&axis.inputs[other])?.map_or(1, |at| row[at]);
        let keeps_rows = at(&axis.outputs[0])?.is_some();
        let Some(at) = weight.filter(|&at| view.shape[at] > 1) else {
            if of_row > 1 {
                return None;
            }
            continue;
        };
        let size = (view.shape[at], view.strides[at]);
        let whole = match (of_row, keeps_rows) {
            (1, true) => &mut mn,
            (many, false) if many == size.0 => &mut k,
            _ => return None,
        };
        if whole.replace(size).is_some() {
            return None;
        }
    }
    let ((k, k_stride), (mn, mn_stride)) = (k?, mn?);
    Some(Matrix {
        first: 0,
        k,
        mn,
        k_stride,
        mn_stride,
    })
}

/// A row times a weight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RowProduct {
    bytes: FileBytes,
    matrix: Matrix,
    shape: TVec<usize>,
}

impl Op for RowProduct {
    fn name(&self) -> StaticName {
        "MatMulOfRow".into()
    }

    op_as_typed_op!();
}

impl EvalOp for RowProduct {
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let row = inputs[0].try_as_plain_ram()?.as_slice::<f32>()?;
        let mut made = Tensor::zero::<f32>(&self.shape)?;
        let mut plain = made.try_as_plain_ram_mut()?;
        let sums = plain.as_slice_mut::<f32>()?;
        let fits = AtomicBool::new(true);
        let cost = octet_int8::cost_of_product(self.matrix.k * self.matrix.mn);
        share_rows(sums, COLUMNS, cost, |parts, sums| {
            let start = parts.start * COLUMNS;
            let columns = Matrix {
                first: self.matrix.first + start * self.matrix.mn_stride,
                mn: sums.len(),
                ..self.matrix
            };
            if !gemv(&self.bytes.0, &columns, row, sums) {
                fits.store(false, Ordering::Relaxed);
            }
        });
        ensure!(fits.into_inner(), "a weight lies outside its bytes");
        Ok(tvec!(made.into_tvalue()))
    }
}

impl TypedOp for RowProduct {
    fn output_facts(&self, _inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(f32::fact(&self.shape)))
    }

    as_op!();
}
