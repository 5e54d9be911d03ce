//! Operators that move integers, compare them, or average neighbours.

use octet_kernels::int8::{
    Between, BlockOrder, Coordinates, Nearest, Padding, linear_pixels, nearest_pixels, padded,
    stepped,
};

use super::network::{Operand, Operation};
use super::reader::{Reader, Reason};
use super::weighted::{Found, slot, slot_out};
use super::windows;
use crate::onnx::schema::NodeProto;

/// The largest selection that is written out position by position.
const LARGEST: usize = 1 << 24;

/// What a node does to the integers of its first input, its first output being looked at (Split: see
/// [`part`]).
pub(super) fn operation(node: &NodeProto, reader: &Reader) -> Found {
    if node.is("Concat") {
        return concat(node, reader);
    }
    let input = slot(node, 0)?;
    let operand = reader.operand(input)?;
    let shape = reader.shape(input)?;
    let output = reader.shape(slot_out(node)?)?;
    let rank = shape.len();
    let operation = match node.op_type.as_deref().unwrap_or_default() {
        "MaxPool" | "AveragePool" => pooling(node, &shape, &output)?,
        "GlobalAveragePool" if rank >= 3 => Operation::Mean { axes: 2..rank },
        "ReduceMean" => mean(node, reader, rank)?,
        "Resize" | "Upsample" => resize(node, reader, &shape, &output)?,
        "Pad" => pad(node, reader, &operand, &shape)?,
        "Slice" => slice(node, reader, &shape)?,
        "Transpose" => transpose(node, rank)?,
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Identity" => Operation::Reshape,
        "DepthToSpace" | "SpaceToDepth" => blocks(node, &shape)?,
        "Softmax" => softmax(node, reader, rank)?,
        "LayerNormalization" => normalization(node, reader, &shape)?,
        other => return Err(format!("{other} has no integer form here")),
    };
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    let kept = match &operation {
        Operation::Reshape => count(&shape) == count(&output),
        Operation::Softmax { .. } | Operation::Normalize { .. } => shape == output,
        Operation::Transpose(order) => order.iter().map(|&a| shape[a]).eq(output.iter().copied()),
        Operation::Mean { axes } => {
            let outside: usize = shape[..axes.start]
                .iter()
                .chain(&shape[axes.end..])
                .product();
            outside == count(&output)
        }
        Operation::Select { positions, .. } => {
            positions.iter().map(Vec::len).eq(output.iter().copied())
        }
        Operation::Blocks { .. } => output.len() == 4 && count(&shape) == count(&output),
        _ => true,
    };
    if !kept {
        return Err(format!(
            "its result {output:?} doesn't follow from its input {shape:?}"
        ));
    }
    Ok((operation, vec![operand]))
}

fn concat(node: &NodeProto, reader: &Reader) -> Found {
    let output = reader.shape(slot_out(node)?)?;
    let axis = axis(node.int("axis").ok_or("it names no axis")?, output.len())?;
    let mut operands = Vec::new();
    let mut joined = 0;
    for name in node.input.iter().filter(|name| !name.is_empty()) {
        let shape = reader.shape(name)?;
        let fits = shape.len() == output.len()
            && (0..shape.len()).all(|a| a == axis || shape[a] == output[a]);
        if !fits {
            return Err(format!("its input {name} {shape:?} doesn't fit {output:?}"));
        }
        joined += shape[axis];
        operands.push(reader.operand(name)?);
    }
    if operands.is_empty() || joined != output[axis] {
        return Err(format!("its parts don't make {output:?}"));
    }
    Ok((Operation::Concat { axis }, operands))
}

fn pooling(node: &NodeProto, shape: &[usize], output: &[usize]) -> Result<Operation, Reason> {
    let window = windows::of_pooling(node, shape, output)?;
    let up = node.int("ceil_mode").unwrap_or(0) != 0;
    let channels = shape.get(1).copied().unwrap_or(0);
    if !windows::makes(&window, shape, channels, output, false, up) {
        return Err(format!("its window doesn't make {output:?} of {shape:?}"));
    }
    if node.is("AveragePool") {
        return Ok(Operation::AveragePool {
            window,
            counts_padding: node.int("count_include_pad").unwrap_or(0) != 0,
        });
    }
    if node.output.get(1).is_some_and(|name| !name.is_empty()) {
        return Err("its second result, the places, is asked for".into());
    }
    Ok(Operation::MaxPool(window))
}

