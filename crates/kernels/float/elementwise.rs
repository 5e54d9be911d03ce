//! Sums and clamps of floats, in place.

/// Clamps to `low` and `high`, which are never NaN. NaN stays NaN.
#[inline(always)]
fn clamped(value: f32, low: f32, high: f32) -> f32 {
    let raised = if value < low { low } else { value };
    if high < raised { high } else { raised }
}

/// Clamps every value.
pub fn clamp(values: &mut [f32], (low, high): (f32, f32)) {
    for value in values {
        *value = clamped(*value, low, high);
    }
}

/// Adds the values of a slice of the same length, and clamps the sums.
pub fn add(sums: &mut [f32], values: &[f32], (low, high): (f32, f32)) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = clamped(*sum + value, low, high);
    }
}
