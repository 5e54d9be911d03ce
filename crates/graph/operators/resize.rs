//! Resize, and Upsample before it.

use super::Property::{CarriesIntegers, ResizesImages};
use super::float16::POSITIONS;
use super::node_context::{MAX_SIZE, NodeContext, Validation, ensure};
use super::opset_context::{Adapted, OpsetContext};
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::inferred_value::InferredValue;
use crate::{Attribute, Dim, Node};
use octet_onnx::schema::TensorProto;

pub(super) static OPERATORS: &[Operator] = &[
    // Scales and sizes.
    Operator::onnx("Resize")
        .with(&[CarriesIntegers, ResizesImages])
        .changed(&[(11, asymmetric)])
        .checks(scales_and_sizes)
        .infers(resized)
        .quantized(Treatment::Share)
        .shape_from(&[2, 3])
        .integers_since(10)
        .float16(POSITIONS)
        .channels(ChannelRole::Commutes),
    Operator::onnx("Upsample")
        .with(&[ResizesImages])
        .changed(&[(13, upsample_as_resize)])
        .checks(scales_and_sizes)
        .infers(resized)
        .shape_from(&[1])
        .float16(POSITIONS),
];

fn resized(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let shape = input.shape.as_ref()?;
    let unknown = Some(InferredValue::new(
        input.element,
        Some(vec![Dim::Unknown; shape.len()]),
    ));
    if ctx.node.attribute("axes").is_some()
        || ctx
            .node
            .text("keep_aspect_ratio_policy")
            .is_some_and(|p| p != "stretch")
        || ctx.node.text("coordinate_transformation_mode") == Some("tf_crop_and_resize")
    {
        return unknown;
    }
    if let Some(dims) = ctx.shape_from_input(3).filter(|d| d.len() == shape.len()) {
        return Some(InferredValue::new(input.element, Some(dims)));
    }
    let slot = if ctx.node.input.len() <= 2 { 1 } else { 2 };
    let scales = match ctx.node.attribute("scales") {
        Some(attribute) => Some(attribute.as_floats().to_vec()),
        None => ctx.input(slot).and_then(|k| k.floats.clone()),
    };
    let Some(scales) = scales.filter(|s| s.len() == shape.len()) else {
        return unknown;
    };
    let size = |(dim, &scale): (&Dim, &f32)| match dim {
        Dim::Known(size) => Dim::Known((*size as f32 * scale).floor() as usize),
        dim if scale == 1.0 => dim.clone(),
        _ => Dim::Unknown,
    };
    Some(InferredValue::new(
        input.element,
        Some(shape.iter().zip(&scales).map(size).collect()),
    ))
}

fn scales_and_sizes(ctx: &NodeContext) -> Validation {
    // ONNX Runtime accepts an empty input only for an empty output; tract divides by its size.
    let shape = ctx.shape(0).unwrap_or_default();
    let empty = shape.iter().skip(2).any(|size| *size == Dim::Known(0));
    let expected = "without empty spatial axes";
    ensure(!empty, "the shape of its input", shape, expected)?;
    let slot = if ctx.node.input.len() <= 2 { 1 } else { 2 };
    let scales = match ctx.node.attribute("scales") {
        Some(attribute) => Some(attribute.as_floats().to_vec()),
        None => ctx.input(slot).and_then(|known| known.floats.clone()),
    };
    let scales = scales.unwrap_or_default();
    let none = ctx.input(slot).and_then(InferredValue::sizes) == Some(vec![0]);
    let given = !none || slot == 1 || ctx.node.input_at(3).is_some();
    ensure(given, "scales", &scales, "given, unless there are sizes")?;
    let sound = |scale: &f32| scale.is_finite() && *scale > 0.0 && *scale < MAX_SIZE as f32;
    let expected = "positive numbers of at most 31 bits";
    ensure(scales.iter().all(sound), "scales", &scales, expected)?;
    let sizes = ctx.input(3).and_then(|sizes| sizes.all_integers());
    let sizes = sizes.unwrap_or_default();
    let sound = |size: &i64| (1..MAX_SIZE).contains(size);
    ensure(sizes.iter().all(sound), "sizes", &sizes, expected)?;
    // A node has scales or sizes, never both.
    if let (false, Some(shape)) = (sizes.is_empty(), ctx.shape(0)) {
        let count = ctx.node.ints("axes").map_or(shape.len(), <[i64]>::len);
        let expected = format!("{count} numbers");
        ensure(sizes.len() == count, "sizes", &sizes, expected)?;
    }
    Ok(())
}

