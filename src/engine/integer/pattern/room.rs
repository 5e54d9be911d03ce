//! Whether the sums of a product fit 32 bits. The kernels' sums wrap: what goes beyond would come out as something else
//! altogether, so such a product runs in float. It takes a depth of more than 33,000, or a bias near the end of the integers.
//! (MatMulInteger and ConvInteger make integers of 32 bits by definition; theirs wrap in ONNX Runtime as well.)

use super::network::{Operand, Weights};
use super::reader::Reason;

/// The greatest sum there may be.
const MOST: i64 = i32::MAX as i64;

/// How far integers can be from their zero point.
fn reach(operand: &Operand) -> i64 {
    // Of 16 bits both bytes are multiplied by themselves, each with a zero point of its own.
    let bytes = operand.quantization().map(|q| q.zero_point);
    bytes.map_or(255, |zero| i64::from(zero.max(255 - zero)))
}

/// Whether every sum of an operand's integers with weights, and a bias, fits. The output channels are on `axis` of the weights, in
/// each group anew where the first axis is that of the input.
pub(super) fn of_weights(
    operand: &Operand,
    weights: &Weights,
    axis: usize,
    groups: usize,
    bias: &[i32],
) -> Result<(), Reason> {
    let columns = weights.shape.get(axis).copied().unwrap_or(0);
    let count = weights.integers.len();
    if columns == 0 || count == 0 || groups == 0 {
        return Ok(());
    }
    let each = if axis == 0 { columns } else { columns * groups };
    let offset = |column: usize| bias.get(column).map_or(0, |&bias| i64::from(bias).abs());
    let greatest = (0..bias.len()).map(offset).max().unwrap_or(0);
    let reach = reach(operand);
    let depth = i64::try_from(count / each).unwrap_or(MOST);
    // Almost always this tells it, without a look at each weight.
    if depth.saturating_mul(255 * reach).saturating_add(greatest) <= MOST {
        return Ok(());
    }
    let behind: usize = weights.shape[axis + 1..].iter().product();
    let in_group = count.div_ceil(if axis == 0 { 1 } else { groups });
    let zero = |column: usize| {
        weights
            .zero_points
            .get(column)
            .map_or(0, |&zero| i64::from(zero))
    };
    let mut sums: Vec<i64> = (0..each).map(offset).collect();
    for (at, &weight) in weights.integers.iter().enumerate() {
        let column = at / in_group * columns + at / behind.max(1) % columns;
        if let Some(sum) = sums.get_mut(column) {
            *sum += (i64::from(weight) - zero(column)).abs() * reach;
        }
    }
    match sums.iter().all(|&sum| sum <= MOST) {
        true => Ok(()),
        false => Err("its sums can go beyond 32 bits".into()),
    }
}

/// The same for a product of two values. Of two with 16 bits each byte of one would meet each of the other: four products, which take
/// three times as long as one of floats.
pub(super) fn of_pair(
    [left, right]: [&Operand; 2],
    depth: usize,
    bias: &[i32],
) -> Result<(), Reason> {
    if let [Operand::Wide(..), Operand::Wide(..)] = [left, right] {
        return Err("it multiplies two values of 16 bits, which floats do faster".into());
    }
    let depth = i64::try_from(depth).unwrap_or(MOST);
    let offsets = bias.iter().map(|&bias| i64::from(bias).abs());
    let sum = depth.saturating_mul(reach(left) * reach(right));
    match sum.saturating_add(offsets.max().unwrap_or(0)) <= MOST {
        true => Ok(()),
        false => Err("its sums can go beyond 32 bits".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::integer::quantization::Quantization;

    fn bytes(zero_point: u8) -> Operand {
        let quantization = Quantization {
            scale: 0.1,
            zero_point,
            signed: false,
        };
        Operand::Integers("x".into(), quantization)
    }

    fn weights(shape: &[usize], value: impl Fn(usize) -> i8, zero_points: Vec<i8>) -> Weights {
        Weights {
            shape: shape.to_vec(),
            integers: (0..shape.iter().product()).map(value).collect(),
            scales: vec![0.1],
            zero_points,
        }
    }

    #[test]
    fn a_deep_product_fits_as_long_as_its_weights_are_small() {
        // 66,311 · 127 · 255 is below 2³¹, and one more is not.
        for (depth, fits) in [(66_311, true), (66_312, false)] {
            let deep = weights(&[depth, 2], |_| 127, Vec::new());
            assert_eq!(
                of_weights(&bytes(0), &deep, 1, 1, &[]).is_ok(),
                fits,
                "{depth}"
            );
        }
        let small = weights(&[100_000, 2], |_| 12, Vec::new());
        assert!(of_weights(&bytes(0), &small, 1, 1, &[]).is_ok());
        // Half as far from the zero point it is half as much.
        let deep = weights(&[130_000, 1], |_| -127, Vec::new());
        assert!(of_weights(&bytes(128), &deep, 1, 1, &[]).is_ok());
        assert!(of_weights(&bytes(0), &deep, 1, 1, &[]).is_err());
    }

    #[test]
    fn zero_points_and_biases_count_in_their_own_column() {
        let one = |at: usize| if at.is_multiple_of(2) { 127 } else { 0 };
        let deep = |zeros| weights(&[40_000, 2], one, zeros);
        assert!(of_weights(&bytes(0), &deep(vec![0, -128]), 1, 1, &[]).is_ok());
        assert!(of_weights(&bytes(0), &deep(vec![-128, 0]), 1, 1, &[]).is_err());
        let bias = |first, second| [first, second];
        let shallow = weights(&[4, 2], one, Vec::new());
        assert!(of_weights(&bytes(0), &shallow, 1, 1, &bias(0, i32::MAX)).is_ok());
        assert!(of_weights(&bytes(0), &shallow, 1, 1, &bias(i32::MAX, 0)).is_err());
        // The second group's columns come behind the first's.
        let grouped = weights(&[4, 1, 1, 1], |at| if at < 2 { 127 } else { 0 }, Vec::new());
        assert!(of_weights(&bytes(0), &grouped, 1, 2, &bias(0, i32::MAX)).is_ok());
        assert!(of_weights(&bytes(0), &grouped, 1, 2, &bias(i32::MAX, 0)).is_err());
    }

    #[test]
    fn a_product_of_two_values_fits_to_a_depth() {
        let fits = |zeros: [u8; 2], depth, bias: &[i32]| {
            let [left, right] = zeros.map(bytes);
            of_pair([&left, &right], depth, bias).is_ok()
        };
        assert!(fits([0, 255], 33_025, &[]));
        assert!(!fits([0, 255], 33_026, &[]));
        assert!(fits([128, 128], 120_000, &[]));
        assert!(fits([0, 255], 33_025, &[0, -22]));
        assert!(!fits([0, 255], 33_025, &[0, i32::MIN]));
    }
}
