//! Between floats and bytes, and between the two kinds of bytes.

use super::error::{Error, equal};
use super::output::requantized;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::vector::{Dequantizer, Quantizer};

/// What the bytes of a tensor mean: `value = scale · (byte - zero_point)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// One step.
    pub scale: f32,
    /// What stands for zero.
    pub zero_point: u8,
}

impl Scale {
    /// The byte of a value: `value / scale`, rounded half to even, plus the zero point, saturated: ONNX's
    /// QuantizeLinear. NaN becomes the zero point.
    #[inline]
    pub fn byte(self, value: f32) -> u8 {
        Target::whole(self.zero_point).byte(value / self.scale)
    }

    /// The value of a byte: ONNX's DequantizeLinear.
    #[inline]
    pub fn value(self, byte: u8) -> f32 {
        (i32::from(byte) - i32::from(self.zero_point)) as f32 * self.scale
    }
}

/// What the bytes of an output mean, and the ends a fused Relu or Clip sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// What stands for zero.
    pub zero_point: u8,
    /// The least byte that comes out.
    pub low: u8,
    /// The greatest byte that comes out.
    pub high: u8,
}

impl Target {
    /// All bytes may come out.
    pub fn whole(zero_point: u8) -> Target {
        Target {
            zero_point,
            low: 0,
            high: u8::MAX,
        }
    }

    /// A value in steps of the output to a byte: rounded half to even, the zero point added, clamped. NaN counts
    /// as zero.
    #[inline]
    pub fn byte(self, steps: f32) -> u8 {
        let steps = if steps.is_nan() { 0.0 } else { steps };
        requantized(steps, self.zero_point, self.low, self.high)
    }
}

/// How many values are changed at once: as many bytes as a vector.
pub(super) const MANY: usize = 16;

/// A function of one value that may be quicker for many.
pub(super) trait Change<F, T> {
    /// What one value becomes.
    fn one(&self, value: F) -> T;

    /// The same of many.
    fn many(&self, values: &[F; MANY]) -> [T; MANY];
}

/// Nothing changes.
pub(super) struct Same;

impl<T: Copy> Change<T, T> for Same {
    #[inline(always)]
    fn one(&self, value: T) -> T {
        value
    }

    #[inline(always)]
    fn many(&self, values: &[T; MANY]) -> [T; MANY] {
        *values
    }
}

/// Floats to bytes of this scale.
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

impl Change<f32, u8> for Quantize {
    #[inline(always)]
    fn one(&self, value: f32) -> u8 {
        self.to.byte(value)
    }

    #[inline(always)]
    fn many(&self, values: &[f32; MANY]) -> [u8; MANY] {
        // What a compiler makes of the plain loop takes twice as long.
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return self.vectors.sixteen(values);
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        std::array::from_fn(|at| self.one(values[at]))
    }
}

/// Bytes of this scale to floats.
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

impl Change<u8, f32> for Dequantize {
    #[inline(always)]
    fn one(&self, value: u8) -> f32 {
        self.from.value(value)
    }

    #[inline(always)]
    fn many(&self, values: &[u8; MANY]) -> [f32; MANY] {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return self.vectors.sixteen(values);
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        std::array::from_fn(|at| self.one(values[at]))
    }
}

/// Changes every value.
fn each<F: Copy, T>(
    values: &[F],
    output: &mut [T],
    change: &impl Change<F, T>,
) -> Result<(), Error> {
    equal("the output", values.len(), output.len())?;
    let ((values, last), (output, end)) = (values.as_chunks(), output.as_chunks_mut());
    for (to, from) in output.iter_mut().zip(values) {
        *to = change.many(from);
    }
    for (to, &from) in end.iter_mut().zip(last) {
        *to = change.one(from);
    }
    Ok(())
}

/// QuantizeLinear of floats to u8. (For i8: the zero point plus 128, then [`flip`].)
pub fn quantize(values: &[f32], to: Scale, output: &mut [u8]) -> Result<(), Error> {
    each(values, output, &Quantize::new(to))
}

/// DequantizeLinear of u8 to floats.
pub fn dequantize(values: &[u8], from: Scale, output: &mut [f32]) -> Result<(), Error> {
    each(values, output, &Dequantize::new(from))
}

/// Turns the bytes of i8 values into the u8 values 128 higher, or back: `x xor 0x80`.
pub fn flip(values: &mut [u8]) {
    for value in values {
        *value ^= 0x80;
    }
}

/// The range of values by ONNX's DynamicQuantizeLinear: u8 over the values' range and zero.
///
/// Values that are all zero get the scale 1, as in ONNX Runtime (a scale of 0 could not be divided by).
pub fn dynamic_scale(values: &[f32]) -> Scale {
    let [least, greatest, _] = crate::Ends::of(values).reach;
    scale_between(least, greatest)
}

/// The same where the least and the greatest value are known.
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
        zero_point: requantized(zero_point, 0, 0, u8::MAX),
    }
}

/// DynamicQuantizeLinear: finds the range, quantizes, and says with what scale.
pub fn dynamic_quantize(values: &[f32], output: &mut [u8]) -> Result<Scale, Error> {
    let scale = dynamic_scale(values);
    quantize(values, scale, output)?;
    Ok(scale)
}
