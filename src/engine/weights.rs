//! Weights of products, handed to tract without a copy.
//!
//! tract keeps constants in memory of its own, and products keep theirs in the order that a kernel reads: beside the file all
//! weights are there a second time, and while a plan is made a third. Here the large weight of a product is a [`Weight`]
//! instead: an operator that reads nothing and knows where the file's bytes are. Once tract has chosen its kernels, [`Share`]
//! puts [`Packed`] where it would pack constants: that packs the weight when the run comes to it, from the
//! file's bytes, and what it made is freed behind the product. So only the weights of one layer are there twice. What is left,
//! as of depthwise convolutions, is copied when the run comes to it.

use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use octet_kernels::panels::{Matrix, pack};
use tract_onnx::tract_core::ops::change_axes::IntoShape;
use tract_onnx::tract_core::ops::matmul::pack::{DynPackedExoticFact, OptMatMulPack};
use tract_onnx::tract_core::optim::{Optimizer, OptimizerSession, TypedPass};
use tract_onnx::tract_core::tract_linalg::mmm::{
    EagerPackedInput, MMMInputValue, PackedExoticFact, PackedMatrixStorage,
};
use tract_onnx::tract_core::tract_linalg::pack::PackedFormat;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::infer::{InferenceResult, InferenceRulesOp, Solver, TensorProxy};
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::to_typed;

/// Packing takes time in every run, which only what is large is worth: most of a large model, little of one that is made to
/// be quick.
pub(super) const LEAST: usize = 256 << 10;

const FLOAT: usize = size_of::<f32>();

/// A constant of floats whose bytes are somebody else's. It can't be evaluated outside a run, so that tract doesn't fold it.
#[derive(Clone)]
pub(super) struct Weight {
    bytes: Bytes,
    shape: TVec<usize>,
}

impl Weight {
    /// A weight; `None` where bytes and shape don't belong together.
    pub(super) fn new(bytes: Bytes, shape: &[usize]) -> Option<Weight> {
        let count = shape.iter().try_fold(FLOAT, |a, &d| a.checked_mul(d))?;
        (count == bytes.len()).then(|| Weight {
            bytes,
            shape: shape.into(),
        })
    }
}

impl fmt::Debug for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weight {:?}", self.shape)
    }
}

impl PartialEq for Weight {
    fn eq(&self, other: &Weight) -> bool {
        same(&self.bytes, &other.bytes) && self.shape == other.shape
    }
}

impl Eq for Weight {}

impl Hash for Weight {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.bytes.as_ptr(), self.bytes.len(), &self.shape).hash(state);
    }
}

