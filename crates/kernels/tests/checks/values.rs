//! Elementwise kernels, tables and pooling against their definitions.

use octet_kernels::int8::{
    Average, Image, Int16Grid, Operand, Scale, Table, Target, WideTable, Window, add, average_pool,
    dequantize, dequantize_to_channels_first, dynamic_quantize, dynamic_scale, extreme,
    global_average_pool, max_pool, multiply, quantize, quantize_to_channels_last, scale_between,
    to_channels_first, to_channels_last,
};

use super::Random;

/// Rounds half to even, adds the zero point and clamps, in f64, where the sum with a byte is exact.
fn byte(steps: f32, to: Target) -> u8 {
    let steps = if steps.is_nan() {
        0.0
    } else {
        f64::from(steps)
    };
    let value = steps.round_ties_even() + f64::from(to.zero_point);
    value.min(f64::from(to.high)).max(f64::from(to.low)) as u8
}

/// Checks all of them on random data and lengths.
pub fn elementwise(random: &mut Random) {
    pairs(random);
    conversions(random);
    ranges(random);
    pools(random);
    tables(random);
    wide_tables(random);
}

fn target(random: &mut Random) -> Target {
    let ends = random.bytes(3);
    Target {
        zero_point: ends[0],
        low: ends[1].min(ends[2]),
        high: ends[1].max(ends[2]),
    }
}

fn pairs(random: &mut Random) {
    let (channels, pixels) = (random.within(1, 70), random.within(1, 5));
    let length = channels * pixels;
    let whole = random.bytes(length);
    let shorter = match random.within(0, 3) {
        0 => (random.bytes(length), 1),
        1 => (random.bytes(channels), 1),
        2 => (random.bytes(pixels), channels),
        _ => (random.bytes(1), 1),
    };
    let zeros = random.bytes(2);
    let (mut a, mut b) = (
        Operand::new(&whole, zeros[0]),
        Operand {
            each: shorter.1,
            ..Operand::new(&shorter.0, zeros[1])
        },
    );
    if random.coin() {
        core::mem::swap(&mut a, &mut b);
    }
    let factors = random.multipliers(2);
    let to = target(random);
    let value = |operand: &Operand, at: usize| {
        let value = operand.values[at / operand.each % operand.values.len()];
        (i32::from(value) - i32::from(operand.zero_point)) as f32
    };
    let mut output = vec![0; length];
    add((&a, factors[0]), (&b, -factors[1]), to, &mut output).expect("good lengths");
    for (at, &actual) in output.iter().enumerate() {
        let steps = value(&a, at) * factors[0] + value(&b, at) * -factors[1];
        assert_eq!(
            actual,
            byte(steps, to),
            "sum {at} of {length}: {steps} {to:?}"
        );
    }
    multiply(&a, &b, factors[0], to, &mut output).expect("good lengths");
    for (at, &actual) in output.iter().enumerate() {
        let steps = value(&a, at) * value(&b, at) * factors[0];
        assert_eq!(
            actual,
            byte(steps, to),
            "product {at} of {length}: {steps} {to:?}"
        );
    }
    let byte_of =
        |operand: &Operand, at: usize| operand.values[at / operand.each % operand.values.len()];
    for least in [false, true] {
        extreme([&a, &b], least, &mut output).expect("good lengths");
        for (at, &actual) in output.iter().enumerate() {
            let [a, b] = [&a, &b].map(|operand| byte_of(operand, at));
            let expected = if (a < b) == least { a } else { b };
            assert_eq!(
                actual, expected,
                "the ends of {a} and {b}, {at} of {length}"
            );
        }
    }
}

