//! Sums of many values.

/// The sum, in lanes, so that it becomes vector code; the same bits for the same values in the same order.
pub fn sum(values: &[f32]) -> f64 {
    sum_of(values, |value| value)
}

/// The sum of the squares, in the same way.
pub fn sum_of_squares(values: &[f32]) -> f64 {
    sum_of(values, |value| value * value)
}

#[inline(always)]
fn sum_of(values: &[f32], of: impl Fn(f32) -> f32) -> f64 {
    // Four vectors: with eight, some of the sums wait in memory.
    const LANES: usize = 16;
    // A lane takes this many values before it is emptied, so that its rounding stays small.
    const PORTION: usize = LANES * 512;
    let mut all = 0.0;
    for portion in values.chunks(PORTION) {
        let mut lanes = [0.0f32; LANES];
        let (blocks, rest) = portion.as_chunks::<LANES>();
        for block in blocks {
            for lane in 0..LANES {
                lanes[lane] += of(block[lane]);
            }
        }
        let rest: f64 = rest.iter().map(|&value| f64::from(of(value))).sum();
        all += rest + lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sum_whatever_the_length() {
        for count in [0, 1, 31, 32, 33, 8191, 8192, 8193, 100_000] {
            let values: Vec<f32> = (0..count).map(|i| (i % 64) as f32 - 20.0).collect();
            // Whole numbers this small add without rounding.
            let slowly: f64 = values.iter().map(|&value| f64::from(value)).sum();
            assert_eq!(sum(&values), slowly, "{count}");
            let squares: f64 = values.iter().map(|&value| f64::from(value * value)).sum();
            assert_eq!(sum_of_squares(&values), squares, "{count}");
        }
        assert!(sum(&[1.0, f32::NAN]).is_nan());
    }
}