fn mean(node: &NodeProto, reader: &Reader, rank: usize) -> Result<Operation, Reason> {
    let mut axes: Vec<usize> = match reader.list(node, "axes", 1) {
        Some(list) if !list.is_empty() => list
            .iter()
            .map(|&a| axis(a, rank))
            .collect::<Result<_, _>>()?,
        _ if node.input_at(1).is_some() => return Err("its axes are no constant".into()),
        _ if node.int("noop_with_empty_axes").unwrap_or(0) != 0 => {
            return Err("it does nothing".into());
        }
        _ => (0..rank).collect(),
    };
    axes.sort_unstable();
    axes.dedup();
    let (Some(&first), Some(&last)) = (axes.first(), axes.last()) else {
        return Err("it has no axes".into());
    };
    if last - first + 1 != axes.len() {
        return Err(format!(
            "it averages over axes that are no neighbours, {axes:?}"
        ));
    }
    Ok(Operation::Mean {
        axes: first..last + 1,
    })
}

fn resize(
    node: &NodeProto,
    reader: &Reader,
    shape: &[usize],
    output: &[usize],
) -> Result<Operation, Reason> {
    if shape.len() != output.len() || node.int("antialias").unwrap_or(0) != 0 {
        return Err("it smooths, or resizes some axes only".into());
    }
    if node.ints("axes").is_some() {
        return Err("it names the axes it resizes".into());
    }
    let coordinates = match node
        .text("coordinate_transformation_mode")
        .unwrap_or("half_pixel")
    {
        "half_pixel" => Coordinates::HalfPixel,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        other => return Err(format!("its coordinates {other} have no integer form here")),
    };
    // The scales as given, or those that the sizes make.
    let given = node
        .input_at(2)
        .and_then(|name| reader.reals(name))
        .map(|(_, scales)| scales)
        .filter(|scales| scales.len() == shape.len());
    if given.is_some() && node.text("keep_aspect_ratio_policy").unwrap_or("stretch") != "stretch" {
        return Err("it keeps the aspect ratio".into());
    }
    let scale = |axis: usize| match &given {
        Some(scales) => f64::from(scales[axis]),
        None => output[axis] as f64 / shape[axis].max(1) as f64,
    };
    if (0..shape.len()).any(|a| shape[a] == 0 || !(scale(a).is_normal() && scale(a) > 0.0)) {
        return Err("it has scales that are no positive numbers".into());
    }
    let sizes = |axis: usize| [shape[axis], output[axis]];
    match node.text("mode").unwrap_or("nearest") {
        "nearest" => {
            let rounding = match node.text("nearest_mode").unwrap_or("round_prefer_floor") {
                "round_prefer_floor" => Nearest::RoundPreferFloor,
                "round_prefer_ceil" => Nearest::RoundPreferCeil,
                "floor" => Nearest::Floor,
                "ceil" => Nearest::Ceil,
                other => return Err(format!("its rounding {other} is not known here")),
            };
            bounded(output)?;
            let positions = |axis| {
                let found = nearest_pixels(coordinates, rounding, sizes(axis), scale(axis));
                found.into_iter().map(Some).collect()
            };
            Ok(Operation::Select {
                positions: (0..shape.len()).map(positions).collect(),
                fill: 0,
            })
        }
        "linear" if shape.len() == 4 && shape[..2] == output[..2] => {
            bounded(output)?;
            let pixels = |axis| linear_pixels(coordinates, sizes(axis), scale(axis));
            Ok(Operation::Resize {
                rows: pixels(2),
                columns: pixels(3),
            })
        }
        "linear" if shape.len() == 3 && shape[..2] == output[..2] => {
            bounded(output)?;
            Ok(Operation::Resize {
                rows: vec![Between {
                    first: 0,
                    second: 0,
                    share: 0.0,
                }],
                columns: linear_pixels(coordinates, sizes(2), scale(2)),
            })
        }
        other => Err(format!("its mode {other} has no integer form here")),
    }
}