/// Changes Upsample to Resize.
fn upsample_as_resize(to: &mut OpsetContext, mut node: Node) -> Adapted {
    node.op_type = "Resize".to_owned();
    let scales = if to.from >= 9 {
        node.input_at(1).ok_or("it has no scales")?.to_owned()
    } else {
        let scales = match node.take("scales") {
            Some(attribute) => attribute.as_floats().to_vec(),
            None => {
                let mut scale = |key: &str| node.take(key).and_then(|a| a.as_float());
                let (height, width) = (scale("height_scale"), scale("width_scale"));
                vec![
                    1.0,
                    1.0,
                    height.ok_or("it has no scales")?,
                    width.ok_or("it has no scales")?,
                ]
            }
        };
        to.constant(
            &node,
            "scales",
            TensorProto::from_f32("", &[scales.len()], &scales),
        )
    };
    write_asymmetric(to, node, scales, "floor")
}

/// Changes Resize of opset 10 to that of opset 11.
fn asymmetric(to: &mut OpsetContext, node: Node) -> Adapted {
    let scales = node.input_at(1).ok_or("it has no scales")?.to_owned();
    let nearest = node.text("mode").unwrap_or("nearest") == "nearest";
    let rounding = match to.types.get(&scales).and_then(|t| t.floats.as_deref()) {
        Some(values) if values.iter().all(|&s| s >= 1.0) => "floor",
        Some(values) if values.iter().all(|&s| s <= 1.0) => "ceil",
        _ if !nearest => "floor",
        Some(_) => return Err("it enlarges one axis and shrinks another".to_owned()),
        None => return Err("its scales are not constant".to_owned()),
    };
    write_asymmetric(to, node, scales, rounding)
}

/// Writes a Resize with the meaning that Upsample and Resize of opset 10 had. Both map output
/// position x to x / scale of the input ("asymmetric"). For `nearest` they take the element below it
/// when enlarging and the one above it when shrinking.
fn write_asymmetric(
    to: &mut OpsetContext,
    mut node: Node,
    scales: String,
    rounding: &str,
) -> Adapted {
    let mode = match node.text("mode").unwrap_or("nearest") {
        "bilinear" | "trilinear" => "linear".to_owned(),
        mode => mode.to_owned(),
    };
    let nearest = mode == "nearest";
    node.set(Attribute::text("mode", &mode));
    node.set(Attribute::text(
        "coordinate_transformation_mode",
        "asymmetric",
    ));
    if nearest {
        node.set(Attribute::text("nearest_mode", rounding));
    }
    node.input.truncate(1);
    node.set_input(2, scales);
    to.write(node);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::{Floats, Integers, Nothing};
    use super::super::test_models::{PICTURE, checked, model, node, refused, taken};

    #[test]
    fn scales_and_sizes_are_positive() {
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e30, 1e9] {
            let scales = [1.0, 1.0, scale, 1.0];
            refused(node("Resize"), PICTURE, &[Nothing, Floats(&[4], &scales)]);
        }
        for size in [0, -3, 1 << 50] {
            let sizes = [1, 4, size, 6];
            refused(
                node("Resize"),
                PICTURE,
                &[Nothing, Nothing, Integers(&sizes)],
            );
        }
        refused(
            node("Resize"),
            PICTURE,
            &[Nothing, Nothing, Integers(&[4, 4])],
        );
        taken(
            node("Resize"),
            PICTURE,
            &[Nothing, Floats(&[4], &[1.0, 1.0, 2.0, 0.5])],
        );
        taken(
            node("Resize"),
            PICTURE,
            &[Nothing, Nothing, Integers(&[1, 4, 9, 3])],
        );
    }

    #[test]
    fn a_few_pixels_are_not_enlarged_without_limit() {
        let sizes = |width| [Nothing, Nothing, Integers(width)];
        let fed = &[1, 4, 6, 2];
        taken(node("Resize"), fed, &sizes(&[1, 4, 4096, 4096]));
        let error = refused(node("Resize"), fed, &sizes(&[1, 4, 147, 5_701_635]));
        assert!(
            error.contains("must be of at most 805306368 elements"),
            "{error}"
        );
    }

    #[test]
    fn an_empty_input_is_rejected() {
        // A declared size of 0 means any size; an actual size of 0 is invalid.
        let sizes = [Nothing, Nothing, Integers(&[1, 4, 6, 6])];
        let resize = model(node("Resize"), &[1, 4, 0, 6], &sizes);
        assert!(checked(&resize, None).is_ok());
        let error = checked(&resize, Some(&[1, 4, 0, 6])).unwrap_err();
        assert!(error.contains("the shape of its input"), "{error}");
    }
}
