//! Resize: which pixels each pixel comes from.

use octet_kernels::int8::{Between, Coordinates, Nearest, linear_pixels, nearest_pixels};

use super::network::Operation;
use super::reader::{Reader, Reason};
use super::select::{axis, bounded};
use crate::onnx::schema::NodeProto;

pub(super) fn resize(
    node: &NodeProto,
    reader: &Reader,
    shape: &[usize],
    output: &[usize],
) -> Result<Operation, Reason> {
    if shape.len() != output.len() || node.int("antialias").unwrap_or(0) != 0 {
        return Err("it smooths, or changes the number of axes".into());
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
    let scales = scales(node, reader, shape, output)?;
    if (0..shape.len()).any(|a| shape[a] == 0 || !(scales[a].is_normal() && scales[a] > 0.0)) {
        return Err("it has scales that are no positive numbers".into());
    }
    bounded(output)?;
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
            let positions = |axis: usize| {
                let found = nearest_pixels(coordinates, rounding, sizes(axis), scales[axis]);
                found.into_iter().map(Some).collect()
            };
            Ok(Operation::Select {
                positions: (0..shape.len()).map(positions).collect(),
                fill: 0,
            })
        }
        "linear" if shape.len() == 4 && shape[..2] == output[..2] => {
            let pixels = |axis| linear_pixels(coordinates, sizes(axis), scales[axis]);
            Ok(Operation::Resize {
                rows: pixels(2),
                columns: pixels(3),
            })
        }
        "linear" if shape.len() == 3 && shape[..2] == output[..2] => Ok(Operation::Resize {
            rows: vec![Between {
                first: 0,
                second: 0,
                share: 0.0,
            }],
            columns: linear_pixels(coordinates, sizes(2), scales[2]),
        }),
        other => Err(format!("its mode {other} has no integer form here")),
    }
}

/// How many pixels of each axis come of one: the scales as given, or those that the sizes make.
fn scales(
    node: &NodeProto,
    reader: &Reader,
    shape: &[usize],
    output: &[usize],
) -> Result<Vec<f32>, Reason> {
    // What keeps its size is copied by ONNX Runtime, whatever the scales: 1.1 of two pixels are two.
    if shape == output {
        return Ok(vec![1.0; shape.len()]);
    }
    let axes = match node.ints("axes") {
        Some(named) => named
            .iter()
            .map(|&named| axis(named, shape.len()))
            .collect::<Result<Vec<_>, _>>()?,
        None => (0..shape.len()).collect(),
    };
    let mut scales = vec![1.0; shape.len()];
    let given = match node.input_at(2) {
        Some(name) => reader.reals(name).ok_or("its scales are no constant")?.1,
        None => Vec::new(),
    };
    if !given.is_empty() {
        if given.len() != axes.len() {
            return Err(format!("it has {} scales for {axes:?}", given.len()));
        }
        for (&axis, scale) in axes.iter().zip(given) {
            scales[axis] = scale;
        }
        return Ok(scales);
    }
    let ratio = |size: usize, axis: usize| size as f32 / shape[axis] as f32;
    // Where the aspect ratio is kept, one of the sizes makes the scale of all, and what comes out has other sizes.
    let one: Option<fn(f32, f32) -> f32> = match node.text("keep_aspect_ratio_policy") {
        None | Some("stretch") => None,
        Some("not_larger") => Some(f32::min),
        Some("not_smaller") => Some(f32::max),
        Some(other) => return Err(format!("its policy {other} is not known here")),
    };
    let Some(one) = one else {
        for axis in axes {
            scales[axis] = ratio(output[axis], axis);
        }
        return Ok(scales);
    };
    let sizes = reader.list(node, "sizes", 3);
    let sizes = sizes.filter(|sizes| sizes.len() == axes.len());
    let sizes = sizes.ok_or("it keeps the aspect ratio, and its sizes are no constant")?;
    let ratios = sizes.iter().zip(&axes);
    let ratios = ratios.map(|(&size, &axis)| ratio(usize::try_from(size).unwrap_or(0), axis));
    let scale = ratios.reduce(one).ok_or("it has no sizes")?;
    for axis in axes {
        scales[axis] = scale;
    }
    Ok(scales)
}
