//! Matching of data movement, pooling, reductions, Softmax and normalizations.

use octet_kernels::int8::BlockOrder;

use super::destination::Destination;
use super::ir::{Operand, Operation};
use super::reader::{Reader, Reason};
use super::resize::resize;
use super::select::{axis, gather, pad, slice};
use super::weighted_products::{Matched, slot, slot_out};
use super::{normalization, windows};
use crate::quantization::Int8Quantization;
use octet_onnx::schema::NodeProto;

/// The operation of a node on the integers of its first input. It determines the first output only;
/// for Split see `select`.
pub(super) fn operation(node: &NodeProto, reader: &Reader) -> Matched {
    let input = slot(node, 0)?;
    let operand = reader.operand_or_int16(input)?;
    let shape = reader.shape(input)?;
    let output = reader.shape(slot_out(node)?)?;
    let rank = shape.len();
    let operation = match node.op_type.as_deref().unwrap_or_default() {
        "MaxPool" | "AveragePool" => pooling(node, &shape, &output)?,
        "GlobalAveragePool" if rank >= 3 => Operation::Mean {
            axes: 2..rank,
            sum: false,
        },
        "GlobalMaxPool" if rank >= 3 => Operation::MinMax {
            axes: 2..rank,
            least: false,
        },
        "ReduceMean" | "ReduceSum" => Operation::Mean {
            axes: reduced_axes(node, reader, rank)?,
            sum: node.is("ReduceSum"),
        },
        "ReduceMax" | "ReduceMin" => Operation::MinMax {
            axes: reduced_axes(node, reader, rank)?,
            least: node.is("ReduceMin"),
        },
        "Resize" | "Upsample" => resize(node, reader, &shape, &output)?,
        "Pad" => pad(node, reader, &operand, &shape)?,
        "Slice" => slice(node, reader, &shape)?,
        "Gather" => gather(node, reader, &shape, &output)?,
        "Transpose" => Operation::Transpose(order(node, rank)?),
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Identity" => Operation::Reshape,
        "DepthToSpace" | "SpaceToDepth" => blocks(node, &shape)?,
        "Softmax" => softmax(node, reader, rank)?,
        "LayerNormalization" => normalization::layer_normalization(node, reader, &shape)?,
        "InstanceNormalization" | "GroupNormalization" => {
            normalization::image_normalization(node, reader, &shape)?
        }
        other => return Err(format!("{other} has no integer implementation")),
    };
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    let kept = match &operation {
        Operation::Reshape => count(&shape) == count(&output),
        Operation::Softmax { .. } | Operation::Normalize(_) => shape == output,
        Operation::Transpose(order) => order.iter().map(|&a| shape[a]).eq(output.iter().copied()),
        Operation::Mean { axes, .. } | Operation::MinMax { axes, .. } => {
            let outside: usize = shape[..axes.start]
                .iter()
                .chain(&shape[axes.end..])
                .product();
            outside == count(&output)
        }
        Operation::Select { positions, .. } => {
            let result: Vec<usize> = positions.iter().map(Vec::len).collect();
            result == output || node.is("Gather") && count(&result) == count(&output)
        }
        Operation::DepthSpace { .. } => output.len() == 4 && count(&shape) == count(&output),
        _ => true,
    };
    if !kept {
        return Err(format!(
            "its output shape {output:?} does not follow from its input shape {shape:?}"
        ));
    }
    Ok((operation, vec![operand]))
}

/// Fails if a 16-bit value is involved and the operation has no implementation on reals.
pub(super) fn check_reals(
    operation: &Operation,
    inputs: &[Operand],
    end: &Destination,
) -> Result<(), Reason> {
    let int16 = |operand: &Operand| matches!(operand, Operand::Int16(..));
    if !inputs.iter().any(int16) && !matches!(end, Destination::Int16 { .. }) {
        return Ok(());
    }
    let all = inputs.iter().all(int16);
    let known = match operation {
        Operation::MaxPool(_)
        | Operation::MinMax { .. }
        | Operation::Reshape
        | Operation::Transpose(_) => all,
        // Fill values are bytes.
        Operation::Select { positions, .. } => {
            all && positions.iter().flatten().all(Option::is_some)
        }
        Operation::Mean { .. }
        | Operation::Normalize(_)
        | Operation::Concat { .. }
        | Operation::Softmax { .. } => true,
        _ => false,
    };
    known.then_some(()).ok_or_else(|| {
        let name = operation.name();
        format!("a {name} with 16 bits has no integer implementation")
    })
}

