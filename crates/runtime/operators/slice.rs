//! Slice with ONNX Runtime's clamping. tract's Slice takes nothing when it runs backwards from
//! before the front, and fails when it takes nothing.

use tract_onnx::Onnx;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::ops::array::{Slice as TractSlice, StridedSlice};
use tract_onnx::tract_core::ops::downsample::Downsample;
use tract_onnx::tract_hir::internal::*;

use crate::operator_inputs::{BuildResult, axis_of, integers};
use octet_graph::prepare::slice_bounds;

/// The input slots of the axes and the steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ClampedSlice {
    axes: Option<usize>,
    steps: Option<usize>,
}

/// The part of an axis that is taken.
struct AxisSlice {
    /// Index in the lists of the node.
    place: usize,
    axis: usize,
    start: i64,
    end: i64,
    step: i64,
}

pub(super) fn register(onnx: &mut Onnx) {
    onnx.op_register.insert("Slice", build);
}

fn build(_context: &ParsingContext, node: &NodeProto) -> BuildResult {
    let mut optional = tract_onnx::model::optional_inputs(node).skip(3);
    let slice = ClampedSlice {
        axes: optional.next().flatten(),
        steps: optional.next().flatten(),
    };
    Ok((expand(slice), vec![]))
}

impl ClampedSlice {
    fn tract_slice(&self) -> StridedSlice {
        StridedSlice {
            begin_mask: 0,
            end_mask: 0,
            shrink_axis_mask: 0,
            optional_axes_input: self.axes,
            optional_steps_input: self.steps,
        }
    }

    /// The parts that are taken, from the values of all inputs behind the first; `None` if they
    /// contain symbolic sizes.
    fn slices(&self, given: &[Arc<Tensor>], rank: usize) -> TractResult<Option<Vec<AxisSlice>>> {
        let (Ok(starts), Ok(ends)) = (integers(&given[0]), integers(&given[1])) else {
            return Ok(None);
        };
        let list = |slot: usize| integers(&given[slot - 1]);
        let axes = match self.axes {
            Some(slot) => list(slot)?,
            None => (0..starts.len() as i64).collect(),
        };
        let steps = match self.steps {
            Some(slot) => list(slot)?,
            None => vec![1; starts.len()],
        };
        let lengths = [ends.len(), axes.len(), steps.len()];
        ensure!(
            lengths.iter().all(|&length| length == starts.len()),
            "{} starts, but {lengths:?} ends, axes and steps",
            starts.len()
        );
        ensure!(!steps.contains(&0), "a step is 0");
        let one = |place: usize| -> TractResult<AxisSlice> {
            Ok(AxisSlice {
                place,
                axis: axis_of(axes[place], rank)?,
                start: starts[place],
                end: ends[place],
                step: steps[place],
            })
        };
        (0..starts.len())
            .map(one)
            .collect::<TractResult<_>>()
            .map(Some)
    }

    /// Number of elements taken from an axis of this size, numeric or symbolic.
    fn length(&self, slices: &AxisSlice, size: &TDim, given: &[Arc<Tensor>]) -> TractResult<TDim> {
        if let Ok(size) = size.to_i64() {
            return Ok(slice_bounds(size, slices.start, slices.end, slices.step)
                .1
                .to_dim());
        }
        let steps: Vec<i32> = match self.steps {
            Some(slot) => integers(&given[slot - 1])?
                .iter()
                .map(|&s| s as i32)
                .collect(),
            None => vec![],
        };
        let tract_slice = self.tract_slice();
        tract_slice
            .prepare_one_dim(slices.place, size, &given[0], &given[1], &steps)?
            .soft_len()
    }
}

impl Expansion for ClampedSlice {
    fn name(&self) -> StaticName {
        "Slice".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        let optional = [self.axes, self.steps];
        check_input_arity(inputs, 3 + optional.iter().flatten().count())?;
        check_output_arity(outputs, 1)?;
        solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)?;
        solver.equals(&inputs[0].rank, &outputs[0].rank)?;
        for list in &inputs[1..] {
            solver.equals(&list.rank, 1)?;
            solver.equals(&list.shape[0], &inputs[1].shape[0])?;
        }
        if let Some(slot) = self.axes {
            // The sizes of all other axes stay the same.
            solver.given_2(
                &inputs[0].rank,
                &inputs[slot].value,
                move |solver, rank, axes| {
                    let rank = rank as usize;
                    let axes = integers(&axes)?;
                    let cut: TractResult<Vec<usize>> =
                        axes.iter().map(|&axis| axis_of(axis, rank)).collect();
                    let cut = cut?;
                    for axis in (0..rank).filter(|axis| !cut.contains(axis)) {
                        solver.equals(&inputs[0].shape[axis], &outputs[0].shape[axis])?;
                    }
                    Ok(())
                },
            )?;
        }
        solver.given(&inputs[0].shape, move |solver, shape| {
            let lists = inputs[1..].iter().map(|list| &list.value);
            solver.given_all(lists, move |solver, given: Vec<Arc<Tensor>>| {
                let Some(slices) = self.slices(&given, shape.len())? else {
                    return Ok(());
                };
                let mut made = shape.clone();
                for slices in &slices {
                    made[slices.axis] = self.length(slices, &shape[slices.axis], &given)?;
                }
                solver.equals(&outputs[0].shape, made)
            })
        })
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let constant = |&list: &OutletId| Ok(model.outlet_fact(list)?.konst.clone());
        let given: TractResult<Option<Vec<Arc<Tensor>>>> =
            inputs[1..].iter().map(constant).collect();
        let shape = model.outlet_fact(inputs[0])?.shape.clone();
        let slices = match given? {
            Some(given) => self.slices(&given, shape.rank())?,
            None => None,
        };
        // tract handles symbolic sizes.
        let known = |slices: &Vec<AxisSlice>| slices.iter().all(|t| shape[t.axis].to_i64().is_ok());
        let Some(slices) = slices.filter(known) else {
            let mut inputs: TVec<OutletId> = inputs.into();
            let mut tract_slice = self.tract_slice();
            // Without axes, tract slices all axes, even if the lists are shorter.
            if self.axes.is_none() {
                let count = model.outlet_fact(inputs[1])?.shape.volume().to_i64()?;
                let axes = tensor1(&(0..count).collect::<Vec<i64>>());
                tract_slice.optional_axes_input = Some(inputs.len());
                inputs.push(model.add_const(format!("{prefix}.axes"), axes)?);
            }
            return model.wire_node(prefix, tract_slice, &inputs);
        };
        let mut wire = inputs[0];
        for slices in &slices {
            let axis = slices.axis;
            let size = shape[axis].to_i64()?;
            let (first, count) = slice_bounds(size, slices.start, slices.end, slices.step);
            let first = first as usize;
            let over = count.saturating_sub(1) * slices.step.unsigned_abs() as usize;
            let (from, to) = match (count, slices.step > 0) {
                (0, _) => (0, 0),
                (_, true) => (first, first + over + 1),
                (_, false) => (first - over, first + 1),
            };
            let name = format!("{prefix}.axis_{axis}");
            wire = model.wire_node(name, TractSlice::new(axis, from, to), &[wire])?[0];
            if count > 1 && slices.step != 1 {
                let every = Downsample::new(axis, slices.step as isize, 0);
                wire = model.wire_node(format!("{prefix}.steps_{axis}"), every, &[wire])?[0];
            }
        }
        Ok(tvec!(wire))
    }
}
