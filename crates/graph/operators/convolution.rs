//! Convolutions.

use super::Property::{EndsClassifier, MatrixProduct, OnlyQuantized, SaturatesPairs};
use super::descriptor::ALL_INPUTS;
use super::properties::{ChannelPosition, ChannelRole, MacRule};
use super::window::{self, WindowKind};
use super::window_check;
use super::{DynamicForm, Operator, QLinearInputs, Treatment, WeightAxis};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("CausalConvWithState"),
    Operator::onnx("Conv")
        .requires(2)
        .at_most(3)
        .checks(|ctx| window_check::validate(ctx, Some(1), WindowKind::Convolution))
        .checks_shapes(|ctx| {
            ctx.per_channel(&[2], ctx.size(1, 0))?;
            window_check::kernel_fits(ctx, Some(1))
        })
        .infers(|ctx| window::infer(ctx, WindowKind::Convolution))
        .with(&[MatrixProduct, SaturatesPairs, EndsClassifier])
        .quantized(Treatment::Weighted(WeightAxis::Fixed(0)))
        .qlinear("QLinearConv", QLinearInputs::Convolution)
        .dynamic(DynamicForm::Convolution)
        .weights(&[1])
        .same_type(ALL_INPUTS)
        .macs(MacRule::Conv(1))
        .channels(ChannelRole::Layer(ChannelPosition::Second)),
    Operator::onnx("ConvInteger")
        .requires(2)
        .at_most(4)
        .checks(|ctx| window_check::validate(ctx, Some(1), WindowKind::Convolution))
        .with(&[MatrixProduct, SaturatesPairs, OnlyQuantized])
        .weights(&[1])
        .macs(MacRule::Conv(1)),
    Operator::onnx("ConvTranspose")
        .requires(2)
        .at_most(3)
        .checks(|ctx| window_check::validate(ctx, Some(1), WindowKind::Transposed))
        .infers(|ctx| window::infer(ctx, WindowKind::Transposed))
        .with(&[MatrixProduct])
        .quantized(Treatment::Weighted(WeightAxis::Fixed(1)))
        .weights(&[1])
        .same_type(ALL_INPUTS)
        .macs(MacRule::ConvTranspose)
        .channels(ChannelRole::Layer(ChannelPosition::Second)),
    Operator::onnx("DeformConv")
        .checks(|ctx| window_check::validate(ctx, Some(1), WindowKind::Convolution))
        .infers(|ctx| window::infer(ctx, WindowKind::Convolution)),
    Operator::onnx("QLinearConv")
        .requires(8)
        .at_most(9)
        .checks(|ctx| window_check::validate(ctx, Some(3), WindowKind::Convolution))
        .with(&[MatrixProduct, SaturatesPairs, OnlyQuantized])
        .weights(&[3])
        .macs(MacRule::Conv(3)),
    Operator::microsoft("FusedConv")
        .fused(|to, node| to.fused_activation(node, "Conv"))
        .macs(MacRule::Conv(1)),
];

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::{Floats, Nothing};
    use super::super::test_models::{PICTURE, int, ints, node, refused, taken, text};
    use crate::Attribute;

    #[test]
    fn a_second_output_is_refused() {
        let mut convolution = node("Conv");
        convolution.output.push("z".into());
        let error = refused(convolution, PICTURE, &[Floats(&[4, 4, 1, 1], &[0.0; 16])]);
        assert!(error.contains("the number of outputs"), "{error}");
    }

    #[test]
    fn an_invalid_window_is_refused_by_its_attribute() {
        let values = [0.0; 4 * 4 * 9];
        let weight = || [Floats(&[4, 4, 3, 3], &values)];
        for (operator, name, actual) in [
            ("Conv", "pads", &[1 << 40, 0, 0, 0][..]),
            ("Conv", "pads", &[-1, 0, 0, 0]),
            ("Conv", "pads", &[1, 1, 1]),
            ("Conv", "strides", &[1]),
            ("Conv", "strides", &[0, 1]),
            ("Conv", "dilations", &[1, -1]),
            ("Conv", "kernel_shape", &[5, 5]),
            ("ConvTranspose", "pads", &[100, 100, 100, 100]),
            ("ConvTranspose", "output_padding", &[1 << 30, 1]),
            ("ConvTranspose", "output_padding", &[1, 1]),
            ("ConvTranspose", "output_shape", &[0, 8]),
            ("ConvTranspose", "output_shape", &[8]),
            ("ConvTranspose", "output_shape", &[1 << 20, 1 << 20]),
        ] {
            let error = refused(ints(operator, &[(name, actual)]), PICTURE, &weight());
            assert!(
                error.contains(name),
                "{operator} {name} {actual:?}: {error}"
            );
        }
        for (operator, group) in [("Conv", 0), ("Conv", 2), ("Conv", 3), ("ConvTranspose", 3)] {
            let error = refused(int(operator, "group", group), PICTURE, &weight());
            assert!(error.contains("group"), "{error}");
        }
        assert!(refused(text("Conv", "auto_pad", "FOO"), PICTURE, &weight()).contains("FOO"));
        let both = |operator| {
            ints(operator, &[("kernel_shape", &[3, 3]), ("pads", &[0; 4])])
                .with(Attribute::text("auto_pad", "VALID"))
        };
        for operator in ["Conv", "ConvTranspose", "ConvInteger"] {
            let error = refused(both(operator), PICTURE, &weight());
            assert!(error.contains("pads"), "{operator}: {error}");
        }
        taken(both("MaxPool"), PICTURE, &[]);
        let small = refused(node("Conv"), &[1, 4, 2, 6], &weight());
        assert!(small.contains("3 wide"), "{small}");
        // The padded input would take 57 GB.
        let padded = ints("Conv", &[("pads", &[60_000; 4])]);
        assert!(refused(padded, PICTURE, &weight()).contains("elements"));
        taken(
            ints("Conv", &[("pads", &[1; 4]), ("strides", &[2, 1])]),
            PICTURE,
            &weight(),
        );
        taken(ints("Conv", &[("pads", &[0; 4])]), &[0, 4, 6, 6], &weight());
        taken(
            ints(
                "ConvTranspose",
                &[("strides", &[2, 2]), ("output_shape", &[12, 12])],
            ),
            PICTURE,
            &weight(),
        );
    }

    #[test]
    fn a_bias_has_one_element_for_each_channel() {
        let weight = || Floats(&[4, 4, 1, 1], &[0.0; 16]);
        refused(node("Conv"), PICTURE, &[weight(), Floats(&[3], &[0.0; 3])]);
        taken(node("Conv"), PICTURE, &[weight(), Nothing]);
    }
}
