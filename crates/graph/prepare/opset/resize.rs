//! Rewrites Upsample, and Resize of opset 10, as today's Resize.
//!
//! Both map output position x to x / scale of the input ("asymmetric"). For `nearest` they take the
//! element below it when enlarging and the one above it when shrinking.

use super::{Adapted, Adapter, set_input};
use octet_onnx::schema::{AttributeProto, NodeProto, TensorProto};

pub(super) fn upsample(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    node.op_type = Some("Resize".to_owned());
    let scales = if to.from >= 9 {
        node.input_at(1).ok_or("it has no scales")?.to_owned()
    } else {
        let scales = match node.take("scales") {
            Some(attribute) => attribute.floats,
            None => {
                let mut scale = |key: &str| node.take(key).and_then(|a| a.f);
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
    write(to, node, scales, "floor")
}

pub(super) fn resize(to: &mut Adapter, node: NodeProto) -> Adapted {
    let scales = node.input_at(1).ok_or("it has no scales")?.to_owned();
    let nearest = node.text("mode").unwrap_or("nearest") == "nearest";
    let rounding = match to.types.get(&scales).and_then(|t| t.floats.as_deref()) {
        Some(values) if values.iter().all(|&s| s >= 1.0) => "floor",
        Some(values) if values.iter().all(|&s| s <= 1.0) => "ceil",
        _ if !nearest => "floor",
        Some(_) => return Err("it enlarges one axis and shrinks another".to_owned()),
        None => return Err("its scales are not constant".to_owned()),
    };
    write(to, node, scales, rounding)
}

fn write(to: &mut Adapter, mut node: NodeProto, scales: String, rounding: &str) -> Adapted {
    let mode = match node.text("mode").unwrap_or("nearest") {
        "bilinear" | "trilinear" => "linear".to_owned(),
        mode => mode.to_owned(),
    };
    let nearest = mode == "nearest";
    node.set(AttributeProto::text("mode", &mode));
    node.set(AttributeProto::text(
        "coordinate_transformation_mode",
        "asymmetric",
    ));
    if nearest {
        node.set(AttributeProto::text("nearest_mode", rounding));
    }
    node.input.truncate(1);
    set_input(&mut node, 2, scales);
    to.write(node);
    Ok(())
}
