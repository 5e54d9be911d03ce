//! An integer region as one operator of tract's graph.

use std::sync::Arc;

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::infer::{
    InferenceOp, InferenceResult, InferenceRulesOp, Solver, TensorProxy,
};
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::to_typed;

use octet_int8::{
    ElementKind, InstructionClock, IrValue, OutputSlice, PLACE, Program, REGION, RegionInput,
};

/// An integer region. It holds only its index until its program is attached.
#[derive(Clone, Debug)]
pub(in super::super) struct RegionOperator {
    pub(in super::super) place: usize,
    pub(in super::super) program: Option<Arc<Program>>,
    /// For each output, true if no node of the graph reads it.
    pub(in super::super) unread_outputs: Vec<bool>,
}

impl PartialEq for RegionOperator {
    fn eq(&self, other: &RegionOperator) -> bool {
        self.place == other.place
    }
}

impl Eq for RegionOperator {}

impl RegionOperator {
    fn program(&self) -> TractResult<&Program> {
        self.program
            .as_deref()
            .context("an integer region has no program attached")
    }

    /// Number of instructions in one run.
    pub(in super::super) fn instructions(&self) -> usize {
        self.program
            .as_ref()
            .map_or(0, |program| program.instructions())
    }

    /// Runs the region; `clock` is called after each instruction.
    pub(in super::super) fn run(
        &self,
        inputs: &[TValue],
        clock: Option<InstructionClock>,
    ) -> TractResult<TVec<TValue>> {
        let program = self.program()?;
        let mut plain = Vec::with_capacity(inputs.len());
        for input in inputs {
            plain.push((input.datum_type(), input.try_as_plain_ram()?));
        }
        let mut region_inputs = Vec::with_capacity(inputs.len());
        for (datum, view) in &plain {
            region_inputs.push(match datum {
                DatumType::U8 => RegionInput::Bytes(view.as_slice::<u8>()?),
                DatumType::I8 => RegionInput::Bytes(as_bytes(view.as_slice::<i8>()?)),
                DatumType::Bool => RegionInput::Bytes(bool_bytes(view.as_slice::<bool>()?)),
                DatumType::F32 => RegionInput::Floats(view.as_slice::<f32>()?),
                other => bail!("an integer region does not support inputs of type {other:?}"),
            });
        }
        let allocate = |(at, value): (usize, &IrValue)| {
            let (datum, shape) = (datum(value), &value.shape);
            // SAFETY: the program writes every element of its outputs, or returns an error that
            // drops them unread. Numbers need no drop.
            unsafe {
                match self.unread_outputs.get(at) {
                    // A model output may be handed on in this memory (`values::from_tract`), so its
                    // alignment is that of its element type.
                    Some(true) => Tensor::uninitialized_aligned_dt(datum, shape, datum.size_of()),
                    _ => Tensor::uninitialized_dt(datum, shape),
                }
            }
        };
        let mut result = program
            .outputs()
            .enumerate()
            .map(allocate)
            .collect::<TractResult<Vec<_>>>()?;
        let views = result.iter_mut().map(|tensor| {
            let datum = tensor.datum_type();
            Ok((datum, tensor.try_as_plain_ram_mut()?))
        });
        let mut views = views.collect::<TractResult<Vec<_>>>()?;
        let sinks = views.iter_mut().map(|(datum, view)| {
            Ok(match datum {
                DatumType::U8 => OutputSlice::Bytes(view.as_slice_mut::<u8>()?),
                DatumType::I8 => OutputSlice::Bytes(as_bytes_mut(view.as_slice_mut::<i8>()?)),
                DatumType::I32 => OutputSlice::Accumulators(view.as_slice_mut::<i32>()?),
                _ => OutputSlice::Floats(view.as_slice_mut::<f32>()?),
            })
        });
        let mut sinks = sinks.collect::<TractResult<Vec<_>>>()?;
        program.run(&region_inputs, &mut sinks, clock)?;
        Ok(result.into_iter().map(IntoTValue::into_tvalue).collect())
    }
}

/// Reinterprets signed integers as bytes.
fn as_bytes(integers: &[i8]) -> &[u8] {
    // SAFETY: i8 and u8 have the same size and alignment, and all bit patterns are valid.
    unsafe { std::slice::from_raw_parts(integers.as_ptr().cast(), integers.len()) }
}

/// Reinterprets Booleans as bytes 0 and 1.
fn bool_bytes(values: &[bool]) -> &[u8] {
    // SAFETY: bool and u8 have the same size and alignment, and a bool is a byte of 0 or 1.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// Reinterprets signed integers as mutable bytes.
fn as_bytes_mut(integers: &mut [i8]) -> &mut [u8] {
    // SAFETY: i8 and u8 have the same layout. The borrow passes on unchanged.
    unsafe { std::slice::from_raw_parts_mut(integers.as_mut_ptr().cast(), integers.len()) }
}

fn datum(value: &IrValue) -> DatumType {
    match value.kind {
        ElementKind::Byte { signed: true } => DatumType::I8,
        ElementKind::Byte { signed: false } => DatumType::U8,
        ElementKind::Float => DatumType::F32,
        ElementKind::Accumulator => DatumType::I32,
    }
}

impl Op for RegionOperator {
    fn name(&self) -> StaticName {
        REGION.into()
    }

    op_as_typed_op!();
}

impl EvalOp for RegionOperator {
    // No constant folding: a region with constant inputs runs like any other.
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        self.run(&inputs, None)
    }
}

impl TypedOp for RegionOperator {
    fn output_facts(&self, _inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let outputs = self.program()?.outputs();
        Ok(outputs
            .map(|value| datum(value).fact(&value.shape))
            .collect())
    }

    as_op!();
}

impl InferenceRulesOp for RegionOperator {
    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        _inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        for (output, value) in outputs.iter().zip(self.program()?.outputs()) {
            solver.equals(&output.datum_type, datum(value))?;
            solver.equals(&output.rank, value.shape.len() as i64)?;
            for (axis, &size) in value.shape.iter().enumerate() {
                solver.equals(&output.shape[axis], size.to_dim())?;
            }
        }
        Ok(())
    }

    fn nboutputs(&self) -> TractResult<usize> {
        Ok(self
            .program
            .as_ref()
            .map_or(1, |program| program.outputs().count()))
    }

    as_op!();
    to_typed!();
}

/// Builds the operator from its node; registered with tract under [`REGION`].
pub(in super::super) fn build(
    _context: &ParsingContext,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let place: usize = node.get_attr(PLACE)?;
    Ok((
        Box::new(RegionOperator {
            place,
            program: None,
            unread_outputs: Vec::new(),
        }),
        vec![],
    ))
}
