//! float16 numbers.

use octet_kernels::LittleEndianFloats;
pub(crate) use octet_kernels::half::STANDS_FOR_INFINITY;
use octet_kernels::half::narrow_fitting;
pub(crate) use octet_onnx::half::SMALLEST_HALF as SMALLEST;
pub(crate) use octet_onnx::half::TOO_LARGE_FOR_HALF as TOO_LARGE;

/// The largest finite float16.
pub(crate) const LARGEST: f32 = 65504.0;

/// Converts numbers to float16. Finite numbers stay finite, and nonzero numbers stay nonzero.
pub(crate) fn to_float16(values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * 2];
    let raw: Vec<[u8; 4]> = values.iter().map(|value| value.to_le_bytes()).collect();
    narrow_fitting(LittleEndianFloats::Float(&raw), bytes.as_chunks_mut().0);
    bytes
}
