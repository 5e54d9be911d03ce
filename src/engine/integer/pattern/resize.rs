//! Resize: which pixels each pixel comes from.

use octet_kernels::int8::{Between, Coordinates, Nearest, linear_pixels, nearest_pixels};

use super::network::Operation;
use super::reader::{Reader, Reason};
use super::select::bounded;
use crate::onnx::schema::NodeProto;

pub(super) fn resize(
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
