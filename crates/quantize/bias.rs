//! Biases: int32 integers in the scale of their layer's accumulators.

use super::scale::{QuantizationParameters, power_of_two};

/// The scales of a bias: input scale times weight scale.
pub(super) fn scales(input: f32, weights: &[f32]) -> Vec<f32> {
    weights.iter().map(|weight| input * weight).collect()
}

/// The integers of a bias times `beta`, with one scale or one per channel, and the number of values
/// that overflow int32.
///
/// ONNX Runtime multiplies the scale by `beta` and sets the node's beta to 1. The node then adds
/// the whole bias whatever `beta` is (observed in 1.31.1). Octet multiplies the integers instead;
/// with `beta` = 1 both agree. `more` is added to each value.
pub(super) fn integers(
    values: &[f32],
    scales: &[f32],
    beta: f32,
    more: &[f64],
) -> (Vec<i32>, usize) {
    let scale = |index: usize| f64::from(*scales.get(index).unwrap_or(&scales[0]));
    let (low, high) = (f64::from(i32::MIN), f64::from(i32::MAX));
    let mut beyond = 0;
    let integer = |(index, &value): (usize, &f32)| {
        let more = more.get(index).copied().unwrap_or(0.0);
        let real = f64::from(value) * f64::from(beta) + more;
        let real = (real / scale(index)).round_ties_even();
        beyond += usize::from(real < low || real > high);
        real.clamp(low, high) as i32
    };
    let integers = values.iter().enumerate().map(integer).collect();
    (integers, beyond)
}

/// Raises weight scales at which a bias times `beta` would overflow int32. Raised scales stay
/// powers of two where `powers_of_two` is set.
///
/// A bias b is stored as b / (input · weight). The smallest scale s at which |b| still fits is s =
/// 1.0001 · 2·|b| / (2³² − 2). A weight scale below s / input is raised to it. The zero point
/// stays, because a larger scale still covers the range.
///
/// Any scale suits the weights of an `empty` channel, whose weights are all zero after pruning.
/// Only the bias counts there, so the scale leaves 24 bits to it. A scale of 1 would leave it
/// almost none.
pub(super) fn fit_weight_scales(
    weight: &mut QuantizationParameters,
    input: f32,
    bias: &[f32],
    beta: f32,
    powers_of_two: bool,
    empty: &[bool],
) {
    const INTEGERS: f64 = 2.0 * i32::MAX as f64;
    // Below this, the product of two scales is no longer a normal float.
    const LEAST: f64 = 1e-20;
    let one = weight.axis.is_none();
    let times = beta.abs().max(1.0);
    let largest = bias.iter().fold(0f32, |largest, b| largest.max(b.abs()));
    for (channel, scale) in weight.scales.iter_mut().enumerate() {
        // ONNX Runtime computes the product in f64 for one scale and in f32 for several.
        let needed = if one {
            1.0001 * (2.0 * f64::from(largest * times))
        } else {
            f64::from(1.0001f32 * (2.0 * bias.get(channel).map_or(0.0, |b| b.abs() * times)))
        };
        let smallest = needed / INTEGERS;
        let bias_scale = f64::from(input) * f64::from(*scale);
        let free = smallest > 0.0 && empty.get(channel) == Some(&true);
        if bias_scale > 0.0 && (bias_scale < smallest || free) {
            *scale = match free {
                true => (256.0 * smallest / f64::from(input)).max(LEAST) as f32,
                false => (f64::from(*scale) * (smallest / bias_scale)) as f32,
            };
            if powers_of_two {
                *scale = power_of_two(*scale);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_onnx::schema::DataType;

    /// The integers of values that do not overflow.
    fn whole(values: &[f32], scales: &[f32], beta: f32, more: &[f64]) -> Vec<i32> {
        let (integers, beyond) = integers(values, scales, beta, more);
        assert_eq!(beyond, 0);
        integers
    }

    #[test]
    fn integers_are_rounded_half_to_even_and_end_at_32_bits() {
        assert_eq!(
            integers(&[0.5, 1.5, -2.5, 1e30, -1e30], &[1.0], 1.0, &[]),
            (vec![0, 2, -2, i32::MAX, i32::MIN], 2)
        );
        assert_eq!(whole(&[1.0, 1.0], &[0.5, 0.25], 1.0, &[]), [2, 4]);
    }

    #[test]
    fn beta_multiplies_the_integers() {
        assert_eq!(whole(&[1.0, -3.0], &[0.25], 0.5, &[]), [2, -6]);
        assert_eq!(whole(&[1.0], &[0.25], 0.0, &[]), [0]);
    }

    #[test]
    fn corrections_are_added_before_rounding() {
        assert_eq!(whole(&[1.0, 1.0], &[0.5], 1.0, &[0.3, -2.0]), [3, -2]);
        assert_eq!(whole(&[1.0], &[0.5], 0.0, &[0.5]), [1]);
    }

    #[test]
    fn a_weight_scale_too_small_for_its_bias_is_raised_until_it_fits() {
        for (element, zero_point) in [
            (DataType::Int8, 0),
            (DataType::Uint8, 131),
            (DataType::Int4, 0),
        ] {
            let raised = |powers_of_two: bool, beta: f32| {
                let mut weight = QuantizationParameters {
                    element,
                    axis: Some(0),
                    scales: vec![1e-9, 1.0],
                    zero_points: vec![zero_point; 2],
                };
                let (input, bias) = (1e-3, [100.0, 100.0]);
                fit_weight_scales(&mut weight, input, &bias, beta, powers_of_two, &[]);
                assert_eq!(weight.scales[1], 1.0);
                assert_eq!(weight.zero_points, [zero_point; 2]);
                let fitted = whole(&bias, &scales(input, &weight.scales), beta, &[]);
                (weight.scales[0], fitted[0])
            };
            for beta in [1.0, -3.0] {
                let (_, fitted) = raised(false, beta);
                assert!(fitted.abs() > i32::MAX / 1000 * 999, "{fitted:?}");
            }
            let (scale, fitted) = raised(true, 1.0);
            assert_eq!(scale, power_of_two(scale));
            assert!(fitted > i32::MAX / 1000 * 499, "{fitted:?}");
        }
    }
}
