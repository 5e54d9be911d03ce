//! Data movement, resizing and normalization against their definitions.

use octet_kernels::int8::{
    Affine, BlockOrder, Coordinates, Image, Nearest, Scale, Table, Target, copy_rows,
    depth_to_space, layer_norm, layer_norm_reals, linear_pixels, nearest_pixels, permute,
    resize_linear, resize_nearest, select, softmax, softmax_reals, space_to_depth,
};

use super::Random;

/// Checks all of them on random data.
pub fn layouts(random: &mut Random) {
    moves(random);
    blocks(random);
    resizes(random);
    rows(random);
}

fn moves(random: &mut Random) {
    let shape = [0; 4].map(|_| random.within(1, 6));
    let values = random.bytes(shape.iter().product());
    let at = |place: [usize; 4]| {
        place
            .iter()
            .zip(shape)
            .fold(0, |at, (place, size)| at * size + place)
    };
    let mut order = [0, 1, 2, 3];
    for last in (1..4).rev() {
        order.swap(last, random.within(0, last));
    }
    let mut output = vec![0; values.len()];
    permute(&values, &shape, &order, &mut output).expect("a good order");
    let positions: Vec<Vec<Option<usize>>> = shape
        .iter()
        .map(|&size| {
            let any = |random: &mut Random| random.coin().then(|| random.within(0, size - 1));
            match random.within(0, 1) {
                0 => (0..size).map(Some).collect(),
                _ => (0..random.within(1, 7)).map(|_| any(random)).collect(),
            }
        })
        .collect();
    let total = positions.iter().map(Vec::len).product();
    let mut selected = vec![0; total];
    select(&values, &shape, &positions, 99, &mut selected).expect("good positions");
    let indices = |sizes: [usize; 4]| {
        (0..sizes.iter().product::<usize>()).map(move |mut at| {
            let mut place = [0; 4];
            for axis in (0..4).rev() {
                place[axis] = at % sizes[axis];
                at /= sizes[axis];
            }
            place
        })
    };
    for (place, &actual) in indices(order.map(|axis| shape[axis])).zip(&output) {
        let mut from = [0; 4];
        for (axis, &place) in order.iter().zip(&place) {
            from[*axis] = place;
        }
        assert_eq!(actual, values[at(from)], "{shape:?} {order:?} {place:?}");
    }
    let sizes = core::array::from_fn(|axis| positions[axis].len());
    for (place, &actual) in indices(sizes).zip(&selected) {
        let from: [Option<usize>; 4] = core::array::from_fn(|axis| positions[axis][place[axis]]);
        let expected = if from.contains(&None) {
            99
        } else {
            values[at(from.map(Option::unwrap_or_default))]
        };
        assert_eq!(actual, expected, "{shape:?} {positions:?} {place:?}");
    }
    // Through a table, into rows with gaps.
    let (count, width) = (shape[0], values.len() / shape[0]);
    let scale = |zero_point| Scale {
        scale: 0.5,
        zero_point,
    };
    let table = Table::rescale(scale(3), scale(10));
    let mut output = vec![77; count * (width + 2)];
    copy_rows(
        &values,
        width,
        [count, width],
        Some(&table),
        &mut output,
        width + 2,
    )
    .expect("good rows");
    for (row, row_seen) in output.chunks(width + 2).enumerate() {
        for (column, &actual) in row_seen.iter().enumerate() {
            let moved = |value: u8| value.saturating_add(7);
            assert_eq!(
                actual,
                values
                    .get(row * width + column)
                    .filter(|_| column < width)
                    .map_or(77, |&v| moved(v))
            );
        }
    }
}

