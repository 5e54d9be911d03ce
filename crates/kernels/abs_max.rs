//! Maximum magnitude per channel.

use crate::dispatch::vectorized;

/// Raises each channel's maximum to the finite magnitudes in `values`. Channels follow each other
/// in runs of `inner` values.
pub fn raise_magnitudes(greatest: &mut [f32], values: &[f32], inner: usize) {
    if greatest.is_empty() || inner == 0 {
        return;
    }
    vectorized!(match inner {
        1 => {
            for row in values.chunks_exact(greatest.len()) {
                for (greatest, &value) in greatest.iter_mut().zip(row) {
                    *greatest = f32::from_bits(finite(value).max(greatest.to_bits() as i32) as u32);
                }
            }
        }
        _ => {
            for row in values.chunks_exact(greatest.len() * inner) {
                for (greatest, values) in greatest.iter_mut().zip(row.chunks_exact(inner)) {
                    let max = values.iter().fold(0, |max, &value| finite(value).max(max));
                    *greatest = greatest.max(f32::from_bits(max as u32));
                }
            }
        }
    });
}

/// Returns the bits of the magnitude, whose integer order is the order of magnitudes. NaN and
/// infinities give the bits of zero.
#[inline(always)]
fn finite(value: f32) -> i32 {
    let bits = value.abs().to_bits() as i32;
    if bits < f32::INFINITY.to_bits() as i32 {
        bits
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_keeps_its_maximum_finite_magnitude() {
        for (channels, inner, images) in [(1, 1, 1), (3, 1, 5), (2, 37, 3), (5, 64, 2), (17, 1, 40)]
        {
            let count = channels * inner * images;
            let mut values: Vec<f32> = (0..count)
                .map(|i| ((i * 7919 % 1001) as f32 - 500.0) * 0.01)
                .collect();
            for (at, odd) in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN]
                .into_iter()
                .enumerate()
            {
                if let Some(value) = values.get_mut(at * 3 + 1) {
                    *value = odd;
                }
            }
            let mut slowly = vec![0.25f32; channels];
            for (at, value) in values
                .iter()
                .enumerate()
                .filter(|(_, value)| value.is_finite())
            {
                let greatest = &mut slowly[at / inner % channels];
                *greatest = greatest.max(value.abs());
            }
            let mut greatest = vec![0.25f32; channels];
            raise_magnitudes(&mut greatest, &values, inner);
            assert_eq!(greatest, slowly, "{channels} channels of {inner}");
        }
        raise_magnitudes(&mut [], &[1.0], 1);
        raise_magnitudes(&mut [1.0], &[2.0], 0);
    }
}
