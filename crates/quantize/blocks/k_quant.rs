//! k-quant: scale and minimum of a block by weighted least squares, for several roundings.
//!
//! After `make_qkx2_quants` of llama.cpp, in the form of ONNX Runtime's `quant_tensor_k_quant_cpu`.
//! It minimizes Σ w·(s·q + m − x)², where a number's weight w is its magnitude plus the block's root
//! mean square. The f32 arithmetic, NumPy's pairwise summation included, has ONNX Runtime's order,
//! so the integers are equal. It rounds the zero point only at the end.
//!
//! ONNX Runtime clips the zero point of a block whose numbers all have one sign, and loses the block.
//! Such blocks are searched instead, with zero in their range.

use super::grid::{BlockGrid, Levels, from_ends};
use super::search;

/// Roundings to try: the range takes one level less, then 0.1 more each time.
const ROUNDS: i32 = 20;

/// Numbers up to which NumPy sums with eight accumulators.
const PAIRWISE: usize = 128;

/// Scale and zero point of a block. Missing rows of the last block of a column count as zeros, up to
/// `size`.
pub(super) fn grid(values: &[f32], size: usize, levels: Levels) -> BlockGrid {
    let mut block = values.to_vec();
    block.resize(size.max(values.len()), 0.0);
    let low = block.iter().copied().fold(f32::INFINITY, f32::min);
    let high = block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let highest = f32::from(levels.highest());
    let inverse = highest / (high - low);
    if low > 0.0 || high < 0.0 {
        return search::grid(values, levels);
    }
    if low == high || !inverse.is_finite() || inverse == 0.0 {
        return from_ends(values, levels);
    }
    let fitted = fit(&block, (low, high), inverse, highest);
    BlockGrid {
        scale: fitted.scale,
        zero_point: (-fitted.minimum / fitted.scale)
            .round_ties_even()
            .clamp(0.0, highest),
    }
}

/// The integer for a real number: f64 arithmetic, and ties round to even.
pub(super) fn integer(grid: BlockGrid, value: f32, levels: Levels) -> u8 {
    if grid.scale == 0.0 {
        return grid.zero_point as u8;
    }
    let exact = f64::from(value) / f64::from(grid.scale) + f64::from(grid.zero_point);
    exact
        .round_ties_even()
        .clamp(0.0, f64::from(levels.highest())) as u8
}

/// real = scale · integer + minimum.
struct AffineFit {
    scale: f32,
    minimum: f32,
}

/// The best of all roundings of a block with these ends.
fn fit(block: &[f32], (low, high): (f32, f32), inverse: f32, highest: f32) -> AffineFit {
    let count = block.len();
    let squares = sum(count, |i| block[i] * block[i]);
    let mean = (squares / count as f32).sqrt();
    let weights: Vec<f32> = block.iter().map(|value| mean + value.abs()).collect();
    let all_weights = sum(count, |i| weights[i]);
    let values = sum(count, |i| weights[i] * block[i]);
    let error = |fit: &AffineFit, levels: &[f32]| {
        sum(count, |i| {
            let off = fit.scale * levels[i] + fit.minimum - block[i];
            weights[i] * (off * off)
        })
    };
    let mut levels = vec![0.0; count];
    let round = |levels: &mut [f32], inverse: f32, minimum: f32| {
        for (level, value) in levels.iter_mut().zip(block) {
            *level = nearest(inverse * (value - minimum), highest);
        }
    };
    let mut best = AffineFit {
        scale: 1.0 / inverse,
        minimum: low,
    };
    round(&mut levels, inverse, low);
    let mut least = error(&best, &levels);
    for step in 0..ROUNDS {
        let widened = (-1.0 + 0.1 * f64::from(step) + f64::from(highest)) as f32;
        // The range begins at the minimum of the best fit so far, as in llama.cpp.
        let inverse = match best.minimum == high {
            true => 1.0,
            false => widened / (high - best.minimum),
        };
        round(&mut levels, inverse, best.minimum);
        let of_levels = sum(count, |i| weights[i] * levels[i]);
        let of_squares = sum(count, |i| weights[i] * levels[i] * levels[i]);
        let of_products = sum(count, |i| weights[i] * levels[i] * block[i]);
        let determinant = all_weights * of_squares - of_levels * of_levels;
        let tried = AffineFit {
            scale: (all_weights * of_products - values * of_levels) / determinant,
            minimum: (of_squares * values - of_levels * of_products) / determinant,
        };
        let tried_error = error(&tried, &levels);
        if tried_error < least {
            (least, best) = (tried_error, tried);
        }
    }
    best
}

/// The nearest level from 0 to `highest`; ties go to the even one.
fn nearest(value: f32, highest: f32) -> f32 {
    // Above 2^23, floats are integers: adding a number of this size rounds, and vectorizes.
    const TO_INTEGER: f32 = 12_582_912.0;
    value.clamp(0.0, highest) + TO_INTEGER - TO_INTEGER
}

/// A sum of f32 in the order of NumPy's pairwise summation.
fn sum(count: usize, term: impl Fn(usize) -> f32 + Copy) -> f32 {
    range_sum(0, count, term)
}