pub(super) fn concat(node: &NodeProto, to: Option<Int8Quantization>, reader: &Reader) -> Matched {
    let output = reader.shape(slot_out(node)?)?;
    let axis = axis(
        node.int("axis").ok_or("its attribute axis is missing")?,
        output.len(),
    )?;
    let mut operands = Vec::new();
    let mut joined = 0;
    for name in node.input.iter().filter(|name| !name.is_empty()) {
        let shape = reader.shape(name)?;
        let fits = shape.len() == output.len()
            && (0..shape.len()).all(|a| a == axis || shape[a] == output[a]);
        if !fits {
            return Err(format!(
                "the shape {shape:?} of its input {name} does not fit the output shape {output:?}"
            ));
        }
        joined += shape[axis];
        operands.push(match reader.operand_or_int16(name) {
            Ok(operand) => operand,
            // A constant takes the output's quantization.
            Err(reason) => match to {
                Some(to) => reader.rounded(name, to).ok_or(reason)?,
                None => reader.operand_or_reals(name)?,
            },
        });
    }
    if operands.is_empty() || joined != output[axis] {
        return Err(format!(
            "its inputs do not add up to the output shape {output:?}"
        ));
    }
    if operands.iter().all(|operand| operand.value().is_none()) {
        return Err("all its inputs are constant".into());
    }
    Ok((Operation::Concat { axis }, operands))
}

fn pooling(node: &NodeProto, shape: &[usize], output: &[usize]) -> Result<Operation, Reason> {
    let window = windows::pooling_window(node, shape, output)?;
    let up = node.int("ceil_mode").unwrap_or(0) != 0;
    let channels = shape.get(1).copied().unwrap_or(0);
    if !windows::has_output(&window, shape, channels, output, false, up) {
        return Err(format!("its window does not map {shape:?} to {output:?}"));
    }
    if node.is("AveragePool") {
        return Ok(Operation::AveragePool {
            window,
            counts_padding: node.int("count_include_pad").unwrap_or(0) != 0,
        });
    }
    if node.output.get(1).is_some_and(|name| !name.is_empty()) {
        return Err("its second output, the indices, is used".into());
    }
    Ok(Operation::MaxPool(window))
}

/// The adjacent axes that a node reduces.
fn reduced_axes(
    node: &NodeProto,
    reader: &Reader,
    rank: usize,
) -> Result<std::ops::Range<usize>, Reason> {
    let mut axes: Vec<usize> = match reader.list(node, "axes", 1) {
        Some(list) if !list.is_empty() => list
            .iter()
            .map(|&a| axis(a, rank))
            .collect::<Result<_, _>>()?,
        _ if node.input_at(1).is_some() => return Err("its axes are not constant".into()),
        _ if node.int("noop_with_empty_axes").unwrap_or(0) != 0 => {
            return Err("it reduces no axis".into());
        }
        _ => (0..rank).collect(),
    };
    axes.sort_unstable();
    axes.dedup();
    let (Some(&first), Some(&last)) = (axes.first(), axes.last()) else {
        return Err("it has no axes".into());
    };
    if last - first + 1 != axes.len() {
        return Err(format!("its axes {axes:?} are not adjacent"));
    }
    Ok(first..last + 1)
}

/// The permutation of a Transpose: for each output axis, its input axis.
pub fn order(node: &NodeProto, rank: usize) -> Result<Vec<usize>, Reason> {
    let Some(perm) = node.ints("perm") else {
        return Ok((0..rank).rev().collect());
    };
    let order = perm
        .iter()
        .map(|&a| axis(a, rank))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) {
        return Err(format!(
            "its perm {perm:?} is not a permutation of {rank} axes"
        ));
    }
    Ok(order)
}

fn blocks(node: &NodeProto, shape: &[usize]) -> Result<Operation, Reason> {
    let block = usize::try_from(node.int("blocksize").unwrap_or(0)).unwrap_or(0);
    let to_space = node.is("DepthToSpace");
    let &[_, channels, height, width] = shape else {
        return Err(format!("its input has the shape {shape:?}"));
    };
    let area = block.saturating_mul(block);
    let fits = block > 0
        && match to_space {
            true => channels.is_multiple_of(area),
            false => height.is_multiple_of(block) && width.is_multiple_of(block),
        };
    if !fits {
        return Err(format!(
            "blocks of size {block} do not fit the shape {shape:?}"
        ));
    }
    let order = match node.text("mode").unwrap_or("DCR") {
        "CRD" => BlockOrder::ChannelFirst,
        _ => BlockOrder::BlockFirst,
    };
    Ok(Operation::DepthSpace {
        block,
        to_space: to_space.then_some(order),
    })
}

fn softmax(node: &NodeProto, reader: &Reader, rank: usize) -> Result<Operation, Reason> {
    let newer = reader.opset >= 13;
    let axis = axis(node.int("axis").unwrap_or(if newer { -1 } else { 1 }), rank)?;
    // Before opset 13, Softmax ran over all axes from this one on.
    let end = if newer { axis + 1 } else { rank };
    Ok(Operation::Softmax { axes: axis..end })
}