fn pad(
    node: &NodeProto,
    reader: &Reader,
    operand: &Operand,
    shape: &[usize],
) -> Result<Operation, Reason> {
    let pads = reader
        .list(node, "pads", 1)
        .ok_or("its amounts are no constant")?;
    if node.input_at(3).is_some() {
        return Err("it names the axes it pads".into());
    }
    let rank = shape.len();
    if pads.len() != 2 * rank {
        return Err(format!("its amounts are {pads:?} for {rank} axes"));
    }
    let padding = match node.text("mode").unwrap_or("constant") {
        "constant" => Padding::Constant,
        "edge" => Padding::Edge,
        "reflect" => Padding::Reflect,
        "wrap" => Padding::Wrap,
        other => return Err(format!("its mode {other} is not known here")),
    };
    let quantization = operand.quantization().ok_or("its input is float")?;
    let fill = match node.input_at(2) {
        None => quantization.zero_point,
        Some(name) => {
            let value = reader.number(name).ok_or("its filling is no constant")?;
            let integer = quantization.integer(value);
            // The filling is quantized with the result; in between it has no integer of the input's.
            if (quantization.real(integer) - value).abs() > quantization.scale * 1e-3 {
                return Err(format!(
                    "its filling {value} is no integer of the input's scale"
                ));
            }
            integer
        }
    };
    let mut positions = Vec::with_capacity(rank);
    let mut output = Vec::with_capacity(rank);
    for axis in 0..rank {
        let (before, behind) = (pads[axis], pads[axis + rank]);
        let amounts = [before, behind].map(|v| usize::try_from(v.max(0)).unwrap_or(usize::MAX));
        let total = amounts[0]
            .saturating_add(amounts[1])
            .saturating_add(shape[axis]);
        output.push(total);
        bounded(&output)?;
        let mut along = padded(shape[axis], amounts[0], amounts[1], padding)
            .map_err(|error| error.to_string())?;
        // A negative amount cuts off.
        let cut = |v: i64| usize::try_from(-v.min(0)).unwrap_or(usize::MAX);
        along.drain(..cut(before).min(along.len()));
        along.truncate(along.len().saturating_sub(cut(behind)));
        positions.push(along);
    }
    Ok(Operation::Select { positions, fill })
}

fn slice(node: &NodeProto, reader: &Reader, shape: &[usize]) -> Result<Operation, Reason> {
    let list = |key: &str, slot: usize| {
        let given = reader.list(node, key, slot);
        if given.is_none() && node.input_at(slot).is_some() {
            return Err(format!("its {key} are no constant"));
        }
        Ok(given)
    };
    let starts = list("starts", 1)?.ok_or("it has no starts")?;
    let ends = list("ends", 2)?.ok_or("it has no ends")?;
    let axes = list("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = list("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err("its starts, ends, axes and steps differ in number".into());
    }
    bounded(shape)?;
    let mut positions = whole(shape);
    for at in 0..starts.len() {
        let axis = axis(axes[at], shape.len())?;
        let (size, step) = (shape[axis] as i64, steps[at]);
        if step == 0 {
            return Err("a step of it is 0".into());
        }
        let place = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
        let (start, end) = (place(starts[at]), place(ends[at]));
        let (start, end) = match step > 0 {
            true => (start.clamp(0, size), end.clamp(0, size)),
            false => (start.clamp(0, size - 1), end.clamp(-1, size - 1)),
        };
        let room = if step > 0 { end - start } else { start - end };
        let count = if room <= 0 {
            0
        } else {
            (room - 1) / step.abs() + 1
        };
        let start = usize::try_from(start).unwrap_or(0);
        let step = isize::try_from(step).map_err(|_| "a step of it is too large")?;
        positions[axis] = stepped(start, step, usize::try_from(count).unwrap_or(0));
    }
    Ok(Operation::Select { positions, fill: 0 })
}

