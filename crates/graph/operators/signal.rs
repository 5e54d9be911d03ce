//! Fourier transforms and windows of signals.

use super::Operator;
use super::float16::NOT_CONVERTED;
use super::node_context::{NodeContext, Validation, ensure};
use crate::inferred_value::position;

const fn signal(name: &'static str) -> Operator {
    Operator::onnx(name).float16(NOT_CONVERTED)
}

pub(super) static OPERATORS: &[Operator] = &[
    signal("BlackmanWindow"),
    signal("DFT")
        .scalars(&[1, 2])
        .ranks(&[(0, 1)])
        .changed(&[(20, |_, _| {
            Err("its axis was an attribute before opset 20".to_owned())
        })])
        .checks(whole_axis),
    signal("HammingWindow"),
    signal("HannWindow"),
    signal("MelWeightMatrix"),
    signal("STFT"),
];

/// Checks DFT: tract transforms a whole axis only.
fn whole_axis(ctx: &NodeContext) -> Validation {
    let (Some(_), Some(shape)) = (ctx.node.input_at(1), ctx.shape(0)) else {
        return Ok(());
    };
    let axis = match ctx.node.int("axis") {
        Some(axis) => Some(axis),
        None if ctx.opset < 20 => Some(1),
        None if ctx.node.input_at(2).is_none() => Some(-2),
        None => ctx.list("axis", 2).and_then(|axis| axis.first().copied()),
    };
    let size = axis.and_then(|axis| ctx.size(0, position(axis, shape.len())?));
    let length = ctx.list("dft_length", 1);
    let whole = length.is_some() && length == size.map(|size| vec![size]);
    let expected =
        "a constant equal to the size of the transformed axis; other lengths are not supported";
    ensure(whole, "dft_length", length, expected)
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Integers;
    use super::super::test_models::{int, refused, taken};

    #[test]
    fn a_whole_axis_is_transformed() {
        let transform = || int("DFT", "axis", 1);
        taken(transform(), &[1, 8, 1], &[Integers(&[8])]);
        for length in [0, -3, 4, 1 << 40] {
            let error = refused(transform(), &[1, 8, 1], &[Integers(&[length])]);
            assert!(error.contains("dft_length"), "{error}");
        }
    }
}
