//! Pooling: largest or mean value of a window or of the whole image.

use super::Property::{CarriesIntegers, EndsClassifier, KeepsRange, MovesData};
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use super::window::{self, WindowKind};
use super::window_check;
use super::{Operator, QLinearInputs, Treatment};
use crate::Dim;
use crate::inferred_value::InferredValue;

const fn pooling(name: &'static str) -> Operator {
    Operator::onnx(name)
        .checks(|ctx| window_check::validate(ctx, None, WindowKind::Pooling))
        .checks_shapes(|ctx| window_check::kernel_fits(ctx, None))
        .infers(|ctx| window::infer(ctx, WindowKind::Pooling))
}

pub(super) static OPERATORS: &[Operator] = &[
    pooling("AveragePool")
        .at_most(1)
        .quantized(Treatment::Share)
        .qlinear_microsoft("QLinearAveragePool", QLinearInputs::Unary)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    Operator::onnx("GlobalAveragePool")
        .ranks(&[(0, 3)])
        .infers(whole_image)
        .with(&[EndsClassifier])
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearGlobalAveragePool", QLinearInputs::Unary)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    Operator::onnx("GlobalLpPool").ranks(&[(0, 3)]),
    Operator::onnx("GlobalMaxPool")
        .ranks(&[(0, 3)])
        .infers(whole_image)
        .with(&[MovesData, KeepsRange])
        .quantized_here(Treatment::Share)
        .channels(ChannelRole::Commutes),
    pooling("LpPool"),
    pooling("MaxPool")
        .with(&[CarriesIntegers])
        .at_most(1)
        .with(&[MovesData, KeepsRange])
        .quantized(Treatment::Share)
        .integers_since(12)
        .channels(ChannelRole::Commutes),
    Operator::onnx("MaxUnpool").infers(unpool).shape_from(&[2]),
    Operator::microsoft("NhwcMaxPool"),
];

/// The pooling of a whole image.
fn whole_image(ctx: &ShapeContext) -> Option<InferredValue> {
    let mut result = ctx.same(0)?;
    if let Some(shape) = &mut result.shape {
        shape.iter_mut().skip(2).for_each(|d| *d = Dim::Known(1));
    }
    Some(result)
}

fn unpool(ctx: &ShapeContext) -> Option<InferredValue> {
    let shape = match ctx.node.input_at(2) {
        Some(_) => ctx.shape_from_input(2),
        None => window::shape(ctx, WindowKind::Unpooling),
    };
    Some(InferredValue::new(ctx.input(0)?.element, shape))
}

#[cfg(test)]
mod tests {
    use super::super::test_models::{PICTURE, checked, ints, model, refused, taken};

    #[test]
    fn poolings_have_a_kernel_larger_than_their_pads() {
        for attributes in [
            &[("kernel_shape", &[2, 2][..]), ("pads", &[2, 0, 0, 0][..])][..],
            &[("kernel_shape", &[2, 2]), ("pads", &[1 << 30; 4])],
            &[("kernel_shape", &[0, 2])],
            &[("kernel_shape", &[9, 9])],
            &[
                ("kernel_shape", &[1 << 15, 1 << 15]),
                ("pads", &[(1 << 15) - 1; 4]),
            ],
            &[("kernel_shape", &[2, 2]), ("dilations", &[1 << 30, 1])],
        ] {
            refused(ints("MaxPool", attributes), PICTURE, &[]);
        }
        taken(
            ints("MaxPool", &[("kernel_shape", &[3, 3]), ("pads", &[1; 4])]),
            PICTURE,
            &[],
        );
        taken(
            ints("AveragePool", &[("kernel_shape", &[6, 6])]),
            PICTURE,
            &[],
        );
    }

    #[test]
    fn pooling_an_empty_input_is_rejected() {
        let pool = ints("MaxPool", &[("kernel_shape", &[3, 3]), ("pads", &[1; 4])]);
        for (shape, fits) in [([1, 4, 0, 6], false), ([0, 4, 6, 6], true)] {
            let pool = model(pool.clone(), &shape, &[]);
            let result = checked(&pool, Some(&shape));
            assert_eq!(result.is_ok(), fits, "{result:?}");
        }
    }
}
