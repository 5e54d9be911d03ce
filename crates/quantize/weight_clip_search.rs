//! Weight clip search: clips the largest weights where finer steps for the others lower the squared
//! error.

use super::channel_layout::ChannelLayout;
use super::scale::{IntegerBounds, QuantizationParameters};
use octet_onnx::schema::TensorProto;
use octet_onnx::tensor::TensorError;
use octet_stats::PowerOfTwo;

/// The factors for scales that are powers of two, the one without clipping first, as in AMD Quark.
const POWERS: [f32; 5] = [2.0, 1.0, 0.5, 0.25, 0.125];
/// The factors for other scales: 20 equal steps from 1 down to a half.
const COARSE_STEPS: usize = 20;
const SMALLEST_FACTOR: f32 = 0.5;

/// Gives each channel the scale with the least squared error. The scales passed in cover all values
/// of a channel.
pub(super) fn search_clipped_scales(
    parameters: &mut QuantizationParameters,
    tensor: &TensorProto,
    channels: &ChannelLayout,
    used: IntegerBounds,
    powers: PowerOfTwo,
) -> Result<(), TensorError> {
    if powers.is_required() {
        return choose_factors(parameters, tensor, channels, used, &POWERS);
    }
    let step = (1.0 - SMALLEST_FACTOR) / COARSE_STEPS as f32;
    let coarse: Vec<f32> = (0..=COARSE_STEPS)
        .map(|at| 1.0 - step * at as f32)
        .collect();
    choose_factors(parameters, tensor, channels, used, &coarse)?;
    let fine = [1.0, 1.0 + step / 2.0, 1.0 - step / 2.0];
    choose_factors(parameters, tensor, channels, used, &fine)
}

/// Multiplies each channel's scale by the factor with the least squared error; ties go to the
/// first.
fn choose_factors(
    parameters: &mut QuantizationParameters,
    tensor: &TensorProto,
    channels: &ChannelLayout,
    used: IntegerBounds,
    factors: &[f32],
) -> Result<(), TensorError> {
    let mut errors = vec![0.0; parameters.scales.len() * factors.len()];
    channels.each_run(tensor, |channel, run| {
        let (scale, zero_point) = (parameters.scales[channel], parameters.zero_points[channel]);
        let errors = errors[channel * factors.len()..].iter_mut();
        for (error, factor) in errors.zip(factors) {
            *error += used.grid(scale * factor, zero_point).squared_error(run);
        }
    })?;
    for (scale, errors) in parameters
        .scales
        .iter_mut()
        .zip(errors.chunks_exact(factors.len()))
    {
        let least = (0..factors.len()).min_by(|&one, &other| errors[one].total_cmp(&errors[other]));
        let better = *scale * factors[least.unwrap_or(0)];
        if better.is_normal() {
            *scale = better;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::scale::quantize_value;
    use super::super::settings::{ElementType, Representation};
    use super::super::weights::parameters;
    use super::*;
    use octet_stats::Method;
    use proptest::prelude::*;

    fn represented(element: ElementType, powers: PowerOfTwo) -> Representation {
        Representation {
            power_of_two: powers,
            ..Representation::new(element, None)
        }
    }

    /// The squared errors of two channels.
    fn errors(values: &[f32], parameters: &QuantizationParameters) -> Vec<f64> {
        let whole = super::super::scale::integer_bounds(parameters.element, true, false);
        let channels = values
            .chunks_exact(values.len() / 2)
            .zip(&parameters.scales);
        let error = |(values, &scale): (&[f32], &f32)| {
            let square = |&value: &f32| {
                let integer = quantize_value(value, scale, 0, whole);
                (f64::from(value) - f64::from(scale) * f64::from(integer)).powi(2)
            };
            values.iter().map(square).sum()
        };
        channels.map(error).collect()
    }

    proptest! {
        #[test]
        fn no_channel_has_a_larger_error_than_unclipped(
            values in prop::collection::vec(-1f32..1.0, 64),
            far in 1f32..20.0,
            four in any::<bool>(),
            powers in prop::sample::select(vec![PowerOfTwo::No, PowerOfTwo::Covering, PowerOfTwo::Nearest]),
        ) {
            let mut values = values;
            values[5] = far;
            let tensor = TensorProto::from_f32("w", &[2, 32], &values);
            let element = if four { ElementType::I4 } else { ElementType::I8 };
            let usual = represented(element, powers);
            let least = Representation { method: Some(Method::Mse), ..usual.clone() };
            let usual = parameters(&tensor, Some(0), &usual, true).unwrap();
            let least = parameters(&tensor, Some(0), &least, true).unwrap();
            prop_assert_eq!(&usual.zero_points, &least.zero_points);
            let [before, after] = [&usual, &least].map(|parameters| errors(&values, parameters));
            for (before, after) in before.iter().zip(&after) {
                prop_assert!(*after <= before * (1.0 + 1e-9), "{} {}", before, after);
            }
            for scale in least.scales.iter().filter(|_| powers.is_required()) {
                prop_assert_eq!(scale.log2().fract(), 0.0);
            }
        }
    }

    #[test]
    fn outliers_are_clipped_where_the_error_falls() {
        let mut values: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.37).sin()).collect();
        values[0] = 2.0;
        let tensor = TensorProto::from_f32("w", &[2, 500], &values);
        let usual = represented(ElementType::I4, PowerOfTwo::No);
        let least = Representation {
            method: Some(Method::Mse),
            ..usual.clone()
        };
        let usual = parameters(&tensor, Some(0), &usual, true).unwrap();
        let least = parameters(&tensor, Some(0), &least, true).unwrap();
        // The first channel has one outlier, the second none.
        assert!(least.scales[0] < 0.7 * usual.scales[0], "{least:?}");
        assert!(least.scales[1] > 0.85 * usual.scales[1], "{least:?}");
        let [before, after] = [&usual, &least].map(|parameters| errors(&values, parameters)[0]);
        assert!(after < 0.6 * before, "{before} {after}");
    }
}
