//! What one look at many values tells.

/// What one look at the values tells; it means something only where all are finite.
pub struct Ends {
    /// The least, the greatest, the least magnitude.
    pub reach: [f32; 3],
    /// How many are zero, of either sign.
    pub zeros: u64,
    /// Whether none is infinite or NaN.
    pub all_finite: bool,
}

impl Ends {
    /// Looks at values. Written in lanes, so that it becomes vector code.
    pub fn of(values: &[f32]) -> Ends {
        const LANES: usize = 16;
        let mut least = [f32::INFINITY; LANES];
        let mut greatest = [f32::NEG_INFINITY; LANES];
        let mut nearest = [f32::INFINITY; LANES];
        // A lane counts up to 2^32 zeros, of 2^36 values.
        let mut zeros = [0u32; LANES];
        // Zero for as long as everything is finite; NaN from then on.
        let mut finite = [0.0f32; LANES];
        let mut take = |lane: usize, value: f32| {
            least[lane] = if value < least[lane] {
                value
            } else {
                least[lane]
            };
            greatest[lane] = if value > greatest[lane] {
                value
            } else {
                greatest[lane]
            };
            let near = value.abs();
            nearest[lane] = if near < nearest[lane] {
                near
            } else {
                nearest[lane]
            };
            zeros[lane] += u32::from(value == 0.0);
            finite[lane] += value * 0.0;
        };
        let blocks = values.chunks_exact(LANES);
        for (lane, &value) in blocks.remainder().iter().enumerate() {
            take(lane, value);
        }
        for block in blocks {
            for (lane, &value) in block.iter().enumerate() {
                take(lane, value);
            }
        }
        Ends {
            reach: [
                least.iter().copied().fold(f32::INFINITY, f32::min),
                greatest.iter().copied().fold(f32::NEG_INFINITY, f32::max),
                nearest.iter().copied().fold(f32::INFINITY, f32::min),
            ],
            zeros: zeros.iter().map(|&count| u64::from(count)).sum(),
            all_finite: finite.iter().all(|&sum| sum == 0.0),
        }
    }
}
