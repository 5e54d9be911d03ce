//! Target of quantization: the integer range and the reals that it represents.

use super::{PowerOfTwo, Range};

/// The integers that a tensor will use. Most methods weigh the cost of clipping against that of
/// coarser steps, so they need the number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerRange {
    /// Least integer in use.
    pub low: i32,
    /// Greatest integer in use.
    pub high: i32,
    /// True if the range is symmetric around zero.
    pub symmetric: bool,
    /// Restriction to powers of two, which also selects one if the method does not.
    pub power_of_two: PowerOfTwo,
}

impl Default for IntegerRange {
    /// 0 to 255, as in ONNX Runtime.
    fn default() -> IntegerRange {
        IntegerRange::new(0, 255, false)
    }
}

/// The reals that the integers represent: `scale·k` for each integer `k` from `lowest` to
/// `highest`. Zero is always one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UniformGrid {
    pub(super) scale: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl IntegerRange {
    /// The integers from `low` to `high`, with any scale.
    pub fn new(low: i32, high: i32, symmetric: bool) -> IntegerRange {
        IntegerRange {
            low,
            high,
            symmetric,
            power_of_two: PowerOfTwo::No,
        }
    }

    /// Number of steps between the least and the greatest integer.
    pub(super) fn steps(&self) -> f64 {
        (f64::from(self.high) - f64::from(self.low)).max(1.0)
    }

    /// The reals that the integers represent for a tensor of this range, or `None` for the range
    /// [0, 0]. This follows the quantizer's rule for scale and zero point, as far as the expected
    /// error needs it.
    pub(super) fn grid(&self, range: Range) -> Option<UniformGrid> {
        let (min, max) = self.covered(range);
        let scale = (max - min) / self.steps();
        if scale < f64::from(f32::MIN_POSITIVE) {
            return None;
        }
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let zero_point = match self.symmetric {
            true => ((low + high) / 2.0).round_ties_even(),
            false => (low - min / scale).round_ties_even(),
        };
        Some(UniformGrid {
            scale,
            lowest: low - zero_point,
            highest: high - zero_point,
        })
    }

    /// The least range with a power-of-two scale that clips nothing of `range`.
    pub(super) fn power_of_two_range(&self, range: Range) -> Range {
        let (min, max) = self.covered(range);
        if max <= min {
            return range;
        }
        let least = exponent_of((max - min) / self.steps());
        // The next power of two fits, or the one after it if rounding the zero point costs a step.
        for exponent in least..least + 3 {
            if let Some(candidate) =
                self.range_at(exponent, (min / power_of_two(exponent)).round_ties_even())
                && f64::from(candidate.max) - max >= -0.5 * power_of_two(exponent)
                && f64::from(candidate.min) - min <= 0.5 * power_of_two(exponent)
            {
                return candidate;
            }
        }
        // The scale exceeds f32.
        range
    }

    /// The range of scale `2^exponent` whose lowest real is `lowest` steps from zero, or the
    /// symmetric one. Returns `None` if f32 cannot represent it.
    pub(super) fn range_at(&self, exponent: i32, lowest: f64) -> Option<Range> {
        let scale = power_of_two(exponent);
        let (min, max) = match self.symmetric {
            true => (-0.5 * self.steps() * scale, 0.5 * self.steps() * scale),
            false => (lowest * scale, (lowest + self.steps()) * scale),
        };
        let range = Range::new(min as f32, max as f32);
        (range.min.is_finite() && range.max.is_finite()).then_some(range)
    }

    /// The ends of the reals that need integers, including zero.
    pub(super) fn covered(&self, range: Range) -> (f64, f64) {
        let (min, max) = (f64::from(range.min.min(0.0)), f64::from(range.max.max(0.0)));
        match self.symmetric {
            true => (-max.max(-min), max.max(-min)),
            false => (min, max),
        }
    }
}

/// Exponent of the greatest power of two that does not exceed `scale`, within the normal f32
/// numbers.
pub(super) fn exponent_of(scale: f64) -> i32 {
    let exponent = ((scale.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    exponent.clamp(-126, 127)
}

/// `2^exponent`, for the exponents of f32.
pub(super) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    const U8: IntegerRange = IntegerRange {
        low: 0,
        high: 255,
        symmetric: false,
        power_of_two: PowerOfTwo::No,
    };

    #[test]
    fn zero_is_always_on_the_grid() {
        let grid = U8.grid(Range::new(-1.0, 2.0)).unwrap();
        assert_eq!((grid.lowest, grid.highest), (-85.0, 170.0));
        assert_eq!(U8.grid(Range::new(0.5, 2.0)).unwrap().lowest, 0.0);
        assert_eq!(U8.grid(Range::new(0.0, 0.0)), None);
        let mirrored = IntegerRange::new(-127, 127, true)
            .grid(Range::new(-1.0, 2.0))
            .unwrap();
        assert_eq!((mirrored.lowest, mirrored.highest), (-127.0, 127.0));
        assert_eq!(mirrored.scale, 4.0 / 254.0);
    }

    #[test]
    fn a_power_of_two_range_clips_nothing_and_has_a_power_of_two_scale() {
        for (target, range, scale) in [
            (U8, Range::new(0.0, 255.0), 1.0),
            (U8, Range::new(0.0, 256.0), 2.0),
            (U8, Range::new(-1.0, 0.9), 1.0 / 128.0),
            (
                IntegerRange::new(-127, 127, true),
                Range::new(-3.0, 127.0),
                1.0,
            ),
            (
                IntegerRange::new(-127, 127, true),
                Range::new(-128.0, 1.0),
                2.0,
            ),
            // Half a step beyond the last integer still rounds to it.
            (
                IntegerRange::new(0, 255, true),
                Range::new(-1.0, 1.0),
                1.0 / 128.0,
            ),
        ] {
            let covering = target.power_of_two_range(range);
            assert_eq!(
                target.grid(covering).unwrap().scale,
                scale,
                "{range:?} became {covering:?}"
            );
        }
    }
}