fn blocks(random: &mut Random) {
    let (height, width, channels, block) = (
        random.within(1, 4),
        random.within(1, 4),
        random.within(1, 5),
        random.within(1, 3),
    );
    let deep = channels * block * block;
    let values = random.bytes(height * width * deep);
    let mut output = vec![0; values.len()];
    for order in [BlockOrder::BlockFirst, BlockOrder::ChannelFirst] {
        depth_to_space(&values, [height, width, deep], block, order, &mut output)
            .expect("a good shape");
        for (at, &actual) in output.iter().enumerate() {
            let (pixel, channel) = (at / channels, at % channels);
            let (y, x) = (pixel / (width * block), pixel % (width * block));
            let inside = y % block * block + x % block;
            let depth = match order {
                BlockOrder::BlockFirst => inside * channels + channel,
                BlockOrder::ChannelFirst => channel * block * block + inside,
            };
            assert_eq!(
                actual,
                values[(y / block * width + x / block) * deep + depth]
            );
        }
    }
    depth_to_space(
        &values,
        [height, width, deep],
        block,
        BlockOrder::BlockFirst,
        &mut output,
    )
    .expect("a good shape");
    let mut back = vec![0; values.len()];
    space_to_depth(
        &output,
        [height * block, width * block, channels],
        block,
        &mut back,
    )
    .expect("a good shape");
    assert_eq!(back, values);
}

fn resizes(random: &mut Random) {
    let (height, width, channels) = (
        random.within(1, 7),
        random.within(1, 7),
        random.within(1, 40),
    );
    let values = random.bytes(height * width * channels);
    let image = Image {
        values: &values,
        height,
        width,
        channels,
        stride: channels,
        zero_point: random.bits() as u8,
    };
    let to = [random.within(1, 15), random.within(1, 15)];
    let scales = [to[0] as f32 / height as f32, to[1] as f32 / width as f32];
    let coordinates = [
        Coordinates::HalfPixel,
        Coordinates::PytorchHalfPixel,
        Coordinates::AlignCorners,
        Coordinates::Asymmetric,
    ][random.within(0, 3)];
    let mut output = vec![0; to[0] * to[1] * channels];
    let rows = nearest_pixels(coordinates, Nearest::Floor, [height, to[0]], scales[0]);
    let columns = nearest_pixels(coordinates, Nearest::Floor, [width, to[1]], scales[1]);
    resize_nearest(&image, &rows, &columns, &mut output).expect("good pixels");
    for (at, &actual) in output.iter().enumerate() {
        let (y, x) = (rows[at / channels / to[1]], columns[at / channels % to[1]]);
        assert_eq!(actual, values[(y * width + x) * channels + at % channels]);
    }
    let rows = linear_pixels(coordinates, [height, to[0]], scales[0]);
    let columns = linear_pixels(coordinates, [width, to[1]], scales[1]);
    resize_linear(
        &image,
        &rows,
        &columns,
        1.0,
        Target::whole(image.zero_point),
        &mut output,
    )
    .expect("good pixels");
    for (at, &actual) in output.iter().enumerate() {
        let (y, x) = (rows[at / channels / to[1]], columns[at / channels % to[1]]);
        let value =
            |y: usize, x: usize| f64::from(values[(y * width + x) * channels + at % channels]);
        let mix = |a: f64, b: f64, share: f32| a + f64::from(share) * (b - a);
        let exact = mix(
            mix(value(y.first, x.first), value(y.first, x.second), x.share),
            mix(value(y.second, x.first), value(y.second, x.second), x.share),
            y.share,
        );
        assert!(
            (f64::from(actual) - exact).abs() <= 0.5001,
            "{actual} for {exact}"
        );
    }
}

