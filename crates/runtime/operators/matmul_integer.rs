//! MatMulInteger with vectors too: tract reads them as matrices, and returns another shape or
//! panics.

use tract_onnx::Onnx;
use tract_onnx::model::{ParsingContext, optional_inputs};
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::ops::cast::cast;
use tract_onnx::tract_core::ops::change_axes::wire_with_rank_broadcast;
use tract_onnx::tract_core::ops::math;
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::ops::matmul::{MatMulInference, compute_shapes};

use crate::operator_inputs::BuildResult;

/// The input slots of both zero points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MatMulInteger {
    zero_points: [Option<usize>; 2],
}

pub(super) fn register(onnx: &mut Onnx) {
    onnx.op_register.insert("MatMulInteger", build);
}

fn build(_context: &ParsingContext, node: &NodeProto) -> BuildResult {
    let mut optional = optional_inputs(node).skip(2);
    let zero_points = [optional.next().flatten(), optional.next().flatten()];
    Ok((expand(MatMulInteger { zero_points }), vec![]))
}

impl Expansion for MatMulInteger {
    fn name(&self) -> StaticName {
        "MatMulInteger".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        check_input_arity(inputs, 2 + self.zero_points.iter().flatten().count())?;
        check_output_arity(outputs, 1)?;
        solver.equals(&outputs[0].datum_type, i32::datum_type())?;
        for (factor, zero_point) in self.zero_points.iter().enumerate() {
            if let Some(slot) = *zero_point {
                solver.equals(&inputs[slot].datum_type, &inputs[factor].datum_type)?;
            }
        }
        let shapes = (&inputs[0].shape, &inputs[1].shape);
        solver.given_2(shapes.0, shapes.1, move |solver, left, right| {
            ensure!(
                !left.is_empty() && !right.is_empty(),
                "its inputs of shapes {left:?} and {right:?} can't be multiplied"
            );
            let (_, _, _, made) = compute_shapes(left, right, false, false, false)?;
            solver.equals(&outputs[0].shape, made)
        })
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let integers = i32::datum_type();
        let mut factors = tvec![];
        // A vector is a row on the left and a column on the right.
        let mut vectors = [false; 2];
        for (at, &zero_point) in self.zero_points.iter().enumerate() {
            let name = format!("{prefix}.factor_{at}");
            let mut wire = model.wire_node(&name, cast(integers), &[inputs[at]])?[0];
            if model.outlet_fact(wire)?.rank() == 1 {
                vectors[at] = true;
                let axis = AxisOp::Add(at);
                wire = model.wire_node(format!("{name}.matrix"), axis, &[wire])?[0];
            }
            if let Some(slot) = zero_point {
                let name = format!("{prefix}.zero_point_{at}");
                let mut zero = model.wire_node(&name, cast(integers), &[inputs[slot]])?[0];
                // Zero points per row get an axis for the columns.
                if at == 0 && model.outlet_fact(zero)?.rank() == 1 {
                    zero = model.wire_node(format!("{name}.rows"), AxisOp::Add(1), &[zero])?[0];
                }
                let name = format!("{prefix}.steps_{at}");
                wire = wire_with_rank_broadcast(name, model, math::sub(), &[wire, zero])?[0];
            }
            factors.push(wire);
        }
        let behind = vectors.iter().filter(|&&vector| vector).count();
        let name = |step: usize| match step == behind {
            true => prefix.to_owned(),
            false => format!("{prefix}.with_{}", behind - step),
        };
        let mut wire = MatMulInference::default().wire(&name(0), model, &factors)?;
        // Added axes are removed, the last one first.
        let rank = model.outlet_fact(wire[0])?.rank();
        let added = [(vectors[1], rank - 1), (vectors[0], rank - 2)];
        for (step, (_, axis)) in added.into_iter().filter(|(vector, _)| *vector).enumerate() {
            wire = model.wire_node(name(step + 1), AxisOp::Rm(axis), &wire)?;
        }
        Ok(wire)
    }
}
