//! Attributes that became inputs, and attributes that were removed.

use super::{Adapted, Adapter, set_input};
use octet_onnx::schema::{AttributeProto, DataType, NodeProto, TensorProto};

/// Before opset 6 the type was a string.
pub(super) fn cast(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    if let Some(name) = node.text("to") {
        let upper = name.to_ascii_uppercase();
        let element = match upper.as_str() {
            "BFLOAT16" => Some(DataType::Bfloat16),
            _ => (1..=15)
                .filter_map(|i| DataType::try_from(i).ok())
                .find(|e| format!("{e:?}").to_ascii_uppercase() == upper),
        };
        let element = element.ok_or_else(|| format!("its type {name} is unknown"))?;
        node.set(AttributeProto::int("to", element as i64));
    }
    to.write(node);
    Ok(())
}

pub(super) fn reshape(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    let shape = node.take("shape").ok_or("it has no shape")?.ints;
    let shape = to.integers(&node, "shape", &shape);
    set_input(&mut node, 1, shape);
    to.write(node);
    Ok(())
}

/// Statistics for each position have no equivalent; outputs for training are dropped.
pub(super) fn batch_norm(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    if node.take("spatial").and_then(|a| a.i) == Some(0) {
        return Err("ONNX removed statistics for each position (spatial = 0)".to_owned());
    }
    node.take("is_test");
    // A reader of one of the further outputs fails by its name.
    node.output.truncate(1);
    to.write(node);
    Ok(())
}

/// Outside training, the ratio has no effect.
pub(super) fn dropout(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    node.take("is_test");
    if let Some(ratio) = node.take("ratio").and_then(|a| a.f) {
        let ratio = to.constant(&node, "ratio", TensorProto::from_f32("", &[], &[ratio]));
        set_input(&mut node, 1, ratio);
    }
    to.write(node);
    Ok(())
}

pub(super) fn clip(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    // The ends of f32, the old defaults, clip nothing.
    for (slot, key) in [(1, "min"), (2, "max")] {
        let Some(value) = node.take(key).and_then(|a| a.f) else {
            continue;
        };
        if value == f32::MIN || value == f32::MAX {
            continue;
        }
        let limit = limit_like(to, &node, value)?;
        let name = to.constant(&node, key, limit);
        set_input(&mut node, slot, name);
    }
    to.write(node);
    Ok(())
}

/// A scalar of the element type of the node's input; f32 if the type is unknown.
fn limit_like(to: &Adapter, node: &NodeProto, value: f32) -> Result<TensorProto, String> {
    let element = node
        .input_at(0)
        .and_then(|x| to.types.get(x))
        .map(|t| t.element);
    match element {
        None | Some(DataType::Float) => Ok(TensorProto::from_f32("", &[], &[value])),
        Some(DataType::Double) => Ok(TensorProto::from_f64("", &[], &[value.into()])),
        Some(other) => Err(format!(
            "its constant would have type {other:?}, which is not supported"
        )),
    }
}

pub(super) fn pad(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    let pads = node
        .take("pads")
        .or_else(|| node.take("paddings"))
        .ok_or("it has no pads")?
        .ints;
    let pads = to.integers(&node, "pads", &pads);
    set_input(&mut node, 1, pads);
    if let Some(value) = node.take("value").and_then(|a| a.f).filter(|&v| v != 0.0) {
        let value = limit_like(to, &node, value)?;
        let value = to.constant(&node, "value", value);
        set_input(&mut node, 2, value);
    }
    to.write(node);
    Ok(())
}

pub(super) fn slice(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    for (slot, key) in [(1, "starts"), (2, "ends"), (3, "axes")] {
        match node.take(key) {
            Some(attribute) => {
                let name = to.integers(&node, key, &attribute.ints);
                set_input(&mut node, slot, name);
            }
            None if key == "axes" => {}
            None => return Err(format!("it has no {key}")),
        }
    }
    to.write(node);
    Ok(())
}

pub(super) fn top_k(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    let k = node.take("k").and_then(|a| a.i).ok_or("it has no k")?;
    let k = to.integers(&node, "k", &[k]);
    set_input(&mut node, 1, k);
    to.write(node);
    Ok(())
}
