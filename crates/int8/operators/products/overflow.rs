//! Proof that the accumulators of a product fit into 32 bits.
//!
//! Kernels wrap on overflow, so a product that may overflow runs in float. Overflow needs a depth
//! above 33,000, or a bias near the limits of int32. MatMulInteger and ConvInteger are defined with
//! 32-bit outputs and wrap in ONNX Runtime too; they are not checked.

use crate::float_reason::FloatReason;
use crate::pattern::destination::Destination;
use crate::pattern::weights::SignedWeights;
use crate::values::IrOperand;

/// Maximum magnitude of an accumulator.
const MOST: i64 = i32::MAX as i64;

/// Maximum distance of the operand's integers from its zero point.
fn distance(operand: &IrOperand) -> i64 {
    // A 16-bit operand is multiplied as two bytes, each with its own zero point.
    let bytes = operand.quantization().map(|q| q.zero_point);
    bytes.map_or(255, |zero| i64::from(zero.max(255 - zero)))
}

/// Checks that all accumulators of an operand with these weights and bias fit. The output channels
/// are on `axis` of the weights, and start anew in each group if `axis` is not 0.
pub(crate) fn check_weights(
    operand: &IrOperand,
    weights: &SignedWeights,
    axis: usize,
    groups: usize,
    bias: &[i32],
) -> Result<(), FloatReason> {
    match overflowing_columns(operand, weights, axis, groups, bias).is_empty() {
        true => Ok(()),
        false => Err(FloatReason::Overflow),
    }
}

/// Checks a matched product with these weights, as [`check_weights`] does, and replaces biases that
/// would overflow if this keeps the output's integers. `factor` multiplies all accumulators.
///
/// A channel of almost zero weights can have a bias near the limits of int32. ONNX Runtime's rule,
/// and ours, chooses the smallest scale that holds the bias. Usually a Relu follows and the whole
/// range of such a channel is outside one of its bounds. A smaller bias gives the same output and
/// prevents overflow.
pub(crate) fn fit_bias(
    (weights, axis, groups): (&SignedWeights, usize, usize),
    factor: f32,
    bias: &mut [i32],
    operand: &IrOperand,
    end: &Destination,
) -> Result<(), FloatReason> {
    for (column, span) in overflowing_columns(operand, weights, axis, groups, bias) {
        let offset = bias.get_mut(column).ok_or(FloatReason::Overflow)?;
        let (
            Destination::Int8 {
                quantization,
                bounds,
                ..
            },
            Some(from),
        ) = (end, operand.quantization())
        else {
            return Err(FloatReason::Overflow);
        };
        let own = weights.scales.get(column).unwrap_or(&weights.scales[0]);
        let step = f64::from(from.scale) * f64::from(*own) * f64::from(factor);
        let multiplier = step / f64::from(quantization.scale);
        // The bound that all results with this offset exceed by at least one step. Rounding on the
        // way does not change that.
        let outside = |offset: i64| {
            let ends = [offset - span, offset + span].map(|sum| {
                let integer = sum as f64 * multiplier + f64::from(quantization.zero_point);
                let [low, high] = bounds.map(f64::from);
                (integer < low - 1.0, integer > high + 1.0)
            });
            (ends[0] == ends[1] && ends[0] != (false, false)).then_some(ends[0])
        };
        let most = MOST - span;
        let wanted = i64::from(*offset);
        let moved = wanted.clamp(-most.max(0), most.max(0));
        if most < 0 || outside(wanted).is_none() || outside(wanted) != outside(moved) {
            return Err(FloatReason::Overflow);
        }
        // The new offset is closer to zero than the old one.
        *offset = moved as i32;
    }
    Ok(())
}

