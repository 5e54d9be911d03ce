//! Functions of single values, and of pairs.

use std::f32::consts::{FRAC_2_SQRT_PI, PI, SQRT_2};

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ScalarFunction {
    Sigmoid,
    Tanh,
    /// Slope and shift of the line.
    HardSigmoid(f32, f32),
    HardSwish,
    Erf,
    Gelu,
    /// GELU by its approximation with tanh.
    GeluTanh,
    Exp,
    Log,
    Sqrt,
    Reciprocal,
    Negative,
    Absolute,
    Softplus,
    Elu(f32),
    Power(f32),
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The error function, by formula 7.1.26 of Abramowitz and Stegun, whose error is below 2e-7.
fn erf(x: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let terms = [
        1.061_405_4,
        -1.453_152,
        1.421_413_7,
        -0.284_496_74,
        0.254_829_6,
    ];
    let sum = terms.iter().fold(0.0, |sum, term| (sum + term) * t);
    (1.0 - sum * (-x * x).exp()).copysign(x)
}

impl ScalarFunction {
    /// The values at `x`.
    pub(super) fn forward(self, x: &[f32], y: &mut [f32]) {
        let each = y.iter_mut().zip(x);
        match self {
            // Each has a loop of its own, which is vectorized.
            ScalarFunction::HardSwish => {
                each.for_each(|(y, &x)| *y = ScalarFunction::HardSwish.value(x));
            }
            ScalarFunction::HardSigmoid(slope, shift) => {
                each.for_each(|(y, &x)| *y = ScalarFunction::HardSigmoid(slope, shift).value(x));
            }
            _ => each.for_each(|(y, &x)| *y = self.value(x)),
        }
    }

    /// Adds the gradients at `x`.
    pub(super) fn backward(self, x: &[f32], slope: &[f32], by: &mut [f32]) {
        let each = by.iter_mut().zip(slope).zip(x);
        match self {
            ScalarFunction::HardSwish => {
                each.for_each(|((by, slope), &x)| {
                    *by += slope * ScalarFunction::HardSwish.slope(x)
                });
            }
            ScalarFunction::HardSigmoid(factor, shift) => {
                let of = ScalarFunction::HardSigmoid(factor, shift);
                each.for_each(|((by, slope), &x)| *by += slope * of.slope(x));
            }
            _ => each.for_each(|((by, slope), &x)| *by += slope * self.slope(x)),
        }
    }

    /// The value at `x`.
    #[inline(always)]
    pub fn value(self, x: f32) -> f32 {
        match self {
            ScalarFunction::Sigmoid => sigmoid(x),
            ScalarFunction::Tanh => x.tanh(),
            ScalarFunction::HardSigmoid(slope, shift) => (slope * x + shift).clamp(0.0, 1.0),
            ScalarFunction::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            ScalarFunction::Erf => erf(x),
            ScalarFunction::Gelu => 0.5 * x * (1.0 + erf(x / SQRT_2)),
            ScalarFunction::GeluTanh => 0.5 * x * (1.0 + inner(x).tanh()),
            ScalarFunction::Exp => x.exp(),
            ScalarFunction::Log => x.ln(),
            ScalarFunction::Sqrt => x.sqrt(),
            ScalarFunction::Reciprocal => 1.0 / x,
            ScalarFunction::Negative => -x,
            ScalarFunction::Absolute => x.abs(),
            ScalarFunction::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            ScalarFunction::Elu(alpha) => {
                if x < 0.0 {
                    alpha * x.exp_m1()
                } else {
                    x
                }
            }
            ScalarFunction::Power(exponent) => x.powf(exponent),
        }
    }

    /// The slope at `x`.
    #[inline(always)]
    pub fn slope(self, x: f32) -> f32 {
        match self {
            ScalarFunction::Sigmoid => sigmoid(x) * sigmoid(-x),
            ScalarFunction::Tanh => 1.0 - x.tanh() * x.tanh(),
            ScalarFunction::HardSigmoid(slope, shift) => {
                let inside = slope * x + shift;
                if inside > 0.0 && inside < 1.0 {
                    slope
                } else {
                    0.0
                }
            }
            ScalarFunction::HardSwish if x <= -3.0 => 0.0,
            ScalarFunction::HardSwish if x >= 3.0 => 1.0,
            ScalarFunction::HardSwish => x / 3.0 + 0.5,
            ScalarFunction::Erf => FRAC_2_SQRT_PI * (-x * x).exp(),
            ScalarFunction::Gelu => {
                let density = (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
                0.5 * (1.0 + erf(x / SQRT_2)) + x * density
            }
            ScalarFunction::GeluTanh => {
                let tanh = inner(x).tanh();
                let more = GELU_FACTOR * (1.0 + 3.0 * GELU_CUBE * x * x);
                0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * more
            }
            ScalarFunction::Exp => x.exp(),
            ScalarFunction::Log => 1.0 / x,
            ScalarFunction::Sqrt => 0.5 / x.sqrt(),
            ScalarFunction::Reciprocal => -1.0 / (x * x),
            ScalarFunction::Negative => -1.0,
            ScalarFunction::Absolute => {
                if x < 0.0 {
                    -1.0
                } else {
                    1.0
                }
            }
            ScalarFunction::Softplus => sigmoid(x),
            ScalarFunction::Elu(alpha) => {
                if x < 0.0 {
                    alpha * x.exp()
                } else {
                    1.0
                }
            }
            ScalarFunction::Power(exponent) => exponent * x.powf(exponent - 1.0),
        }
    }
}

/// √(2/π), and the factor of the cube.
const GELU_FACTOR: f32 = 0.797_884_6;
const GELU_CUBE: f32 = 0.044_715;

fn inner(x: f32) -> f32 {
    GELU_FACTOR * (x + GELU_CUBE * x * x * x)
}

/// An operation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Pairwise {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Pairwise {
    /// The values for `a` and `b`.
    pub(super) fn forward(self, [a, b]: [&[f32]; 2], y: &mut [f32]) {
        let each = y.iter_mut().zip(a).zip(b);
        match self {
            Pairwise::Add => each.for_each(|((y, a), b)| *y = a + b),
            Pairwise::Subtract => each.for_each(|((y, a), b)| *y = a - b),
            Pairwise::Multiply => each.for_each(|((y, a), b)| *y = a * b),
            Pairwise::Divide => each.for_each(|((y, a), b)| *y = a / b),
        }
    }

    /// Adds the gradients of `a` and `b`. Values are read where a derivative depends on them.
    pub(super) fn backward(
        self,
        [a, b]: [&[f32]; 2],
        slope: &[f32],
        [by_a, by_b]: [Option<&mut [f32]>; 2],
    ) {
        let add = |by: Option<&mut [f32]>, sign: f32| {
            let pairs = by.into_iter().flatten().zip(slope);
            pairs.for_each(|(by, slope)| *by += slope * sign);
        };
        let multiplied = |by: Option<&mut [f32]>, other: &[f32]| {
            let pairs = by.into_iter().flatten().zip(slope).zip(other);
            pairs.for_each(|((by, slope), other)| *by += slope * other);
        };
        match self {
            Pairwise::Add => {
                add(by_a, 1.0);
                add(by_b, 1.0);
            }
            Pairwise::Subtract => {
                add(by_a, 1.0);
                add(by_b, -1.0);
            }
            Pairwise::Multiply => {
                multiplied(by_a, b);
                multiplied(by_b, a);
            }
            Pairwise::Divide => {
                let pairs = by_a.into_iter().flatten().zip(slope).zip(b);
                pairs.for_each(|((by, slope), b)| *by += slope * (1.0 / b));
                let pairs = by_b.into_iter().flatten().zip(slope).zip(a).zip(b);
                pairs.for_each(|(((by, slope), a), b)| *by += slope * (-a / (b * b)));
            }
        }
    }
}