/// One part of a Split, which begins at `start`.
pub(super) fn part(
    node: &NodeProto,
    reader: &Reader,
    name: &str,
    start: usize,
) -> Result<(Operation, usize), Reason> {
    let shape = reader.shape(slot(node, 0)?)?;
    let output = reader.shape(name)?;
    let axis = axis(node.int("axis").unwrap_or(0), shape.len())?;
    let fits = output.len() == shape.len()
        && (0..shape.len()).all(|a| a == axis || shape[a] == output[a])
        && start + output[axis] <= shape[axis];
    if !fits {
        return Err(format!("its part {name} {output:?} is none of {shape:?}"));
    }
    bounded(&shape)?;
    let mut positions = whole(&shape);
    positions[axis] = stepped(start, 1, output[axis]);
    let end = start + output[axis];
    Ok((Operation::Select { positions, fill: 0 }, end))
}

fn whole(shape: &[usize]) -> Vec<Vec<Option<usize>>> {
    shape.iter().map(|&size| stepped(0, 1, size)).collect()
}

fn bounded(shape: &[usize]) -> Result<(), Reason> {
    match shape.iter().all(|&size| size <= LARGEST) {
        true => Ok(()),
        false => Err(format!("an axis of {shape:?} is too long")),
    }
}

fn transpose(node: &NodeProto, rank: usize) -> Result<Operation, Reason> {
    let Some(given) = node.ints("perm") else {
        return Ok(Operation::Transpose((0..rank).rev().collect()));
    };
    let order = given
        .iter()
        .map(|&a| axis(a, rank))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) {
        return Err(format!("its order {given:?} is none of {rank} axes"));
    }
    Ok(Operation::Transpose(order))
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
        return Err(format!("blocks of {block} don't fit {shape:?}"));
    }
    let order = match node.text("mode").unwrap_or("DCR") {
        "CRD" => BlockOrder::ChannelFirst,
        _ => BlockOrder::BlockFirst,
    };
    Ok(Operation::Blocks {
        block,
        to_space: to_space.then_some(order),
    })
}

fn softmax(node: &NodeProto, reader: &Reader, rank: usize) -> Result<Operation, Reason> {
    let newer = reader.opset >= 13;
    let axis = axis(node.int("axis").unwrap_or(if newer { -1 } else { 1 }), rank)?;
    if !newer && axis + 1 != rank {
        return Err("it is of an operator set in which it runs over several axes".into());
    }
    Ok(Operation::Softmax { axis })
}

fn normalization(node: &NodeProto, reader: &Reader, shape: &[usize]) -> Result<Operation, Reason> {
    let axis = axis(node.int("axis").unwrap_or(-1), shape.len())?;
    if node.output.iter().skip(1).any(|name| !name.is_empty()) {
        return Err("its mean or deviation is asked for".into());
    }
    let length: usize = shape[axis..].iter().product();
    let numbers = |at: usize, what: &str| -> Result<Vec<f32>, Reason> {
        let name = slot(node, at)?;
        let (_, values) = reader
            .reals(name)
            .ok_or_else(|| format!("its {what} is no constant"))?;
        if values.len() != length {
            return Err(format!(
                "its {what} has {} values for {length}",
                values.len()
            ));
        }
        Ok(values)
    };
    Ok(Operation::Normalize {
        axis,
        epsilon: node.float("epsilon").unwrap_or(1e-5),
        scale: numbers(1, "scale")?,
        shift: match node.input_at(2) {
            Some(_) => numbers(2, "shift")?,
            None => Vec::new(),
        },
    })
}

/// An axis counted from the front.
fn axis(axis: i64, rank: usize) -> Result<usize, Reason> {
    let counted = if axis < 0 {
        axis.saturating_add(rank as i64)
    } else {
        axis
    };
    usize::try_from(counted)
        .ok()
        .filter(|&a| a < rank)
        .ok_or_else(|| format!("its axis {axis} is none of {rank}"))
}
