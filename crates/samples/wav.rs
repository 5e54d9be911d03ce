//! WAV files: integers of 8 to 32 bits and floats, mixed to one channel from -1 to 1.

use super::SampleProblem;

/// Sound with one channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sound {
    /// Samples a second.
    pub(super) rate: u32,
    /// Values, mostly from -1 to 1.
    pub(super) values: Vec<f32>,
}

/// WaveFormat of the samples.
struct WaveFormat {
    /// 1 for integers, 3 for floats.
    code: u16,
    channels: usize,
    rate: u32,
    bits: u16,
}

const FLOAT: u16 = 3;
const EXTENSIBLE: u16 = 0xfffe;

/// Reads a WAV file.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Sound, SampleProblem> {
    let broken = |why: &str| SampleProblem::broken(file, why, "save it as a WAV file of 16 bits");
    if bytes.get(..4) != Some(b"RIFF") || bytes.get(8..12) != Some(b"WAVE") {
        return Err(broken("it is not a WAV file"));
    }
    let mut format = None;
    let mut rest = &bytes[12..];
    loop {
        let (Some(name), Some(size)) = (rest.get(..4), rest.get(4..8)) else {
            return Err(broken("it has no sound"));
        };
        let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
        // A recording that was cut off states more than there is.
        let content = &rest[8..rest.len().min(size.saturating_add(8))];
        match name {
            b"fmt " => {
                format = Some(format_of(content).ok_or_else(|| broken("its header is cut off"))?)
            }
            b"data" => {
                let format = format.ok_or_else(|| broken("its sound precedes its format"))?;
                return sound(content, &format).ok_or_else(|| {
                    let kind = match format.code {
                        1 => "integers",
                        FLOAT => "floats",
                        _ => "compressed sound",
                    };
                    broken(&format!("{kind} of {} bits are not supported", format.bits))
                });
            }
            _ => {}
        }
        // Chunks have even sizes.
        let end = size.saturating_add(8 + size % 2);
        rest = rest.get(end..).unwrap_or_default();
    }
}

fn format_of(chunk: &[u8]) -> Option<WaveFormat> {
    let two = |at: usize| Some(u16::from_le_bytes([*chunk.get(at)?, *chunk.get(at + 1)?]));
    let rate = chunk.get(4..8)?;
    let code = match two(0)? {
        // The true code begins the sub-format.
        EXTENSIBLE => two(24)?,
        code => code,
    };
    let format = WaveFormat {
        code,
        channels: two(2)?.into(),
        rate: u32::from_le_bytes([rate[0], rate[1], rate[2], rate[3]]),
        bits: two(14)?,
    };
    (format.channels > 0 && format.rate > 0).then_some(format)
}

fn sound(data: &[u8], format: &WaveFormat) -> Option<Sound> {
    let bytes = usize::from(format.bits / 8);
    let value: fn(&[u8]) -> f32 = match (format.code, format.bits) {
        // Eight bits are unsigned.
        (1, 8) => |b| (f32::from(b[0]) - 128.0) / 128.0,
        (1, 16) => |b| f32::from(i16::from_le_bytes([b[0], b[1]])) / 32_768.0,
        (1, 24) => |b| (i32::from_le_bytes([0, b[0], b[1], b[2]]) as f64 / 2_147_483_648.0) as f32,
        (1, 32) => {
            |b| (f64::from(i32::from_le_bytes([b[0], b[1], b[2], b[3]])) / 2_147_483_648.0) as f32
        }
        (FLOAT, 32) => |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
        (FLOAT, 64) => {
            |b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]) as f32
        }
        _ => return None,
    };
    let frames = data.chunks_exact(bytes * format.channels);
    let mixed = frames.map(|frame| {
        let sum: f32 = frame.chunks_exact(bytes).map(value).sum();
        sum / format.channels as f32
    });
    Some(Sound {
        rate: format.rate,
        values: mixed.collect(),
    })
}

/// The sound at another rate. The kernel is Keys' cubic, widened where the rate sinks, so that what
/// the new rate can't hold is filtered out. It has no transcendental functions, which differ between
/// platforms.
pub(super) fn resampled(sound: &Sound, rate: u32) -> Vec<f32> {
    if sound.rate == rate || sound.values.is_empty() {
        return sound.values.clone();
    }
    let step = f64::from(sound.rate) / f64::from(rate);
    let wide = step.max(1.0);
    let count = (sound.values.len() as f64 / step).round().max(1.0) as usize;
    let last = sound.values.len() as i64 - 1;
    let one = |at: usize| {
        let center = (at as f64 + 0.5) * step - 0.5;
        let reach = 2.0 * wide;
        let (first, end) = (
            (center - reach).ceil() as i64,
            (center + reach).floor() as i64,
        );
        let (mut sum, mut weights) = (0.0, 0.0);
        for place in first..=end {
            let weight = cubic((place as f64 - center) / wide);
            sum += weight * f64::from(sound.values[place.clamp(0, last) as usize]);
            weights += weight;
        }
        (sum / weights) as f32
    };
    (0..count).map(one).collect()
}

