//! MatMulNBits, ONNX Runtime's product of floats with block-wise quantized weights, on our kernel.
//!
//! The weights stay packed in 2, 4 or 8 bits. The kernel dequantizes one cache-sized part at a time
//! during the run. Nodes with unsupported options are left to tract.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use octet_kernels::int8::{BlockWeights, Blocks, ZeroPoints, block_gemm, rows_of_tiles};
use tract_onnx::model::ParsingContext;
use tract_onnx::pb;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::infer::{
    InferenceOp, InferenceResult, InferenceRulesOp, Solver, TensorProxy,
};
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::to_typed;

use octet_graph::{Attribute, MICROSOFT, Model, Node};
use octet_int8::{BLOCK_PRODUCT, MATMUL_NBITS, cost_of_product, split_rows, with_pool};
use octet_onnx::schema::{DataType, TensorProto};

const PLACE: &str = "place";
const COLUMNS: &str = "columns";

/// Replaces every supported MatMulNBits and returns the weights. A bias becomes an Add behind the
/// product.
pub(in super::super) fn replace(model: &mut Model, watched: &[String]) -> Vec<Arc<BlockWeights>> {
    let mut names = model.graph.names();
    let mut found = Vec::new();
    let mut nodes = Vec::with_capacity(model.graph.nodes().len());
    for node in model.graph.take_nodes() {
        let Some((weights, input, output)) = weights(&node, model) else {
            nodes.push(node);
            continue;
        };
        let product = match node.input_at(5) {
            Some(_) => names.fresh(&format!("{output}_product")),
            None => output.to_owned(),
        };
        let columns = Attribute::int(COLUMNS, weights.columns() as i64);
        let place = Attribute::int(PLACE, found.len() as i64);
        nodes.push(
            Node::new(BLOCK_PRODUCT, node.title(), &[input], &[&product])
                .with(place)
                .with(columns),
        );
        if let Some(bias) = node.input_at(5) {
            let title = names.fresh(&format!("{}_Add", node.title()));
            nodes.push(Node::new("Add", &title, &[&product, bias], &[output]));
        }
        found.push(Arc::new(weights));
    }
    model.graph.replace_nodes(nodes);
    if !found.is_empty() {
        model.graph.remove_unused_except(watched);
    }
    found
}

/// Weights, input and output of a node; `None` for unsupported options or inconsistent sizes.
fn weights<'a>(node: &'a Node, model: &Model) -> Option<(BlockWeights, &'a str, &'a str)> {
    if node.op_type != MATMUL_NBITS || node.domain.as_deref() != Some(MICROSOFT) {
        return None;
    }
    // Input 4 is `g_idx`, an explicit assignment of rows to blocks.
    if node.input_at(4).is_some() {
        return None;
    }
    let number = |key: &str| usize::try_from(node.int(key)?).ok().filter(|&n| n > 0);
    let constant = |slot: usize| model.graph.initializers.get(node.input_at(slot)?);
    // Scales have the type of the activation.
    let scales = constant(2).filter(|scales| scales.element() == Ok(DataType::Float))?;
    let scales = scales.to_f32().ok()?;
    let integers = bytes(constant(1)?)?;
    let (packed, floats) = match node.input_at(3) {
        None => (None, None),
        Some(_) => {
            let tensor = constant(3)?;
            match bytes(tensor) {
                Some(bytes) => (Some(bytes), None),
                None => (None, Some(tensor.to_f32().ok()?)),
            }
        }
    };
    let zero_points = match (&packed, &floats) {
        (Some(packed), _) => ZeroPoints::Packed(packed),
        (_, Some(floats)) => ZeroPoints::Floats(floats),
        _ => ZeroPoints::Middle,
    };
    let weights = BlockWeights::pack(&Blocks {
        bits: number("bits").unwrap_or(4),
        block: number("block_size")?,
        depth: number("K")?,
        columns: number("N")?,
        integers: &integers,
        scales: &scales,
        zero_points,
    });
    Some((weights.ok()?, node.input_at(0)?, node.output.first()?))
}

