//! Pad, Slice, Gather and Split as positions selected along each axis.

use octet_kernels::int8::{Padding, padded, stepped};

use super::ir::{Operand, Operation};
use super::reader::{Reader, Reason};
use super::weighted_products::slot;
use octet_graph::prepare::{position, slice_bounds};
use octet_onnx::schema::NodeProto;

/// Maximum size of a selection, which lists every position.
const LARGEST: usize = 1 << 24;

pub(super) fn pad(
    node: &NodeProto,
    reader: &Reader,
    operand: &Operand,
    shape: &[usize],
) -> Result<Operation, Reason> {
    let pads = reader
        .list(node, "pads", 1)
        .ok_or("its pads are not constant")?;
    let rank = shape.len();
    let axes: Vec<usize> = match node.input_at(3) {
        None => (0..rank).collect(),
        Some(_) => {
            let named = reader.list(node, "axes", 3);
            let named = named.ok_or("its axes are not constant")?;
            let places = named.iter().map(|&named| axis(named, rank));
            places.collect::<Result<_, _>>()?
        }
    };
    if pads.len() != 2 * axes.len() {
        return Err(format!("its pads {pads:?} do not fit {} axes", axes.len()));
    }
    let padding = match node.text("mode").unwrap_or("constant") {
        "constant" => Padding::Constant,
        "edge" => Padding::Edge,
        "reflect" => Padding::Reflect,
        "wrap" => Padding::Wrap,
        other => return Err(format!("its mode {other} is not supported")),
    };
    let quantization = operand.quantization().ok_or("its input is float")?;
    let fill = match node.input_at(2) {
        None => quantization.zero_point,
        Some(name) => {
            let value = reader
                .number(name)
                .ok_or("its fill value is not constant")?;
            let integer = quantization.integer(value);
            // The fill value is quantized with the result. Before that, it must be representable in
            // the input's quantization.
            if (quantization.real(integer) - value).abs() > quantization.scale * 1e-3 {
                return Err(format!(
                    "its fill value {value} is not representable in the input's quantization"
                ));
            }
            integer
        }
    };
    let mut positions = Vec::with_capacity(rank);
    let mut output = Vec::with_capacity(rank);
    for (along, &size) in shape.iter().enumerate() {
        let named = axes.iter().position(|&axis| axis == along);
        let amounts = named.map_or([0, 0], |at| [pads[at], pads[at + axes.len()]]);
        let size_of = |amount: i64| usize::try_from(amount.max(0)).unwrap_or(usize::MAX);
        // Negative amounts crop before positive ones pad.
        let [cut, cut_behind] = amounts.map(|amount| size_of(amount.saturating_neg()));
        let kept = size.saturating_sub(cut).saturating_sub(cut_behind);
        let [before, behind] = amounts.map(size_of);
        output.push(before.saturating_add(behind).saturating_add(kept));
        bounded(&output)?;
        let places = padded(kept, before, behind, padding).map_err(|error| error.to_string())?;
        positions.push(places.into_iter().map(|at| at.map(|at| at + cut)).collect());
    }
    Ok(Operation::Select { positions, fill })
}

pub(super) fn slice(
    node: &NodeProto,
    reader: &Reader,
    shape: &[usize],
) -> Result<Operation, Reason> {
    let list = |key: &str, slot: usize| {
        let values = reader.list(node, key, slot);
        if values.is_none() && node.input_at(slot).is_some() {
            return Err(format!("its {key} are not constant"));
        }
        Ok(values)
    };
    let starts = list("starts", 1)?.ok_or("it has no starts")?;
    let ends = list("ends", 2)?.ok_or("it has no ends")?;
    let axes = list("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = list("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err("its starts, ends, axes and steps differ in length".into());
    }
    bounded(shape)?;
    let mut positions = whole(shape);
    for at in 0..starts.len() {
        let axis = axis(axes[at], shape.len())?;
        let step = steps[at];
        if step == 0 {
            return Err("one of its steps is 0".into());
        }
        let (first, count) = slice_bounds(shape[axis] as i64, starts[at], ends[at], step);
        let first = usize::try_from(first).unwrap_or(0);
        let step = isize::try_from(step).map_err(|_| "one of its steps is too large")?;
        positions[axis] = stepped(first, step, count);
    }
    Ok(Operation::Select { positions, fill: 0 })
}

/// A Gather with constant indices of any shape, selected in a row.
pub(super) fn gather(
    node: &NodeProto,
    reader: &Reader,
    shape: &[usize],
    output: &[usize],
) -> Result<Operation, Reason> {
    let axis = axis(node.int("axis").unwrap_or(0), shape.len())?;
    let name = slot(node, 1)?;
    let places = reader
        .constant(name)
        .ok_or_else(|| format!("its indices {name} are not constant"))?;
    let text = |error: octet_onnx::tensor::TensorError| error.to_string();
    let result = [
        &shape[..axis],
        &places.shape().map_err(text)?,
        &shape[axis + 1..],
    ]
    .concat();
    if result != output {
        return Err(format!(
            "its output has the shape {result:?}, but the model declares {output:?}"
        ));
    }
    bounded(shape)?;
    let size = shape[axis];
    let place = |at: i64| {
        position(at, size).ok_or_else(|| format!("its index {at} is out of range for size {size}"))
    };
    let mut positions = whole(shape);
    let picked = places.to_i64().map_err(text)?.into_iter().map(place);
    positions[axis] = picked
        .map(|place| place.map(Some))
        .collect::<Result<_, _>>()?;
    bounded(&[positions[axis].len()])?;
    Ok(Operation::Select { positions, fill: 0 })
}

/// One output of a Split, which begins at `start`.
pub(super) fn split_output(
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
        return Err(format!(
            "its output {name} of shape {output:?} does not fit the input shape {shape:?}"
        ));
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

pub(super) fn bounded(shape: &[usize]) -> Result<(), Reason> {
    match shape.iter().all(|&size| size <= LARGEST) {
        true => Ok(()),
        false => Err(format!("an axis of {shape:?} is too long")),
    }
}

/// Converts an axis to its index from the front.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, Reason> {
    position(axis, rank).ok_or_else(|| format!("its axis {axis} is out of range for rank {rank}"))
}
