//! DepthToSpace and SpaceToDepth.

use super::Property::{CarriesIntegers, KeepsRange};
use super::node_context::{NodeContext, Validation, ensure};
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::InferredValue;

const fn blocks(name: &'static str) -> Operator {
    Operator::onnx(name)
        .with(&[KeepsRange, CarriesIntegers])
        .quantized_here(Treatment::Share)
}

pub(super) static OPERATORS: &[Operator] = &[
    blocks("DepthToSpace")
        .at_most(1)
        .checks(|ctx| divides(ctx, true))
        .infers(|ctx| moved(ctx, true)),
    blocks("SpaceToDepth")
        .at_most(1)
        .checks(|ctx| divides(ctx, false))
        .infers(|ctx| moved(ctx, false)),
];

/// Blocks of an image that move to channels, or back.
fn moved(ctx: &ShapeContext, to_space: bool) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let shape = input.shape.as_deref()?;
    let block = usize::try_from(ctx.node.int("blocksize")?)
        .ok()
        .filter(|&b| b > 0)?;
    let [batch, channel, height, width] = shape else {
        return None;
    };
    let times = |d: &Dim, by: usize, up: bool| match d {
        Dim::Known(size) => Dim::Known(if up {
            size.saturating_mul(by)
        } else {
            size / by
        }),
        _ => Dim::Unknown,
    };
    let dims = vec![
        batch.clone(),
        times(channel, block.saturating_mul(block), !to_space),
        times(height, block, to_space),
        times(width, block, to_space),
    ];
    Some(InferredValue::new(input.element, Some(dims)))
}

/// Checks that blocks divide the image or its channels.
fn divides(ctx: &NodeContext, to_space: bool) -> Validation {
    let block = ctx.positive("blocksize", None)?;
    let (axes, divisor) = match to_space {
        true => (1..2, block.saturating_mul(block)),
        false => (2..4, block),
    };
    for axis in axes {
        if let Some(size) = ctx.size(0, axis) {
            let expected = format!("{divisor} divides the size {size} of axis {axis}");
            let whole = size % divisor == 0;
            ensure(whole, "blocksize", block, format!("such that {expected}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::{PICTURE, int, refused, taken};

    #[test]
    fn blocks_divide_the_image_or_its_channels() {
        for (operator, block) in [
            ("DepthToSpace", 0),
            ("DepthToSpace", 3),
            ("DepthToSpace", 1 << 32),
            ("DepthToSpace", -2),
            ("SpaceToDepth", 0),
            ("SpaceToDepth", 4),
        ] {
            let error = refused(int(operator, "blocksize", block), PICTURE, &[]);
            assert!(error.contains("blocksize"), "{error}");
        }
        taken(int("DepthToSpace", "blocksize", 2), PICTURE, &[]);
    }
}