/// The columns whose accumulators may overflow, with the maximum magnitude of their products.
fn overflowing_columns(
    operand: &IrOperand,
    weights: &SignedWeights,
    axis: usize,
    groups: usize,
    bias: &[i32],
) -> Vec<(usize, i64)> {
    let columns = weights.shape.get(axis).copied().unwrap_or(0);
    let count = weights.integers.len();
    if columns == 0 || count == 0 || groups == 0 {
        return Vec::new();
    }
    let each = if axis == 0 { columns } else { columns * groups };
    let offset = |column: usize| bias.get(column).map_or(0, |&bias| i64::from(bias).abs());
    let greatest = (0..bias.len()).map(offset).max().unwrap_or(0);
    let distance = distance(operand);
    let depth = i64::try_from(count / each).unwrap_or(MOST);
    // This bound settles nearly all products without reading each weight.
    if depth
        .saturating_mul(255 * distance)
        .saturating_add(greatest)
        <= MOST
    {
        return Vec::new();
    }
    let behind: usize = weights.shape[axis + 1..].iter().product();
    let in_group = count.div_ceil(if axis == 0 { 1 } else { groups });
    let zero = |column: usize| {
        weights
            .zero_points
            .get(column)
            .map_or(0, |&zero| i64::from(zero))
    };
    let mut spans = vec![0; each];
    for (at, &weight) in weights.integers.iter().enumerate() {
        let column = at / in_group * columns + at / behind.max(1) % columns;
        if let Some(span) = spans.get_mut(column) {
            *span += (i64::from(weight) - zero(column)).abs() * distance;
        }
    }
    let spans = spans.into_iter().enumerate();
    spans
        .filter(|&(column, span)| span + offset(column) > MOST)
        .collect()
}

