//! A base-2 logarithm with the same bits on every platform.
//!
//! `f64::log2` calls the platform's math library: glibc natively, another one in wasm. Their last
//! bits differ. Between two nearly equal candidates that bit decides, and the browser would write a
//! different model than the command line. This version uses only additions, multiplications and
//! divisions, which IEEE 754 rounds alike everywhere.

/// `2 / ln 2`
const TWO_OVER_LN_2: f64 = 2.885_390_081_777_926_8;

/// Returns the base-2 logarithm of a positive normal number, to about 1e-15.
///
/// Write x = 2^e·m with m between √½ and √2, so log2 x = e + log2 m. With t = (m - 1)/(m + 1), ln m
/// = 2·artanh t = 2·(t + t³/3 + t⁵/5 + …). As |t| < 0.172, each term is at most 1/34 of the
/// previous one. Eleven terms suffice.
#[inline]
pub fn log2(x: f64) -> f64 {
    debug_assert!(x >= f64::MIN_POSITIVE && x.is_finite(), "log2 of {x}");
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let mut series = 0.0;
    for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * square + 1.0 / odd;
    }
    exponent as f64 + TWO_OVER_LN_2 * (t * series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_exact() {
        for power in [-1022, -7, 0, 1, 52, 1023] {
            assert_eq!(log2(2f64.powi(power)), f64::from(power));
        }
    }

    #[test]
    fn log2_matches_the_library() {
        let mut x = 1e-300;
        while x < 1e300 {
            let error = (log2(x) - x.log2()).abs();
            assert!(error <= 1e-15 * x.log2().abs().max(1.0), "{x}: {error}");
            x *= 1.37;
        }
    }
}