/// DynamicQuantizeLinear by the ONNX formulas: the range extended to zero, in 255 steps.
fn ranges(random: &mut Random) {
    let count = random.within(1, 300);
    let (size, lift) = (
        [1e-30, 0.01, 7.0, 1e30][random.within(0, 3)],
        random.within(0, 4),
    );
    let mut floats = random.floats(count, size);
    for value in &mut floats {
        *value = match lift {
            0 => value.abs() + size,
            1 => -value.abs() - size,
            2 => 0.0,
            _ => *value,
        };
    }
    let least = floats.iter().copied().fold(0.0, f32::min);
    let greatest = floats.iter().copied().fold(0.0, f32::max);
    let scale = match least == greatest {
        true => 1.0,
        false => (greatest - least) / 255.0,
    };
    let zero_point = byte(-least / scale, Target::whole(0));
    let expected = Scale { scale, zero_point };
    assert_eq!(dynamic_scale(&floats), expected);
    // The extrema of two parts, combined.
    let cut = random.within(0, count);
    let parts = [&floats[..cut], &floats[cut..]].map(|part| octet_kernels::Extrema::of(part).reach);
    let [a, b] = parts;
    assert_eq!(scale_between(a[0].min(b[0]), a[1].max(b[1])), expected);
    let mut bytes = vec![0; count];
    assert_eq!(dynamic_quantize(&floats, &mut bytes), Ok(expected));
    let mut quantized = vec![0; count];
    quantize(&floats, expected, &mut quantized).expect("good lengths");
    assert_eq!(bytes, quantized);
}

fn conversions(random: &mut Random) {
    // RGB pictures have a conversion of their own.
    let channels = [3, random.within(1, 40)][random.within(0, 1)];
    let pixels = random.within(1, 40);
    let count = channels * pixels;
    let scale = Scale {
        scale: [0.5, 0.013, 1.0, 1e-30][random.within(0, 3)],
        zero_point: random.bits() as u8,
    };
    let mut floats = random.floats(count, 200.0 * scale.scale);
    floats[0] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0][random.within(0, 3)];
    for value in &mut floats {
        if random.bits().is_multiple_of(4) {
            *value = (*value / scale.scale).round() * scale.scale + scale.scale / 2.0;
        }
    }
    let expected: Vec<u8> = floats
        .iter()
        .map(|value| byte(value / scale.scale, Target::whole(scale.zero_point)))
        .collect();
    let mut bytes = vec![0; count];
    quantize(&floats, scale, &mut bytes).expect("good lengths");
    assert_eq!(bytes, expected, "{scale:?}");
    let stride = channels + [0, random.within(0, 5)][random.within(0, 1)];
    let mut last = vec![0; pixels * stride];
    quantize_to_channels_last(
        &floats,
        pixels,
        [channels, pixels],
        scale,
        &mut last,
        stride,
    )
    .expect("good lengths");
    let mut nhwc = vec![0; pixels * stride];
    to_channels_last(&bytes, pixels, [channels, pixels], &mut nhwc, stride).expect("good lengths");
    assert_eq!(last, nhwc);
    for (channel, pixel) in
        (0..channels).flat_map(|channel| (0..pixels).map(move |pixel| (channel, pixel)))
    {
        assert_eq!(
            last[pixel * stride + channel],
            expected[channel * pixels + pixel]
        );
    }
    let mut back = vec![0; count];
    to_channels_first(&last, stride, [pixels, channels], &mut back).expect("good lengths");
    assert_eq!(back, bytes);

    let (mut values, mut first) = (vec![0.0; count], vec![0.0; count]);
    dequantize(&bytes, scale, &mut values).expect("good lengths");
    dequantize_to_channels_first(&last, stride, [pixels, channels], scale, &mut first)
        .expect("good lengths");
    assert_eq!(values, first);
    for (&value, &byte) in values.iter().zip(&bytes) {
        assert_eq!(
            value,
            (i32::from(byte) - i32::from(scale.zero_point)) as f32 * scale.scale
        );
    }
}

/// Each byte becomes its entry, for any number of bytes.
fn tables(random: &mut Random) {
    let entries = random.bytes(256);
    let table = Table(core::array::from_fn(|byte| entries[byte]));
    let count = random.within(0, 700);
    let values = random.bytes(count);
    let mut actual = vec![0; count];
    table.apply(&values, &mut actual).unwrap();
    let expected: Vec<u8> = (values.iter())
        .map(|&byte| entries[usize::from(byte)])
        .collect();
    assert_eq!(actual, expected);
    assert!(table.apply(&values, &mut [0; 701]).is_err());
}

