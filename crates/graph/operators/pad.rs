//! Pad.

use super::Property::{CarriesIntegers, KeepsRange};
use super::node_context::{MAX_SIZE, NodeContext, Validation, ensure};
use super::opset_context::{Adapted, OpsetContext, limit_like};
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::inferred_value::{InferredValue, positions};
use crate::{Dim, Node};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Pad")
    .with(&[CarriesIntegers])
    .scalars(&[2])
    .moved(&[("pads", 11)])
    .changed(&[(11, pads_as_input)])
    .checks(pads_fit)
    .infers(padded)
    .with(&[KeepsRange])
    .quantized(Treatment::Pad)
    .shape_from(&[1, 3])
    .same_type(1)
    .channels(ChannelRole::Commutes)];

fn padded(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let shape = input.shape.as_ref()?;
    let pads = match ctx.node.ints("paddings") {
        Some(pads) => Some(pads.to_vec()),
        None => ctx.list("pads", 1),
    };
    let rank = shape.len();
    // The pads are those of the listed axes, or of all.
    let axes = match ctx.node.input_at(3) {
        Some(_) => ctx.list("axes", 3).and_then(|axes| positions(&axes, rank)),
        None => Some((0..rank).collect()),
    };
    let around = pads.zip(axes).and_then(|(pads, axes)| {
        let mut around = vec![(0, 0); rank];
        for (place, &axis) in axes.iter().enumerate() {
            around[axis] = (*pads.get(place)?, *pads.get(place + axes.len())?);
        }
        Some(around)
    });
    let size = |axis: usize| match (&shape[axis], &around) {
        (Dim::Known(size), Some(around)) => {
            let (before, after) = around[axis];
            let size = *size as i128 + i128::from(before) + i128::from(after);
            usize::try_from(size).map_or(Dim::Unknown, Dim::Known)
        }
        (dim, Some(around)) if around[axis] == (0, 0) => dim.clone(),
        _ => Dim::Unknown,
    };
    Some(InferredValue::new(
        input.element,
        Some((0..rank).map(size).collect()),
    ))
}

fn pads_fit(ctx: &NodeContext) -> Validation {
    ctx.axes_in_range(3)?;
    let mode = ctx.node.text("mode").unwrap_or("constant");
    let modes = ["constant", "reflect", "edge", "wrap"];
    ensure(
        modes.contains(&mode),
        "mode",
        mode,
        format!("one of {modes:?}"),
    )?;
    let Some(pads) = ctx.list("pads", 1) else {
        return Ok(());
    };
    let fits = |pad: &i64| (-MAX_SIZE..MAX_SIZE).contains(pad);
    ensure(
        pads.iter().all(fits),
        "pads",
        &pads,
        "numbers of at most 31 bits",
    )?;
    let Some(axes) = ctx.axes_or_all(3) else {
        return Ok(());
    };
    let expected = format!("two numbers for each of its {} axes", axes.len());
    ensure(pads.len() == 2 * axes.len(), "pads", &pads, expected)?;
    for (place, &axis) in axes.iter().enumerate() {
        let Some(size) = ctx.size(0, axis).filter(|&size| size < MAX_SIZE) else {
            continue;
        };
        let [before, after] = [pads[place], pads[place + axes.len()]];
        let along = format!("the {size} of axis {axis}");
        let remaining = size + before.min(0) + after.min(0);
        let expected = format!("such that they remove no more than {along}");
        ensure(remaining >= 0, "pads", [before, after], expected)?;
        let most = before.max(after);
        let (room, expected) = match mode {
            "reflect" => (
                remaining - 1,
                format!("less than {along} that they reflect"),
            ),
            "edge" | "wrap" if remaining == 0 => (0, "0, because the axis is empty".to_owned()),
            _ => (MAX_SIZE, String::new()),
        };
        ensure(most <= 0 || most <= room, "pads", [before, after], expected)?;
    }
    Ok(())
}

/// Changes to opset 11.
fn pads_as_input(to: &mut OpsetContext, mut node: Node) -> Adapted {
    let pads = node
        .take("pads")
        .or_else(|| node.take("paddings"))
        .ok_or("it has no pads")?;
    let pads = to.integers(&node, "pads", pads.as_ints());
    node.set_input(1, pads);
    if let Some(value) = node
        .take("value")
        .and_then(|a| a.as_float())
        .filter(|&v| v != 0.0)
    {
        let value = limit_like(to, &node, value)?;
        let value = to.constant(&node, "value", value);
        node.set_input(2, value);
    }
    to.write(node);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Integers;
    use super::super::test_models::{PICTURE, node, refused, taken, text};

    #[test]
    fn pads_fit_their_input() {
        for (mode, pads) in [
            ("constant", &[0, 0, -4, 0, 0, 0, -4, 0][..]),
            ("constant", &[0, 0, 1 << 62, 0, 0, 0, 1 << 62, 0]),
            ("constant", &[0, 0, 1 << 30, 0, 0, 0, 1 << 30, 0]),
            ("constant", &[0, 0, 1]),
            ("reflect", &[0, 0, 6, 0, 0, 0, 0, 0]),
            ("edge", &[0, 0, -6, 0, 0, 0, 3, 0]),
            ("foo", &[0; 8]),
        ] {
            refused(text("Pad", "mode", mode), PICTURE, &[Integers(pads)]);
        }
        taken(
            text("Pad", "mode", "reflect"),
            PICTURE,
            &[Integers(&[0, 0, 3, 0, 0, 0, -2, 5])],
        );
        taken(
            node("Pad"),
            PICTURE,
            &[Integers(&[0, 0, -3, 0, 0, 0, -3, 0])],
        );
    }
}
