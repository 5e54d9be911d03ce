//! Scales of weights that cost least: what lies furthest out is cut off where finer steps for all others gain more.

use super::scale::{IntegerBounds, QuantizationParameters};
use super::weights::Channels;
use crate::calibrate::PowerOfTwo;
use crate::onnx::schema::TensorProto;
use crate::onnx::tensor::TensorError;

/// Of powers of two these are tried, beginning with the one that cuts nothing off: AMD Quark's.
const POWERS: [f32; 5] = [2.0, 1.0, 0.5, 0.25, 0.125];
/// Of others from the whole scale down to half of it.
const COARSE: usize = 20;
const LEAST: f32 = 0.5;

/// Gives each channel the scale with the least squared error. What is found is of all that a channel reaches.
pub(super) fn shrink(
    found: &mut QuantizationParameters,
    tensor: &TensorProto,
    channels: &Channels,
    used: IntegerBounds,
    powers: PowerOfTwo,
) -> Result<(), TensorError> {
    if powers.is_required() {
        return choose(found, tensor, channels, used, &POWERS);
    }
    let step = (1.0 - LEAST) / COARSE as f32;
    let coarse: Vec<f32> = (0..=COARSE).map(|at| 1.0 - step * at as f32).collect();
    choose(found, tensor, channels, used, &coarse)?;
    let fine = [1.0, 1.0 + step / 2.0, 1.0 - step / 2.0];
    choose(found, tensor, channels, used, &fine)
}

/// Multiplies each channel's scale by that factor whose squared error is least; of two alike by the first.
fn choose(
    found: &mut QuantizationParameters,
    tensor: &TensorProto,
    channels: &Channels,
    used: IntegerBounds,
    factors: &[f32],
) -> Result<(), TensorError> {
    let mut errors = vec![0.0; found.scales.len() * factors.len()];
    channels.each_run(tensor, |channel, run| {
        let (scale, zero_point) = (found.scales[channel], found.zero_points[channel]);
        let errors = errors[channel * factors.len()..].iter_mut();
        for (error, factor) in errors.zip(factors) {
            *error += used.grid(scale * factor, zero_point).squared_error(run);
        }
    })?;
    for (scale, errors) in found
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
    use crate::calibrate::Method;
    use proptest::prelude::*;

    fn represented(element: ElementType, powers: PowerOfTwo) -> Representation {
        Representation {
            power_of_two: powers,
            ..Representation::new(element, None)
        }
    }

    /// The squared error of each of two channels.
    fn errors(values: &[f32], found: &QuantizationParameters) -> Vec<f64> {
        let whole = super::super::scale::integer_bounds(found.element, true, false);
        let channels = values.chunks_exact(values.len() / 2).zip(&found.scales);
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
        fn no_channel_costs_more_than_with_all_it_reaches(
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
            let [before, after] = [&usual, &least].map(|found| errors(&values, found));
            for (before, after) in before.iter().zip(&after) {
                prop_assert!(*after <= before * (1.0 + 1e-9), "{} {}", before, after);
            }
            for scale in least.scales.iter().filter(|_| powers.is_required()) {
                prop_assert_eq!(scale.log2().fract(), 0.0);
            }
        }
    }

    #[test]
    fn what_lies_far_out_is_cut_off_where_that_costs_less() {
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
        // The first channel has one far number, the second none.
        assert!(least.scales[0] < 0.7 * usual.scales[0], "{least:?}");
        assert!(least.scales[1] > 0.85 * usual.scales[1], "{least:?}");
        let [before, after] = [&usual, &least].map(|found| errors(&values, found)[0]);
        assert!(after < 0.6 * before, "{before} {after}");
    }
}
