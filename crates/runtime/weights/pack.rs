//! Weights that are packed when the run arrives at them.

use octet_kernels::pack::{Matrix, pack};
use tract_onnx::tract_core::ops::matmul::pack::{DynPackedExoticFact, OptMatMulPack};
use tract_onnx::tract_core::optim::{OptimizerSession, TypedPass};
use tract_onnx::tract_core::tract_linalg::mmm::{
    EagerPackedInput, MMMInputValue, PackedExoticFact, PackedMatrixStorage,
};
use tract_onnx::tract_core::tract_linalg::pack::PackedFormat;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::internal::*;

use super::view::WeightView;
use super::{FLOAT, FileBytes};

/// The pass that replaces the packing of a weight by a [`RuntimePack`].
#[derive(Clone, Debug)]
pub(super) struct PackDuringRun;

impl TypedPass for PackDuringRun {
    fn reset(&mut self) -> TractResult<()> {
        Ok(())
    }

    fn next(
        &mut self,
        _session: &mut OptimizerSession,
        model: &TypedModel,
    ) -> TractResult<Option<TypedModelPatch>> {
        for node in &model.nodes {
            let Some(packed) = shared(model, node)? else {
                continue;
            };
            let mut patch = TypedModelPatch::default();
            let wire = patch.wire_node(&node.name, packed, &[])?[0];
            patch.shunt_outside(model, node.id.into(), wire)?;
            return Ok(Some(patch));
        }
        Ok(None)
    }
}

/// Returns the replacement for a node that packs a shared weight.
fn shared(model: &TypedModel, node: &TypedNode) -> TractResult<Option<RuntimePack>> {
    let Some(packing) = node.op_as::<OptMatMulPack>() else {
        return Ok(None);
    };
    let output = &node.outputs[0].fact;
    let packers = output
        .exotic_fact
        .as_ref()
        .and_then(|fact| fact.downcast_ref::<DynPackedExoticFact>())
        .map(|fact| fact.packers.as_slice());
    let Some([packer]) = packers else {
        return Ok(None);
    };
    let Some(format) = packer.downcast_ref::<PackedFormat>() else {
        return Ok(None);
    };
    let Some(view) = WeightView::new(model, node.inputs[0])? else {
        return Ok(None);
    };
    let (inputs, outputs) = model.node_facts(node.id)?;
    let mapping = packing.axes_mapping(&inputs, &outputs)?;
    let axis =
        |name| -> TractResult<Option<usize>> { Ok(mapping.axis(name)?.inputs[0].first().copied()) };
    let (Some(k_axis), Some(mn_axis)) = (axis('K')?, axis('M')?) else {
        return Ok(None);
    };
    if format.dt != f32::datum_type() {
        return Ok(None);
    }
    let others: TVec<usize> = (0..view.shape.len())
        .filter(|&axis| axis != k_axis && axis != mn_axis)
        .collect();
    let matrix = Matrix {
        first: 0,
        k: view.shape[k_axis],
        mn: view.shape[mn_axis],
        k_stride: view.strides[k_axis],
        mn_stride: view.strides[mn_axis],
    };
    let batches = others
        .iter()
        .map(|&axis| (view.shape[axis], view.strides[axis]));
    Ok(Some(RuntimePack {
        batches: batches.collect(),
        bytes: view.bytes,
        matrix,
        format: format.clone(),
        fact: output.clone(),
    }))
}

/// A weight that is packed during the run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RuntimePack {
    bytes: FileBytes,
    /// The first matrix.
    matrix: Matrix,
    /// Length and stride of each batch axis.
    batches: TVec<(usize, usize)>,
    format: PackedFormat,
    fact: TypedFact,
}

impl RuntimePack {
    fn pack(&self, matrix: &Matrix) -> TractResult<Box<dyn MMMInputValue>> {
        let panel = self.format.single_panel_len(matrix.k);
        let count = matrix.mn.div_ceil(self.format.r) * panel;
        // SAFETY: the alignment is a power of two from tract's format, and the size is that of the
        // packed matrix.
        let mut packed =
            unsafe { Blob::new_for_size_and_align(count * FLOAT, self.format.alignment()) };
        let bytes = packed.as_bytes_mut();
        // Kernels don't use the values between panels, but that memory must be initialized.
        bytes.fill(0);
        // SAFETY: the blob is aligned for floats by the format and holds `count` floats, all
        // written above.
        let floats =
            unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<f32>(), count) };
        let in_range = pack(&self.bytes.0, matrix, self.format.r, panel, floats);
        ensure!(in_range, "a weight lies outside its bytes");
        Ok(Box::new(EagerPackedInput {
            fact: PackedExoticFact {
                format: Box::new(self.format.clone()),
                mn: matrix.mn.to_dim(),
                k: matrix.k,
            },
            packed: packed.into(),
            panel_bytes: panel * FLOAT,
            mn: matrix.mn,
        }))
    }
}

impl Op for RuntimePack {
    fn name(&self) -> StaticName {
        "PackWeight".into()
    }

    op_as_typed_op!();
}

impl EvalOp for RuntimePack {
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, _inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let shape: TVec<usize> = self.batches.iter().map(|&(size, _)| size).collect();
        let count = shape.iter().product::<usize>();
        let mut values = TVec::with_capacity(count);
        for at in 0..count {
            let (mut left, mut first) = (at, 0);
            for &(size, stride) in self.batches.iter().rev() {
                first += left % size * stride;
                left /= size;
            }
            let matrix = Matrix {
                first,
                ..self.matrix
            };
            values.push(self.pack(&matrix)?);
        }
        let storage = PackedMatrixStorage::new_batched(&shape, values);
        Ok(tvec!(
            storage.into_tensor(self.fact.datum_type).into_tvalue()
        ))
    }
}

impl TypedOp for RuntimePack {
    fn output_facts(&self, _inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(self.fact.clone()))
    }

    as_op!();
}