/// Keys' cubic convolution kernel with a = -1/2.
fn cubic(x: f64) -> f64 {
    let x = x.abs();
    match x {
        _ if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        _ if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        _ => 0.0,
    }
}

/// A WAV file of floats, for tests.
#[cfg(test)]
pub(super) fn file(format: (u16, u16), channels: u16, rate: u32, data: &[u8]) -> Vec<u8> {
    let (code, bits) = format;
    let block = channels * bits / 8;
    let mut out = Vec::from(*b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0");
    for two in [code, channels] {
        out.extend(two.to_le_bytes());
    }
    out.extend(rate.to_le_bytes());
    out.extend((rate * u32::from(block)).to_le_bytes());
    for two in [block, bits] {
        out.extend(two.to_le_bytes());
    }
    out.extend(b"data");
    out.extend((data.len() as u32).to_le_bytes());
    out.extend(data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(format: (u16, u16), channels: u16, data: &[u8]) -> Vec<f32> {
        read("a.wav", &file(format, channels, 8000, data))
            .unwrap()
            .values
    }

    #[test]
    fn integers_and_floats_become_values_from_minus_one_to_one() {
        assert_eq!(values((1, 8), 1, &[0, 128, 192]), [-1.0, 0.0, 0.5]);
        assert_eq!(values((1, 16), 1, &[0, 0x80, 0, 0x40]), [-1.0, 0.5]);
        assert_eq!(values((1, 24), 1, &[0, 0, 0x80, 0, 0, 0x40]), [-1.0, 0.5]);
        assert_eq!(values((1, 32), 1, &[0, 0, 0, 0xc0]), [-0.5]);
        assert_eq!(values((3, 32), 1, &0.25f32.to_le_bytes()), [0.25]);
        assert_eq!(values((3, 64), 1, &0.25f64.to_le_bytes()), [0.25]);
        // Channels are mixed; an incomplete frame is left out.
        assert_eq!(values((1, 16), 2, &[0, 0x40, 0, 0, 1]), [0.25]);
    }

    #[test]
    fn what_is_no_sound_is_refused_with_its_reason() {
        let said = |bytes: &[u8]| read("a.wav", bytes).unwrap_err().to_string();
        assert!(said(b"ID3").contains("not a WAV file"));
        assert!(said(b"RIFF\0\0\0\0WAVE").contains("no sound"));
        assert!(said(&file((2, 4), 1, 8000, &[1])).contains("compressed sound of 4 bits"));
        assert!(said(&file((1, 12), 1, 8000, &[1])).contains("integers of 12 bits"));
        let mut huge = file((1, 16), 1, 8000, &[]);
        let at = huge.len() - 4;
        huge[at..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read("a.wav", &huge).unwrap().values.is_empty());
    }

    #[test]
    fn another_rate_keeps_slow_waves_and_filters_fast_ones() {
        // A triangle of 100 Hz, and one of 3500 Hz that 4000 samples a second can't hold.
        let wave = |period: f64| {
            let value = |at: usize| {
                let phase = (at as f64 / period).fract();
                (4.0 * (phase - 0.5).abs() - 1.0) as f32
            };
            Sound {
                rate: 16_000,
                values: (0..1600).map(value).collect(),
            }
        };
        let power = |values: &[f32]| {
            let inner = &values[20..values.len() - 20];
            inner.iter().map(|x| x * x).sum::<f32>() / inner.len() as f32
        };
        let slow = resampled(&wave(160.0), 4000);
        assert_eq!(slow.len(), 400);
        assert!((power(&slow) - 1.0 / 3.0).abs() < 0.01, "{}", power(&slow));
        let fast = resampled(&wave(16.0 / 3.5), 4000);
        assert!(power(&fast) < 0.01, "{}", power(&fast));
        let up = resampled(&wave(160.0), 48_000);
        assert_eq!(up.len(), 4800);
        assert!((power(&up) - 1.0 / 3.0).abs() < 0.01);
        assert_eq!(resampled(&wave(160.0), 16_000), wave(160.0).values);
    }
}
