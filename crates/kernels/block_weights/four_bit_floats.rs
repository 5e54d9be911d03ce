//! Floats of 4 bits, as bitsandbytes has them: a block is divided by its largest magnitude, and each
//! quotient becomes the code of a number near it.

/// The numbers that the sixteen codes stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FourBitFloat {
    /// NF4: quantiles of a normal distribution.
    Normal,
    /// FP4: a sign, two bits of exponent, a bit of mantissa.
    Float,
}

/// A quotient above this many of the limits has this code: the limits lie between the quantiles.
const NORMAL_LIMITS: [f32; 15] = [
    -0.848_096_4,
    -0.610_632_9,
    -0.459_995_27,
    -0.339_679_43,
    -0.234_607_41,
    -0.137_911_73,
    -0.045_525_018,
    0.039_790_15,
    0.120_255_25,
    0.203_521_25,
    0.292_013_77,
    0.389_312_54,
    0.501_663_4,
    0.642_786_9,
    0.861_478_4,
];

/// Limits between the magnitudes of FP4, and the codes of the magnitudes in ascending order.
const FLOAT_LIMITS: [f32; 7] = [
    0.002_604_17,
    0.085_937_5,
    0.208_333_33,
    0.291_666_67,
    0.416_666_7,
    0.583_333,
    0.833_333_3,
];
const FLOAT_CODES: [u8; 8] = [0, 1, 6, 7, 4, 5, 2, 3];
const SIGN: u8 = 8;

impl FourBitFloat {
    /// Writes the code of each number, divided by the largest magnitude of its block.
    pub fn codes(self, values: &[f32], magnitude: f32, to: &mut [u8]) {
        let factor = match magnitude {
            0.0 => 0.0,
            _ => 1.0 / magnitude,
        };
        match self {
            FourBitFloat::Normal => {
                for (to, &value) in to.iter_mut().zip(values) {
                    let quotient = value * factor;
                    *to = NORMAL_LIMITS
                        .iter()
                        .fold(0, |code, &limit| code + u8::from(quotient > limit));
                }
            }
            FourBitFloat::Float => {
                for (to, &value) in to.iter_mut().zip(values) {
                    let quotient = value * factor;
                    let level = FLOAT_LIMITS.iter().fold(0, |level, &limit| {
                        level + usize::from(quotient.abs() > limit)
                    });
                    *to = FLOAT_CODES[level] | if quotient < 0.0 { SIGN } else { 0 };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_zero_have_the_codes_of_bitsandbytes() {
        let values = [-2.0, 0.0, 2.0, 1.0, -0.001];
        let mut codes = [0; 5];
        FourBitFloat::Normal.codes(&values, 2.0, &mut codes);
        assert_eq!(codes, [0, 7, 15, 12, 7]);
        FourBitFloat::Float.codes(&values, 2.0, &mut codes);
        assert_eq!(codes, [11, 0, 3, 5, 8]);
        FourBitFloat::Normal.codes(&[0.0], 0.0, &mut codes[..1]);
        assert_eq!(codes[0], 7);
    }

    #[test]
    fn a_limit_itself_has_the_lower_code() {
        for (code, &limit) in NORMAL_LIMITS.iter().enumerate() {
            let mut codes = [0; 2];
            FourBitFloat::Normal.codes(&[limit, limit.next_up()], 1.0, &mut codes);
            assert_eq!(codes, [code as u8, code as u8 + 1]);
        }
    }
}