/// Whether these are the same bytes in the same place.
fn same(a: &Bytes, b: &Bytes) -> bool {
    a.as_ptr() == b.as_ptr() && a.len() == b.len()
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
        // SAFETY: every bit pattern is a float, and `new` checked the length.
        let tensor = unsafe { Tensor::from_raw_dt(f32::datum_type(), &self.shape, &self.bytes) }?;
        Ok(tvec!(tensor.into_tvalue()))
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

/// tract's own code generation, with weights shared where it would pack them.
pub(super) fn optimized(model: TypedModel) -> TractResult<TypedModel> {
    let mut model = model.into_decluttered()?;
    let mut optimizer = Optimizer::codegen();
    optimizer.add_pass(optimizer.passes.len(), Box::new(Share));
    optimizer.optimize(&mut model)?;
    Ok(model)
}

/// Replaces the packing of a [`Weight`] by a [`Packed`].
#[derive(Clone, Debug)]
struct Share;

impl TypedPass for Share {
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

/// What stands for the result of this node, if it packs a weight that is shared.
fn shared(model: &TypedModel, node: &TypedNode) -> TractResult<Option<Packed>> {
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
    let Some(view) = View::of(model, node.inputs[0])? else {
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
    Ok(Some(Packed {
        batches: batches.collect(),
        bytes: view.bytes,
        matrix,
        format: format.clone(),
        fact: output.clone(),
    }))
}

/// A weight as seen behind operators that only rearrange its axes. Strides are in floats.
struct View {
    bytes: Bytes,
    shape: TVec<usize>,
    strides: TVec<usize>,
}

impl View {
    /// `None` where something else, or something that would move bytes, is in between.
    fn of(model: &TypedModel, outlet: OutletId) -> TractResult<Option<View>> {
        let mut node = model.node(outlet.node);
        let mut between = Vec::new();
        let weight = loop {
            if let Some(weight) = node.op_as::<Weight>() {
                break weight;
            }
            if !node.op_is::<AxisOp>() && !node.op_is::<IntoShape>() {
                return Ok(None);
            }
            between.push(node);
            node = model.node(node.inputs[0].node);
        };
        let mut view = View {
            bytes: weight.bytes.clone(),
            strides: natural(&weight.shape),
            shape: weight.shape.clone(),
        };
        for node in between.into_iter().rev() {
            let Some(shape) = node.outputs[0].fact.shape.as_concrete() else {
                return Ok(None);
            };
            let behind = match node.op_as::<AxisOp>() {
                Some(&AxisOp::Move(from, to)) => view.moved(from, to),
                Some(&AxisOp::Add(at)) => view.added(at),
                Some(&AxisOp::Rm(at)) => view.removed(at),
                // Only of what lies as it is counted.
                _ => view.reshaped(shape),
            };
            let Some(behind) = behind.filter(|view| *view.shape == *shape) else {
                return Ok(None);
            };
            view = behind;
        }
        Ok(Some(view))
    }

    fn moved(mut self, from: usize, to: usize) -> Option<View> {
        let (size, stride) = (self.shape.remove(from), self.strides.remove(from));
        self.shape.insert(to, size);
        self.strides.insert(to, stride);
        Some(self)
    }

    fn added(mut self, at: usize) -> Option<View> {
        self.shape.insert(at, 1);
        self.strides.insert(at, 0);
        Some(self)
    }

    fn removed(mut self, at: usize) -> Option<View> {
        (self.shape.remove(at) == 1).then(|| {
            self.strides.remove(at);
            self
        })
    }

    fn reshaped(self, shape: &[usize]) -> Option<View> {
        let whole = natural(&self.shape);
        let counted = self.shape.iter().zip(&self.strides).zip(&whole);
        let plain = counted
            .into_iter()
            .all(|((&size, stride), natural)| size == 1 || stride == natural);
        plain.then(|| View {
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

/// A weight that is packed when the run comes to it.
#[derive(Clone)]
struct Packed {
    bytes: Bytes,
    /// The first of the matrices.
    matrix: Matrix,
    /// How many of them there are along each further axis, and how far apart.
    batches: TVec<(usize, usize)>,
    format: PackedFormat,
    fact: TypedFact,
}

impl Packed {
    fn pack(&self, matrix: &Matrix) -> TractResult<Box<dyn MMMInputValue>> {
        let panel = self.format.single_panel_len(matrix.k);
        let count = matrix.mn.div_ceil(self.format.r) * panel;
        // SAFETY: the alignment is a power of two, as it comes from tract's own formats, and the size that of the packed matrix.
        let mut packed =
            unsafe { Blob::new_for_size_and_align(count * FLOAT, self.format.alignment()) };
        let bytes = packed.as_bytes_mut();
        // What is between the panels is read by no kernel for its value, but may not be left unwritten.
        bytes.fill(0);
        // SAFETY: the blob is aligned for floats by the format and holds `count` of them, all written just now.
        let floats =
            unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<f32>(), count) };
        let held = pack(&self.bytes, matrix, self.format.r, panel, floats);
        ensure!(held, "a weight lies outside its bytes");
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

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Packed {:?} {:?} {}",
            self.matrix, self.batches, self.format
        )
    }
}

impl PartialEq for Packed {
    fn eq(&self, other: &Packed) -> bool {
        same(&self.bytes, &other.bytes)
            && (self.matrix, &self.batches) == (other.matrix, &other.batches)
            && self.format == other.format
    }
}

impl Eq for Packed {}

impl Hash for Packed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.bytes.as_ptr(), self.matrix, &self.batches).hash(state);
    }
}

impl Op for Packed {
    fn name(&self) -> StaticName {
        "PackWeight".into()
    }

    op_as_typed_op!();
}

impl EvalOp for Packed {
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

impl TypedOp for Packed {
    fn output_facts(&self, _inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(self.fact.clone()))
    }

    as_op!();
}

#[cfg(test)]
mod tests {
    use crate::engine::Engine;
    use crate::graph::{Dim, Model, TensorType};
    use crate::onnx::schema::{
        AttributeProto, DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
        TensorProto, ValueInfoProto,
    };
    use crate::tensor::{Tensor, Values};

    /// Whole numbers so small that all sums of them are exact in floats, in any order.
    fn whole(count: usize) -> Vec<f32> {
        (0..count).map(|at| (at * 37 % 11) as f32 - 5.0).collect()
    }

    fn model(node: NodeProto, weight: &[usize], input: &[usize], output: &[usize]) -> Model {
        let port = |name: &str, shape: &[usize]| {
            let shape = Some(shape.iter().map(|&size| Dim::Known(size)).collect());
            let element = DataType::Float;
            ValueInfoProto::of(name, &TensorType { element, shape })
        };
        let values = whole(weight.iter().product());
        let graph = GraphProto {
            node: vec![node],
            input: vec![port("x", input)],
            output: vec![port("y", output)],
            initializer: vec![TensorProto::from_f32("w", weight, &values)],
            ..Default::default()
        };
        Model::from_proto(ModelProto {
            ir_version: Some(8),
            opset_import: vec![OperatorSetIdProto {
                version: Some(17),
                ..Default::default()
            }],
            graph: Some(graph),
            ..Default::default()
        })
        .unwrap()
    }

    #[test]
    fn shared_weights_give_what_their_values_give() {
        let node = |operator| NodeProto::new(operator, "n", &["x", "w"], &["y"]);
        let grouped = node("Conv").with(AttributeProto::int("group", 4));
        let turned = node("Gemm").with(AttributeProto::int("transB", 1));
        // Weight [columns, depth] read as [depth, columns], and the other way round.
        let product = |turned: bool, [rows, depth, columns]: [usize; 3]| {
            let (x, w) = (whole(rows * depth), whole(depth * columns));
            let weight = |k: usize, n: usize| {
                w[if turned {
                    n * depth + k
                } else {
                    k * columns + n
                }]
            };
            let sum = |at: usize| (0..depth).map(move |k| (k, at / columns, at % columns));
            let made = (0..rows * columns).map(|at| {
                sum(at)
                    .map(|(k, row, n)| x[row * depth + k] * weight(k, n))
                    .sum()
            });
            made.collect::<Vec<f32>>()
        };
        // A convolution of one pixel is a product; of the groups each has its part of the channels.
        let pixel = |groups: usize, inputs: usize, outputs: usize| {
            let (x, w, each) = (
                whole(inputs),
                whole(outputs * inputs / groups),
                inputs / groups,
            );
            let made = (0..outputs).map(|n| {
                let group = n / (outputs / groups);
                (0..each)
                    .map(|k| x[group * each + k] * w[n * each + k])
                    .sum()
            });
            made.collect::<Vec<f32>>()
        };
        let cases: [(NodeProto, &[usize], &[usize], &[usize], Vec<f32>); 5] = [
            (
                node("MatMul"),
                &[300, 257],
                &[7, 300],
                &[7, 257],
                product(false, [7, 300, 257]),
            ),
            (
                node("MatMul"),
                &[300, 257],
                &[1, 5, 300],
                &[1, 5, 257],
                product(false, [5, 300, 257]),
            ),
            (
                turned,
                &[257, 300],
                &[7, 300],
                &[7, 257],
                product(true, [7, 300, 257]),
            ),
            (
                node("Conv"),
                &[300, 256, 1, 1],
                &[1, 256, 1, 1],
                &[1, 300, 1, 1],
                pixel(1, 256, 300),
            ),
            (
                grouped,
                &[640, 128, 1, 1],
                &[1, 512, 1, 1],
                &[1, 640, 1, 1],
                pixel(4, 512, 640),
            ),
        ];
        for (node, weight, input, output, wanted) in cases {
            let title = format!("{} {weight:?}", node.operator());
            let values = Values::F32(whole(input.iter().product()));
            let sample = [Tensor::new(input.to_vec(), values).unwrap()];
            let engine =
                Engine::new(model(node, weight, input, output), vec![]).with_kernels(false);
            let made = engine.run(&sample, |_, _| {}, || false).unwrap();
            assert_eq!(made[0].as_f32().unwrap(), wanted, "{title}");
            let steps = engine.steps(&sample).unwrap().steps;
            assert!(
                steps.iter().any(|step| step.kernel == "PackWeight"),
                "{title}: {steps:?}"
            );
        }
    }
}
