//! Broadcasting before opset 7: an attribute requests it, and an axis aligns the shapes.

use super::{Adapted, Adapter};
use octet_onnx::schema::NodeProto;

/// Appends axes of size 1 to the second input, so that it aligns with `axis` of the first.
pub(super) fn broadcast(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    let wanted = node.take("broadcast").and_then(|a| a.i).unwrap_or(0) != 0;
    let axis = node.take("axis").and_then(|a| a.i);
    // PRelu's slope had one number for each channel, at axis 1.
    let axis = if node.is("PRelu") {
        Some(1)
    } else {
        axis.filter(|_| wanted)
    };
    let Some(axis) = axis else {
        // Without an axis the shapes align at their ends, as today.
        to.write(node);
        return Ok(());
    };
    let rank = |value| to.shape(value).map(<[_]>::len);
    let (Some(left), Some(right)) = (rank(node.input_at(0)), rank(node.input_at(1))) else {
        return Err("the shapes that it broadcasts are unknown".to_owned());
    };
    let axis = if axis < 0 { axis + left as i64 } else { axis } as usize;
    if node.is("PRelu") && right != 1 {
        to.write(node);
        return Ok(());
    }
    let after = left
        .checked_sub(axis + right)
        .ok_or("its axis lies outside the shape")?;
    if after > 0 {
        let axes: Vec<i64> = (right as i64..(right + after) as i64).collect();
        let axes = to.integers(&node, "axes", &axes);
        let aligned = to.value(&node, "aligned");
        to.write(NodeProto::new(
            "Unsqueeze",
            &aligned,
            &[&node.input[1], &axes],
            &[&aligned],
        ));
        node.input[1] = aligned;
    }
    to.write(node);
    Ok(())
}