fn rows(random: &mut Random) {
    // Longer rows than there are byte values, too.
    let longest = [90, 300][random.within(0, 1)];
    let (length, count) = (random.within(1, longest), random.within(1, 4));
    let values = random.bytes(length * count);
    let mut output = vec![0; values.len()];
    let from = Scale {
        scale: [0.01, 0.1, 0.3][random.within(0, 2)],
        zero_point: random.bits() as u8,
    };
    let shares = Scale {
        scale: 1.0 / 256.0,
        zero_point: 0,
    };
    softmax(&values, length, from.scale, shares, &mut output).expect("whole rows");
    let value = |byte: u8| f64::from(from.scale) * (f64::from(byte) - f64::from(from.zero_point));
    for (row, actual) in values.chunks(length).zip(output.chunks(length)) {
        let sum: f64 = row.iter().map(|&byte| value(byte).exp()).sum();
        for (&byte, &actual) in row.iter().zip(actual) {
            let exact = (value(byte).exp() / sum * 256.0).min(255.0);
            assert!(
                (f64::from(actual) - exact).abs() <= 0.501,
                "{actual} for {exact}"
            );
        }
    }
    let reals: Vec<f32> = values.iter().map(|&byte| value(byte) as f32).collect();
    let mut parts = vec![0.0; reals.len()];
    softmax_reals(&reals, length, &mut parts).expect("whole rows");
    for (row, actual) in reals.chunks(length).zip(parts.chunks(length)) {
        let greatest = row.iter().fold(f64::MIN, |a, &b| a.max(f64::from(b)));
        let power = |&real: &f32| (f64::from(real) - greatest).exp();
        let sum: f64 = row.iter().map(power).sum();
        for (real, &actual) in row.iter().zip(actual) {
            let exact = power(real) / sum;
            // The distance below the maximum is rounded to f32, and so is everything after it.
            let below = greatest - f64::from(*real);
            assert!(
                (f64::from(actual) - exact).abs() <= (4e-7 + 1e-7 * below) * exact + 1e-37,
                "{actual} for {exact}"
            );
        }
    }
    // One scale per value of a row, per row, or per part of a row.
    let (each, numbers) = match random.within(0, 2) {
        0 => (1, length),
        1 => (length, count),
        _ => match length % 2 {
            0 => (length / 2, 2 * count),
            _ => (length, 1),
        },
    };
    let (scale, bias) = (random.floats(numbers, 2.0), random.floats(numbers, 2.0));
    let affine = Affine {
        scale: &scale,
        bias: random.coin().then_some(&bias[..]),
        each,
        first: 0,
    };
    let to = Scale {
        scale: 0.05,
        zero_point: 128,
    };
    layer_norm(&values, length, from, affine, 1e-5, to, &mut output).expect("whole rows");
    let normal = output.clone();
    let mut last = vec![0; length];
    let after = Affine {
        first: (count - 1) * length,
        ..affine
    };
    let rest = &values[after.first..];
    layer_norm(rest, length, from, after, 1e-5, to, &mut last).expect("whole rows");
    assert_eq!(last, normal[after.first..], "a row by itself");
    let mut normal_reals = vec![0.0; reals.len()];
    layer_norm_reals(&reals, length, affine, 1e-5, &mut normal_reals).expect("whole rows");
    let rows = values.chunks(length).zip(output.chunks(length));
    for (place, (row, actual)) in rows.enumerate() {
        let mean = row.iter().map(|&byte| value(byte)).sum::<f64>() / length as f64;
        let variance = row
            .iter()
            .map(|&byte| (value(byte) - mean).powi(2))
            .sum::<f64>()
            / length as f64;
        for (at, (&byte, &actual)) in row.iter().zip(actual).enumerate() {
            let normal = (value(byte) - mean) / (variance + 1e-5).sqrt();
            let number = (place * length + at) / each % numbers;
            let shift = affine.bias.map_or(0.0, |bias| f64::from(bias[number]));
            let exact = normal * f64::from(scale[number]) + shift;
            let real = f64::from(normal_reals[place * length + at]);
            assert!((real - exact).abs() <= 1e-3, "{real} for {exact}");
            let exact = (exact / f64::from(to.scale) + 128.0).clamp(0.0, 255.0);
            assert!(
                (f64::from(actual) - exact).abs() <= 0.51,
                "{actual} for {exact}"
            );
        }
    }
}
