//! AdaRound's soft rounding: a weight between its two nearest integers, and the gradient of its
//! place.
//!
//! After Nagel and others, "Up or Down? Adaptive Rounding for Post-Training Quantization" (2020).
//! A variable v gives the fraction h(v) = clip(1.2·σ(v) − 0.1, 0, 1) that is added to the lower
//! integer. The regulariser Σ (1 − |2h − 1|^β) draws each fraction to 0 or 1.

/// Stretch of the sigmoid, so that 0 and 1 are reached.
const STRETCH: f32 = 1.2;
const SHIFT: f32 = -0.1;
/// From here on a variable's fraction is 1, and 0 on the other side. The stretched sigmoid is
/// 1.0002 here.
const SATURATED: f32 = 2.4;

fn sigmoid(v: f32) -> f32 {
    1.0 / (1.0 + (-v).exp())
}

/// The fraction of a variable.
pub fn soft_fraction(v: f32) -> f32 {
    // Most variables end there, and need no exponential then.
    if v.abs() >= SATURATED {
        return if v > 0.0 { 1.0 } else { 0.0 };
    }
    (STRETCH * sigmoid(v) + SHIFT).clamp(0.0, 1.0)
}

/// The variable of a fraction. Fractions near 0 and 1 become the nearest that has a gradient.
pub fn variable_of(fraction: f32) -> f32 {
    let stretched = (fraction.clamp(0.005, 0.995) - SHIFT) / STRETCH;
    (stretched / (1.0 - stretched)).ln()
}

/// Integers that soft rounding may use, and the weight of its regulariser.
#[derive(Clone, Copy, Debug)]
pub struct SoftRounding {
    /// The lowest integer, without zero point.
    pub low: f32,
    /// The highest integer, without zero point.
    pub high: f32,
    /// Weight of the regulariser; 0 turns it off.
    pub regulariser: f32,
    /// Exponent of the regulariser.
    pub beta: f32,
}

impl SoftRounding {
    /// Writes the softly rounded weights: scale · clip(lower + h(v)).
    pub fn round(&self, lower: &[f32], variables: &[f32], scale: f32, out: &mut [f32]) {
        for ((out, &lower), &v) in out.iter_mut().zip(lower).zip(variables) {
            *out = scale * (lower + soft_fraction(v)).clamp(self.low, self.high);
        }
    }

    /// Turns the gradient of the rounded weights into that of the variables, in place.
    ///
    /// It passes where neither the integer nor the fraction is clipped.
    pub fn gradient(&self, lower: &[f32], variables: &[f32], scale: f32, gradient: &mut [f32]) {
        for ((gradient, &lower), &v) in gradient.iter_mut().zip(lower).zip(variables) {
            if v.abs() >= SATURATED {
                *gradient = 0.0;
                continue;
            }
            let sigma = sigmoid(v);
            let fraction = STRETCH * sigma + SHIFT;
            if fraction <= 0.0 || fraction >= 1.0 {
                *gradient = 0.0;
                continue;
            }
            let integer = lower + fraction;
            let inside = integer >= self.low && integer <= self.high;
            let loss = if inside { *gradient * scale } else { 0.0 };
            *gradient = (loss + self.pull(fraction)) * (STRETCH * sigma * (1.0 - sigma));
        }
    }

    /// The derivative of the regulariser by the fraction.
    fn pull(&self, fraction: f32) -> f32 {
        let away = 2.0 * fraction - 1.0;
        if self.regulariser == 0.0 || away == 0.0 {
            return 0.0;
        }
        -2.0 * self.regulariser * self.beta * away.abs().powf(self.beta - 1.0) * away.signum()
    }
}

/// The exponent at an iteration: `begin` until the share `warm_start` of all, then along a cosine
/// to `end`. `None` during the warm start, which has no regulariser.
pub fn annealed_beta(
    iteration: usize,
    iterations: usize,
    warm_start: f32,
    [begin, end]: [f32; 2],
) -> Option<f32> {
    let warm = warm_start * iterations as f32;
    let at = iteration as f32;
    if at < warm {
        return None;
    }
    let share = (at - warm) / (iterations as f32 - warm).max(1.0);
    Some(end + 0.5 * (begin - end) * (1.0 + (share * std::f32::consts::PI).cos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(rounding: &SoftRounding, lower: f32, v: f32, scale: f32, slope: f32) -> f64 {
        let mut out = [0.0];
        rounding.round(&[lower], &[v], scale, &mut out);
        let away = f64::from((2.0 * soft_fraction(v) - 1.0).abs());
        f64::from(slope) * f64::from(out[0])
            + f64::from(rounding.regulariser) * (1.0 - away.powf(f64::from(rounding.beta)))
    }

    #[test]
    fn gradients_match_central_differences() {
        let rounding = SoftRounding {
            low: -8.0,
            high: 7.0,
            regulariser: 0.03,
            beta: 3.0,
        };
        for (lower, v) in [
            (2.0, 0.4),
            (-5.0, -1.1),
            (0.0, 1.9),
            (6.0, 0.7),
            (7.0, 0.4),
            (3.0, 5.0),
        ] {
            let (scale, slope, step) = (0.25, 1.7, 1e-2);
            let mut gradient = [slope];
            rounding.gradient(&[lower], &[v], scale, &mut gradient);
            let ends = [v + step, v - step].map(|v| cost(&rounding, lower, v, scale, slope));
            let numeric = (ends[0] - ends[1]) / f64::from(2.0 * step);
            assert!(
                (f64::from(gradient[0]) - numeric).abs() < 2e-3 * (1.0 + numeric.abs()),
                "{lower} {v}: {} {numeric}",
                gradient[0]
            );
        }
    }

    #[test]
    fn a_fraction_comes_back_from_its_variable() {
        for fraction in [0.01, 0.3, 0.5, 0.99] {
            assert!((soft_fraction(variable_of(fraction)) - fraction).abs() < 1e-5);
        }
        assert_eq!(soft_fraction(20.0), 1.0);
        assert_eq!(soft_fraction(-20.0), 0.0);
        // The stretched sigmoid is clipped where the exponential is skipped.
        let ends = [SATURATED, -SATURATED].map(|v| STRETCH * sigmoid(v) + SHIFT);
        assert!(ends[0] > 1.0 && ends[1] < 0.0, "{ends:?}");
        assert!(variable_of(0.0).is_finite() && variable_of(1.0).is_finite());
    }

    #[test]
    fn the_exponent_falls_along_a_cosine_after_the_warm_start() {
        let beta = |at| annealed_beta(at, 1000, 0.2, [20.0, 2.0]);
        assert_eq!(beta(199), None);
        assert_eq!(beta(200), Some(20.0));
        assert!((beta(600).unwrap() - 11.0).abs() < 1e-3);
        assert!(beta(999).unwrap() < 2.01);
    }
}