/// Contents of a uint8 tensor.
fn bytes(tensor: &TensorProto) -> Option<Bytes> {
    if !matches!(tensor.element(), Ok(DataType::Uint8)) {
        return None;
    }
    if let Some(raw) = &tensor.raw_data {
        return Some(raw.clone());
    }
    let integers = tensor.to_i64().ok()?;
    Some(integers.into_iter().map(|v| v as u8).collect())
}

/// The product. It holds only its index until its weights are attached.
#[derive(Clone)]
pub(in super::super) struct BlockProduct {
    pub(in super::super) place: usize,
    pub(in super::super) weights: Option<Arc<BlockWeights>>,
    pub(in super::super) columns: usize,
}

impl fmt::Debug for BlockProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Product {} of {} columns", self.place, self.columns)
    }
}

impl PartialEq for BlockProduct {
    fn eq(&self, other: &BlockProduct) -> bool {
        self.place == other.place
    }
}

impl Eq for BlockProduct {}

/// Builds the operator from its node; registered with tract under [`BLOCK_PRODUCT`].
pub(in super::super) fn build(
    _context: &ParsingContext,
    node: &pb::NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let product = BlockProduct {
        place: node.get_attr(PLACE)?,
        weights: None,
        columns: node.get_attr(COLUMNS)?,
    };
    Ok((Box::new(product), vec![]))
}

impl Op for BlockProduct {
    fn name(&self) -> StaticName {
        "MatMulOfBlocks".into()
    }

    op_as_typed_op!();
}

impl EvalOp for BlockProduct {
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let weights = self.weights.as_deref();
        let weights = weights.context("a block-wise product has no weights attached")?;
        let input = args_1!(inputs);
        let mut shape: TVec<usize> = input.shape().into();
        let plain = input.try_as_plain_ram()?;
        let rows = plain.as_slice::<f32>()?;
        match shape.last_mut() {
            Some(last) if *last == weights.depth() => *last = weights.columns(),
            _ => bail!(
                "the input {shape:?} does not fit a matrix of {} rows",
                weights.depth()
            ),
        }
        let count = rows.len() / weights.depth();
        let mut result = Tensor::zero::<f32>(&shape)?;
        let mut output = result.try_as_plain_ram_mut()?;
        // Threads split the columns, because there may be few rows.
        let mut tiles = vec![0.0; count * BlockWeights::WIDE * weights.tiles()];
        let each = count * BlockWeights::WIDE;
        let cost = cost_of_product(rows.len() * weights.columns());
        with_pool(|| {
            split_rows(&mut tiles, each, cost, |part, output| {
                block_gemm(rows, weights, part, output)
            })
        })?;
        rows_of_tiles(&tiles, weights.columns(), output.as_slice_mut()?)?;
        Ok(tvec!(result.into_tvalue()))
    }
}

impl TypedOp for BlockProduct {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let mut shape = inputs[0].shape.clone();
        ensure!(
            shape.rank() > 0,
            "the left factor of a matrix product is a scalar"
        );
        shape.set(shape.rank() - 1, self.columns.to_dim());
        Ok(tvec!(f32::fact(shape)))
    }

    fn cost(&self, inputs: &[&TypedFact]) -> TractResult<TVec<(Cost, TDim)>> {
        let products = inputs[0].shape.volume() * self.columns;
        Ok(tvec!((Cost::FMA(f32::datum_type()), products)))
    }

    as_op!();
}

impl InferenceRulesOp for BlockProduct {
    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&inputs[0].datum_type, f32::datum_type())?;
        solver.equals(&outputs[0].datum_type, f32::datum_type())?;
        solver.equals(&outputs[0].rank, &inputs[0].rank)?;
        solver.given(&inputs[0].rank, move |solver, rank| {
            ensure!(rank > 0, "the left factor of a matrix product is a scalar");
            let last = rank as usize - 1;
            for axis in 0..last {
                solver.equals(&outputs[0].shape[axis], &inputs[0].shape[axis])?;
            }
            solver.equals(&outputs[0].shape[last], self.columns.to_dim())
        })
    }

    as_op!();
    to_typed!();
}
