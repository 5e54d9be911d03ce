//! Conversions between floats and bytes, and between i8 and u8.

use super::error::{Error, equal};
use super::output::requantize;
use super::scale::Scale;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::vector::{Dequantizer, Quantizer};

/// Values per vectorized conversion: the bytes of one vector.
pub(super) const LANES: usize = 16;

/// An elementwise function with a vectorized variant.
pub(super) trait Convert<F, T> {
    /// Converts one value.
    fn one(&self, value: F) -> T;

    /// Converts a vector of values.
    fn many(&self, values: &[F; LANES]) -> [T; LANES];
}

/// The identity.
pub(super) struct Identity;

impl<T: Copy> Convert<T, T> for Identity {
    #[inline(always)]
    fn one(&self, value: T) -> T {
        value
    }

    #[inline(always)]
    fn many(&self, values: &[T; LANES]) -> [T; LANES] {
        *values
    }
}

/// Floats to bytes with this scale.
pub(super) struct Quantize {
    to: Scale,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    vectors: Quantizer,
}

impl Quantize {
    pub(super) fn new(to: Scale) -> Quantize {
        Quantize {
            to,
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            vectors: Quantizer::new(to),
        }
    }
}

impl Convert<f32, u8> for Quantize {
    #[inline(always)]
    fn one(&self, value: f32) -> u8 {
        self.to.byte(value)
    }

    #[inline(always)]
    fn many(&self, values: &[f32; LANES]) -> [u8; LANES] {
        // The compiler's vectorization of the scalar loop takes twice the time.
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return self.vectors.sixteen(values);
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        std::array::from_fn(|at| self.one(values[at]))
    }
}

/// Bytes with this scale to floats.
pub(super) struct Dequantize {
    from: Scale,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    vectors: Dequantizer,
}

impl Dequantize {
    pub(super) fn new(from: Scale) -> Dequantize {
        Dequantize {
            from,
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            vectors: Dequantizer::new(from),
        }
    }
}

impl Convert<u8, f32> for Dequantize {
    #[inline(always)]
    fn one(&self, value: u8) -> f32 {
        self.from.value(value)
    }

    #[inline(always)]
    fn many(&self, values: &[u8; LANES]) -> [f32; LANES] {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return self.vectors.sixteen(values);
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        std::array::from_fn(|at| self.one(values[at]))
    }
}

/// Converts all values.
fn convert_all<F: Copy, T>(
    values: &[F],
    output: &mut [T],
    conversion: &impl Convert<F, T>,
) -> Result<(), Error> {
    equal("the output", values.len(), output.len())?;
    let ((values, last), (output, end)) = (values.as_chunks(), output.as_chunks_mut());
    for (to, from) in output.iter_mut().zip(values) {
        *to = conversion.many(from);
    }
    for (to, &from) in end.iter_mut().zip(last) {
        *to = conversion.one(from);
    }
    Ok(())
}

/// QuantizeLinear of floats to u8. For i8, add 128 to the zero point, then [`flip`].
pub fn quantize(values: &[f32], to: Scale, output: &mut [u8]) -> Result<(), Error> {
    convert_all(values, output, &Quantize::new(to))
}

/// DequantizeLinear of u8 to floats.
pub fn dequantize(values: &[u8], from: Scale, output: &mut [f32]) -> Result<(), Error> {
    convert_all(values, output, &Dequantize::new(from))
}

/// Maps i8 bytes to the u8 values 128 higher, and back: `x xor 0x80`.
pub fn flip(values: &mut [u8]) {
    for value in values {
        *value ^= 0x80;
    }
}

/// Computes scale and zero point as ONNX DynamicQuantizeLinear does: u8 over the range of the
/// values and zero.
///
/// A tensor of zeros gets scale 1, as in ONNX Runtime, because division by scale 0 is undefined.
pub fn dynamic_scale(values: &[f32]) -> Scale {
    let [least, greatest, _] = crate::Extrema::of(values).reach;
    scale_between(least, greatest)
}

/// Computes scale and zero point of DynamicQuantizeLinear from a known minimum and maximum.
pub fn scale_between(least: f32, greatest: f32) -> Scale {
    let (least, greatest) = (least.min(0.0), greatest.max(0.0));
    let scale = if greatest == least {
        1.0
    } else {
        (greatest - least) / 255.0
    };
    let zero_point = (0.0 - least) / scale;
    Scale {
        scale,
        zero_point: requantize(zero_point, 0, 0, u8::MAX),
    }
}

/// DynamicQuantizeLinear: quantizes over the values' own range and returns the scale used.
pub fn dynamic_quantize(values: &[f32], output: &mut [u8]) -> Result<Scale, Error> {
    let scale = dynamic_scale(values);
    quantize(values, scale, output)?;
    Ok(scale)
}
