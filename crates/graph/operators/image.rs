//! Image operators whose output sizes come from inputs or attributes: regions, grids, Col2Im,
//! crops.

use super::Operator;
use super::float16::POSITIONS;
use super::shape_context::ShapeContext;
use crate::inferred_value::{InferredValue, count, positions, sizes};
use crate::{Attribute, Dim};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("AffineGrid")
        .infers(|ctx| image(ctx, grid))
        .shape_from(&[1])
        .float16(POSITIONS),
    Operator::onnx("CenterCropPad")
        .infers(|ctx| image(ctx, crop))
        .shape_from(&[1]),
    Operator::onnx("Col2Im")
        .infers(|ctx| image(ctx, blocks))
        .shape_from(&[1, 2]),
    Operator::onnx("GridSample")
        .changed(&[(20, |to, mut node| {
            match node.text("mode") {
                Some("bilinear") => node.set(Attribute::text("mode", "linear")),
                Some("bicubic") => node.set(Attribute::text("mode", "cubic")),
                _ => {}
            }
            to.write(node);
            Ok(())
        })])
        .float16(POSITIONS),
    Operator::onnx("ImageDecoder"),
    Operator::onnx("MaxRoiPool").infers(|ctx| image(ctx, pooled)),
    Operator::onnx("RoiAlign")
        .changed(&[(16, |to, mut node| {
            // Since opset 16 the default places the centers of pixels at one half.
            node.set(Attribute::text(
                "coordinate_transformation_mode",
                "output_half_pixel",
            ));
            to.write(node);
            Ok(())
        })])
        .checks(|ctx| {
            ctx.positive("output_height", Some(1))?;
            ctx.positive("output_width", Some(1)).map(|_| ())
        })
        .infers(|ctx| image(ctx, aligned))
        .float16(POSITIONS),
];

/// An output with the element type of the input.
fn image(
    ctx: &ShapeContext,
    shape: fn(&ShapeContext) -> Option<Vec<Dim>>,
) -> Option<InferredValue> {
    Some(InferredValue::new(ctx.input(0)?.element, shape(ctx)))
}

/// One image of this size for each region.
fn regions(ctx: &ShapeContext, [height, width]: [i64; 2]) -> Option<Vec<Dim>> {
    let own = ctx.input(0)?.shape.as_deref();
    let [height, width] = [height, width].map(|size| Dim::Known(size.max(0) as usize));
    let regions = ctx.input(1)?.shape.as_ref()?.first()?.clone();
    Some(vec![regions, own?.get(1)?.clone(), height, width])
}

fn aligned(ctx: &ShapeContext) -> Option<Vec<Dim>> {
    let size = |key: &str| ctx.node.int(key).unwrap_or(1);
    regions(ctx, ["output_height", "output_width"].map(size))
}

fn pooled(ctx: &ShapeContext) -> Option<Vec<Dim>> {
    match ctx.node.ints("pooled_shape") {
        Some(&[height, width]) => regions(ctx, [height, width]),
        _ => None,
    }
}

fn grid(ctx: &ShapeContext) -> Option<Vec<Dim>> {
    // The channel axis is dropped, and an axis of coordinates is appended.
    let mut target = ctx
        .shape_from_input(1)
        .filter(|target| matches!(target.len(), 4 | 5))?;
    target.remove(1);
    let axes = target.len() - 1;
    target.push(Dim::Known(axes));
    Some(target)
}

fn blocks(ctx: &ShapeContext) -> Option<Vec<Dim>> {
    let own = ctx.input(0)?.shape.as_deref();
    let (picture, block) = (ctx.shape_from_input(1)?, sizes(&ctx.shape_from_input(2)?));
    let channels = match (&own?.get(1)?, block) {
        (Dim::Known(rows), Some(block)) if count(&block) > 0 => Dim::Known(rows / count(&block)),
        _ => Dim::Unknown,
    };
    Some([&[own?[0].clone(), channels], &*picture].concat())
}

fn crop(ctx: &ShapeContext) -> Option<Vec<Dim>> {
    let mut dims = ctx.input(0)?.shape.as_deref()?.to_vec();
    let axes = match ctx.node.ints("axes") {
        Some(axes) => positions(axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    let target = ctx
        .shape_from_input(1)
        .filter(|target| target.len() == axes.len())?;
    for (axis, size) in axes.into_iter().zip(target) {
        dims[axis] = size;
    }
    Some(dims)
}