/// Checks a product of two values. For two 16-bit values it would take four byte products, which
/// need three times the time of a float product.
pub(crate) fn check_pair(
    [left, right]: [&IrOperand; 2],
    depth: usize,
    bias: &[i32],
) -> Result<(), FloatReason> {
    if let [IrOperand::Int16(..), IrOperand::Int16(..)] = [left, right] {
        return Err(FloatReason::FactorsOf16Bits);
    }
    let depth = i64::try_from(depth).unwrap_or(MOST);
    let offsets = bias.iter().map(|&bias| i64::from(bias).abs());
    let sum = depth.saturating_mul(distance(left) * distance(right));
    match sum.saturating_add(offsets.max().unwrap_or(0)) <= MOST {
        true => Ok(()),
        false => Err(FloatReason::Overflow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantization::Int8Quantization;

    fn bytes(zero_point: u8) -> IrOperand {
        let quantization = Int8Quantization {
            scale: 0.1,
            zero_point,
            signed: false,
        };
        IrOperand::Int8("x".into(), quantization)
    }

    fn weights(
        shape: &[usize],
        value: impl Fn(usize) -> i8,
        zero_points: Vec<i8>,
    ) -> SignedWeights {
        SignedWeights {
            shape: shape.to_vec(),
            integers: (0..shape.iter().product()).map(value).collect(),
            scales: vec![0.1],
            zero_points,
            stored_as_i8: true,
        }
    }

    #[test]
    fn a_deep_product_fits_as_long_as_its_weights_are_small() {
        // 66,311 · 127 · 255 is below 2³¹, and one more is not.
        for (depth, fits) in [(66_311, true), (66_312, false)] {
            let deep = weights(&[depth, 2], |_| 127, Vec::new());
            assert_eq!(
                check_weights(&bytes(0), &deep, 1, 1, &[]).is_ok(),
                fits,
                "{depth}"
            );
        }
        let small = weights(&[100_000, 2], |_| 12, Vec::new());
        assert!(check_weights(&bytes(0), &small, 1, 1, &[]).is_ok());
        // Half the distance from the zero point gives half the sum.
        let deep = weights(&[130_000, 1], |_| -127, Vec::new());
        assert!(check_weights(&bytes(128), &deep, 1, 1, &[]).is_ok());
        assert!(check_weights(&bytes(0), &deep, 1, 1, &[]).is_err());
    }

    #[test]
    fn zero_points_and_biases_count_in_their_own_column() {
        let one = |at: usize| if at.is_multiple_of(2) { 127 } else { 0 };
        let deep = |zeros| weights(&[40_000, 2], one, zeros);
        assert!(check_weights(&bytes(0), &deep(vec![0, -128]), 1, 1, &[]).is_ok());
        assert!(check_weights(&bytes(0), &deep(vec![-128, 0]), 1, 1, &[]).is_err());
        let bias = |first, second| [first, second];
        let shallow = weights(&[4, 2], one, Vec::new());
        assert!(check_weights(&bytes(0), &shallow, 1, 1, &bias(0, i32::MAX)).is_ok());
        assert!(check_weights(&bytes(0), &shallow, 1, 1, &bias(i32::MAX, 0)).is_err());
        // Columns of the second group follow those of the first.
        let grouped = weights(&[4, 1, 1, 1], |at| if at < 2 { 127 } else { 0 }, Vec::new());
        assert!(check_weights(&bytes(0), &grouped, 1, 2, &bias(0, i32::MAX)).is_ok());
        assert!(check_weights(&bytes(0), &grouped, 1, 2, &bias(i32::MAX, 0)).is_err());
    }

    #[test]
    fn a_bias_far_outside_the_bounds_is_replaced() {
        const NEAR: i32 = i32::MAX - 100;
        // `steps` is one output step in units of the accumulator; `bounds` are those of the Relu.
        let fitted = |bias: [i32; 2], factor: f32, steps: f32, bounds: [u8; 2], floats: bool| {
            let weights = weights(&[8, 2], |at| [3, 0][at % 2], Vec::new());
            let mut bias = bias.to_vec();
            let quantization = Int8Quantization {
                scale: 0.01 * steps,
                zero_point: 10,
                signed: false,
            };
            let integers = Destination::Int8 {
                output: "y".into(),
                quantization,
                bounds,
                nodes: Vec::new(),
            };
            let end = if floats {
                Destination::Floats(FloatReason::FloatOutput)
            } else {
                integers
            };
            fit_bias((&weights, 1, 1), factor, &mut bias, &bytes(0), &end)?;
            Ok::<_, FloatReason>(bias)
        };
        let span = 8 * 3 * 255;
        for (bias, moved) in [(-NEAR, span - i32::MAX), (NEAR, i32::MAX - span)] {
            for factor in [1.0, -1.0] {
                let found = fitted([bias, bias], factor, 1e4, [10, 255], false);
                // The second column has zero weights, so its bias fits unchanged.
                assert_eq!(found, Ok(vec![moved, bias]), "{bias} {factor}");
            }
        }
        assert_eq!(
            fitted([-1000, 7], 1.0, 1.0, [0, 255], false),
            Ok(vec![-1000, 7])
        );
        // The exact sum matters for a result within the bounds or one step outside, and for a float
        // result.
        assert!(fitted([-NEAR, 0], 1.0, 1e9, [0, 255], false).is_err());
        assert!(fitted([-NEAR, 0], 1.0, NEAR as f32 / 10.5, [0, 255], false).is_err());
        assert!(fitted([-NEAR, 0], 1.0, NEAR as f32 / 12.0, [0, 255], false).is_ok());
        assert!(fitted([-NEAR, 0], 1.0, 1.0, [0, 255], true).is_err());
    }

    #[test]
    fn a_product_of_two_values_fits_to_a_depth() {
        let fits = |zeros: [u8; 2], depth, bias: &[i32]| {
            let [left, right] = zeros.map(bytes);
            check_pair([&left, &right], depth, bias).is_ok()
        };
        assert!(fits([0, 255], 33_025, &[]));
        assert!(!fits([0, 255], 33_026, &[]));
        assert!(fits([128, 128], 120_000, &[]));
        assert!(fits([0, 255], 33_025, &[0, -22]));
        assert!(!fits([0, 255], 33_025, &[0, i32::MIN]));
    }
}
