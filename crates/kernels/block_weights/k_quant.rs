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

/// Numbers in a group: NumPy sums with eight accumulators.
const LANES: usize = 8;

/// Groups up to which NumPy does not divide a sum.
const UNDIVIDED: usize = 16;

type EightFloats = [f32; LANES];

/// Scale and zero point of a block. Missing rows of the last block of a column count as zeros, up to
/// `size`.
pub(super) fn grid(values: &[f32], size: usize, levels: Levels) -> BlockGrid {
    let mut block = values.to_vec();
    block.resize(size.max(values.len()).next_multiple_of(LANES), 0.0);
    let low = block.iter().copied().fold(f32::INFINITY, f32::min);
    let high = block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let highest = f32::from(levels.highest());
    let inverse = highest / (high - low);
    if low > 0.0 || high < 0.0 {
        return super::single(values, levels, search::grids);
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

/// The best of all roundings of a block with these ends. The block is a multiple of eight.
fn fit(block: &[f32], (low, high): (f32, f32), inverse: f32, highest: f32) -> AffineFit {
    let (block, _) = block.as_chunks::<LANES>();
    let count = block.len();
    let [squares] = sums(0, count, &mut |at| [block[at].map(|value| value * value)]);
    let mean = (squares / (count * LANES) as f32).sqrt();
    let weights: Vec<EightFloats> = block
        .iter()
        .map(|group| group.map(|value| mean + value.abs()))
        .collect();
    let mut levels = vec![[0.0; LANES]; count];
    let [all_weights, values] = sums(0, count, &mut |at| {
        levels[at] = block[at].map(|value| nearest(inverse * (value - low), highest));
        [weights[at], product(weights[at], block[at])]
    });
    let error = |fit: &AffineFit, levels: &[EightFloats]| {
        let [error] = sums(0, count, &mut |at| {
            let off: EightFloats = std::array::from_fn(|lane| {
                fit.scale * levels[at][lane] + fit.minimum - block[at][lane]
            });
            [product(weights[at], product(off, off))]
        });
        error
    };
    let mut best = AffineFit {
        scale: 1.0 / inverse,
        minimum: low,
    };
    let mut least = error(&best, &levels);
    for step in 0..ROUNDS {
        let widened = (-1.0 + 0.1 * f64::from(step) + f64::from(highest)) as f32;
        // The range begins at the minimum of the best fit so far, as in llama.cpp.
        let inverse = match best.minimum == high {
            true => 1.0,
            false => widened / (high - best.minimum),
        };
        let [of_levels, of_squares, of_products] = sums(0, count, &mut |at| {
            let level = block[at].map(|value| nearest(inverse * (value - best.minimum), highest));
            levels[at] = level;
            let weighted = product(weights[at], level);
            [
                weighted,
                product(weighted, level),
                product(weighted, block[at]),
            ]
        });
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

fn product(one: EightFloats, other: EightFloats) -> EightFloats {
    std::array::from_fn(|lane| one[lane] * other[lane])
}

/// Sums of f32 in the order of NumPy's pairwise summation. `terms` returns a group of each.
fn sums<const N: usize, F: FnMut(usize) -> [EightFloats; N]>(
    start: usize,
    count: usize,
    terms: &mut F,
) -> [f32; N] {
    if count > UNDIVIDED {
        let half = count / 2;
        let first = sums(start, half, terms);
        let second = sums(start + half, count - half, terms);
        return std::array::from_fn(|index| first[index] + second[index]);
    }
    let mut totals = [[0.0f32; LANES]; N];
    for at in start..start + count {
        for (total, group) in totals.iter_mut().zip(terms(at)) {
            for (sum, term) in total.iter_mut().zip(group) {
                *sum += term;
            }
        }
    }
    totals.map(|[a, b, c, d, e, f, g, h]| ((a + b) + (c + d)) + ((e + f) + (g + h)))
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
        let (groups, _) = values.as_chunks::<LANES>();
        let sum = |start, count| sums(start, count, &mut |at| [groups[at]])[0];
        assert_eq!(sum(0, 32), sum(0, 16) + sum(16, 16));
        let column = |lane: usize| groups[0][lane] + groups[1][lane];
        let pair = |lane: usize| column(lane) + column(lane + 1);
        assert_eq!(sum(0, 2), (pair(0) + pair(2)) + (pair(4) + pair(6)));
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