fn range_sum(start: usize, count: usize, term: impl Fn(usize) -> f32 + Copy) -> f32 {
    if count > PAIRWISE {
        let half = count / 2 / 8 * 8;
        return range_sum(start, half, term) + range_sum(start + half, count - half, term);
    }
    let whole = count / 8 * 8;
    let mut lanes = [0.0f32; 8];
    for group in (start..start + whole).step_by(8) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(group + lane);
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    (start + whole..start + count).fold(sum, |sum, at| sum + term(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits, scale, zero point and integers.
    const EXPECTED: [(u8, f32, f32, [u8; 16]); 3] = [
        (
            2,
            0.410_130_26,
            1.0,
            [0, 1, 1, 1, 3, 0, 0, 3, 1, 2, 2, 1, 2, 3, 3, 1],
        ),
        (
            4,
            0.096_569_72,
            6.0,
            [0, 6, 7, 5, 14, 2, 3, 15, 7, 11, 10, 5, 12, 15, 13, 7],
        ),
        (
            8,
            0.005_906_396,
            101.0,
            [
                0, 97, 124, 79, 230, 42, 50, 253, 118, 179, 169, 87, 200, 243, 214, 113,
            ],
        ),
    ];

    fn levels(bits: u8) -> Levels {
        Levels {
            bits,
            symmetric: false,
        }
    }

    fn numbers(seed: u32, count: usize) -> Vec<f32> {
        let mut state = seed;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..count).map(|_| random() + random() * random()).collect()
    }

    #[test]
    fn grids_and_integers_are_those_of_onnx_runtime() {
        // The expected values come from `quant_tensor_k_quant_cpu` of ONNX Runtime 1.31.1.
        let block: Vec<f32> = (0..16)
            .map(|i| ((i * i * 37) % 101) as f32 / 64.0 - 0.6)
            .collect();
        for (bits, scale, zero_point, integers) in EXPECTED {
            let found = grid(&block, 16, levels(bits));
            assert_eq!(
                (found.scale, found.zero_point),
                (scale, zero_point),
                "{bits}"
            );
            let found: Vec<u8> = block
                .iter()
                .map(|&value| integer(found, value, levels(bits)))
                .collect();
            assert_eq!(found, integers, "{bits}");
        }
    }

    #[test]
    fn long_blocks_are_summed_in_halves() {
        let values = numbers(3, 256);
        let halves = [&values[..128], &values[128..]].map(|half| sum(128, |i| half[i]));
        assert_eq!(sum(256, |i| values[i]), halves[0] + halves[1]);
        assert_eq!(sum(5, |i| values[i]), values[..5].iter().sum::<f32>());
    }

    #[test]
    fn ties_go_to_the_even_level() {
        let found = [-3.0, 0.5, 1.5, 2.5, 14.6, 1e30].map(|value| nearest(value, 15.0));
        assert_eq!(found, [0.0, 0.0, 2.0, 2.0, 15.0, 15.0]);
    }

    #[test]
    fn blocks_of_one_sign_and_of_zeros_come_back() {
        for bits in [2, 4, 8] {
            let steps = f32::from(levels(bits).highest());
            for values in [
                numbers(1, 32).iter().map(|v| v.abs() + 3.0).collect(),
                numbers(2, 32).iter().map(|v| -v.abs() - 3.0).collect(),
                vec![0.3; 32],
                vec![0.0; 32],
                vec![1e-44; 32],
            ] {
                let values: Vec<f32> = values;
                let largest = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
                let found = grid(&values, 32, levels(bits));
                for &value in &values {
                    let back = found.real(integer(found, value, levels(bits)));
                    let off = (back - value).abs();
                    assert!(
                        off <= largest / steps * 0.75 + 1e-43,
                        "{bits}: {value} {back}"
                    );
                }
            }
        }
    }

    /// The objective, with the nearest levels.
    fn affine_error(block: &[f32], fit: &AffineFit, highest: f32) -> f32 {
        let squares: f32 = block.iter().map(|value| value * value).sum();
        let mean = (squares / block.len() as f32).sqrt();
        let error = |&value: &f32| {
            let level = nearest((value - fit.minimum) / fit.scale, highest);
            (mean + value.abs()) * (fit.scale * level + fit.minimum - value).powi(2)
        };
        block.iter().map(error).sum()
    }

    #[test]
    fn it_lowers_the_weighted_error_of_minimum_and_maximum() {
        for bits in [2, 4, 8] {
            let highest = f32::from(levels(bits).highest());
            let mut gained = 0;
            for seed in 0..100 {
                let block = numbers(seed, 32);
                let low = block.iter().copied().fold(f32::INFINITY, f32::min);
                let high = block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let inverse = highest / (high - low);
                let plain = AffineFit {
                    scale: 1.0 / inverse,
                    minimum: low,
                };
                let fitted = fit(&block, (low, high), inverse, highest);
                let errors = [plain, fitted].map(|fit| affine_error(&block, &fit, highest));
                assert!(errors[1] <= errors[0] * 1.001, "{bits} bits: {errors:?}");
                gained += usize::from(errors[1] < errors[0]);
            }
            assert!(gained > 90, "{bits} bits: {gained} of 100");
        }
    }

    #[test]
    fn missing_rows_count_as_zeros() {
        let short = numbers(5, 20);
        let mut padded = short.clone();
        padded.resize(32, 0.0);
        assert_eq!(grid(&short, 32, levels(4)), grid(&padded, 32, levels(4)));
        let positive: Vec<f32> = short.iter().map(|v| v.abs() + 1.0).collect();
        assert_eq!(grid(&positive, 32, levels(4)).zero_point, 0.0);
    }
}
