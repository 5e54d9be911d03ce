//! Resize: the source pixels of each output pixel.

use octet_kernels::int8::{Between, linear_pixels};

use super::ir::Operation;
use super::reader::{Reader, Reason};
use super::select::bounded;
use crate::{ResizeSampling, ResizeTarget};
use octet_onnx::schema::NodeProto;

pub(super) fn resize(
    node: &NodeProto,
    reader: &Reader,
    shape: &[usize],
    output: &[usize],
) -> Result<Operation, Reason> {
    if shape.len() != output.len() || node.int("antialias").unwrap_or(0) != 0 {
        return Err("it uses antialiasing or changes the number of axes".into());
    }
    let sampling = ResizeSampling::parse(
        node.text("coordinate_transformation_mode"),
        node.text("nearest_mode"),
    )?;
    let target = ResizeTarget {
        axes: node.ints("axes").map(<[i64]>::to_vec),
        scales: match node.input_at(2) {
            Some(name) => reader.reals(name).ok_or("its scales are not constant")?.1,
            None => Vec::new(),
        },
        sizes: reader.list(node, "sizes", 3),
        policy: node.text("keep_aspect_ratio_policy").map(str::to_owned),
    };
    let scales = target.scales(shape, output)?;
    bounded(output)?;
    let sizes = |axis: usize| [shape[axis], output[axis]];
    match node.text("mode").unwrap_or("nearest") {
        "nearest" => Ok(Operation::Select {
            positions: sampling.nearest(shape, output, &scales),
            fill: 0,
        }),
        "linear" if shape.len() == 4 && shape[..2] == output[..2] => {
            let along = |axis| linear_pixels(sampling.coordinates, sizes(axis), scales[axis]);
            Ok(Operation::Resize {
                rows: along(2),
                columns: along(3),
            })
        }
        "linear" if shape.len() == 3 && shape[..2] == output[..2] => Ok(Operation::Resize {
            rows: vec![Between {
                first: 0,
                second: 0,
                share: 0.0,
            }],
            columns: linear_pixels(sampling.coordinates, sizes(2), scales[2]),
        }),
        other => Err(format!("its mode {other} has no integer implementation")),
    }
}