fn wide_tables(random: &mut Random) {
    let of = Int16Grid {
        scale: random.floats(1, 0.01)[0].abs() + 1e-4,
        zero_point: random.within(0, 65_535) as u16,
        low: 0,
        high: u16::MAX,
    };
    let answers: Vec<f32> = (0..=u16::MAX).map(f32::from).collect();
    let mut values: Vec<f32> = (0..random.within(0, 200))
        .map(|_| (random.within(0, 80_000) as f32 - 40_000.0) * of.scale * 1.3)
        .collect();
    values.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0]);
    let mut actual = vec![0.0; values.len()];
    let table = WideTable::new(of, answers.clone()).unwrap();
    table.apply(&values, &mut actual).unwrap();
    for (&value, &actual) in values.iter().zip(&actual) {
        let steps = value / of.scale;
        let steps = if steps.is_nan() {
            0.0
        } else {
            f64::from(steps)
        };
        let integer = steps.round_ties_even() + f64::from(of.zero_point);
        let at = integer.clamp(0.0, 65_535.0) as usize;
        assert_eq!(actual, answers[at], "{value} of {of:?}");
    }
    assert!(WideTable::new(of, vec![0u8; 65_535]).is_err());
    assert!(table.apply(&values, &mut actual[1..]).is_err());
}

fn pools(random: &mut Random) {
    let mut two = |least, most| [random.within(least, most), random.within(least, most)];
    let ([height, width], kernel, strides, dilations) =
        (two(1, 9), two(1, 4), two(1, 3), two(1, 2));
    let pads = [0; 4].map(|_| random.within(0, 1));
    let channels = random.within(1, 70);
    let stride = channels + random.within(0, 3);
    let values = random.bytes(height * width * stride);
    let image = Image {
        values: &values,
        height,
        width,
        channels,
        stride,
        zero_point: random.bits() as u8,
    };
    let window = Window {
        kernel,
        strides,
        dilations,
        pads,
    };
    let size = if random.coin() {
        window.output_rounded_up(height, width)
    } else {
        window.output(height, width)
    }
    .expect("a good window");
    let how = Average {
        multiplier: random.multipliers(1)[0],
        to: target(random),
        count_pads: random.coin(),
    };
    let length = size[0] * size[1] * channels;
    let (mut greatest, mut averages) = (vec![0; length], vec![0; length]);
    max_pool(&image, &window, size, 0..size[0], &mut greatest, channels).expect("a good shape");
    average_pool(
        &image,
        &window,
        size,
        0..size[0],
        how,
        &mut averages,
        channels,
    )
    .expect("a good shape");
    for (y, x) in (0..size[0]).flat_map(|y| (0..size[1]).map(move |x| (y, x))) {
        // Coordinates of every tap, first with padding, then without.
        let taps: Vec<(usize, usize)> = (0..kernel[0])
            .flat_map(|ky| (0..kernel[1]).map(move |kx| (ky, kx)))
            .map(|(ky, kx)| {
                (
                    y * strides[0] + ky * dilations[0],
                    x * strides[1] + kx * dilations[1],
                )
            })
            .filter(|&(y, x)| y < height + pads[0] + pads[2] && x < width + pads[1] + pads[3])
            .collect();
        let inside: Vec<usize> = taps
            .iter()
            .filter_map(|&(y, x)| Some((y.checked_sub(pads[0])?, x.checked_sub(pads[1])?)))
            .filter(|&(y, x)| y < height && x < width)
            .map(|(y, x)| (y * width + x) * stride)
            .collect();
        let count = if how.count_pads {
            taps.len()
        } else {
            inside.len()
        };
        for channel in 0..channels {
            let at = (y * size[1] + x) * channels + channel;
            let actual = inside.iter().map(|pixel| values[pixel + channel]);
            assert_eq!(greatest[at], actual.clone().max().unwrap_or(0));
            let sum: i32 = actual
                .map(|value| i32::from(value) - i32::from(image.zero_point))
                .sum();
            let steps = sum as f32 * (how.multiplier / count.max(1) as f32);
            assert_eq!(
                averages[at],
                byte(steps, how.to),
                "{window:?} {how:?} at {y}, {x}"
            );
        }
    }
    let mut means = vec![0; channels];
    global_average_pool(&image, how.multiplier, how.to, &mut means).expect("a good shape");
    for (channel, &mean) in means.iter().enumerate() {
        let sum: i32 = (0..height * width)
            .map(|pixel| i32::from(values[pixel * stride + channel]) - i32::from(image.zero_point))
            .sum();
        assert_eq!(
            mean,
            byte(
                sum as f32 * (how.multiplier / (height * width) as f32),
                how.to
            )
        );
    }
}
