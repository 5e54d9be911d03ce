//! Pooling of NHWC images.

use core::ops::Range;

use super::byte_copy;
use super::error::{Error, at_least, equal, finite, product, span};
use super::scale::Target;
use super::shape::{Image, Window, row_count};

/// Returns the input positions of a window along one axis, without padding.
fn tap_positions(
    window: &Window,
    axis: usize,
    position: usize,
    size: usize,
) -> impl Iterator<Item = usize> {
    (0..window.kernel[axis]).filter_map(move |tap| window.input_position(axis, position, tap, size))
}

/// Checks the arguments shared by all poolings.
fn check<T>(
    image: &Image<T>,
    window: &Window,
    [height, width]: [usize; 2],
    rows: &Range<usize>,
    output: usize,
    stride: usize,
) -> Result<(), Error> {
    image.check()?;
    window.taps()?;
    let down = window.output(image.height, image.width)?;
    let up = window.output_rounded_up(image.height, image.width)?;
    for (actual, most) in [(height, down[0].max(up[0])), (width, down[1].max(up[1]))] {
        if actual > most {
            return Err(Error::Exceeds {
                what: "the output's size",
                limit: most,
                actual,
            });
        }
    }
    let pixels = product("the output", &[row_count(rows, height)?, width])?;
    at_least(
        "the output",
        output,
        span("the output", pixels, stride, image.channels)?,
    )
}

/// Max pooling; padding is ignored. `size` is the output's [height, width], by [`Window::output`]
/// or [`Window::output_rounded_up`]. A window of padding only gives 0.
pub fn max_pool(
    image: &Image,
    window: &Window,
    size: [usize; 2],
    rows: Range<usize>,
    output: &mut [u8],
    stride: usize,
) -> Result<(), Error> {
    max_over(
        image,
        window,
        size,
        rows,
        (output, stride),
        (0, byte_copy::copy),
    )
}

/// Max pooling of floats.
pub fn max_pool_reals(
    image: &Image<f32>,
    window: &Window,
    size: [usize; 2],
    rows: Range<usize>,
    output: &mut [f32],
    stride: usize,
) -> Result<(), Error> {
    let copy = |from: &[f32], to: &mut [f32]| to.copy_from_slice(from);
    max_over(image, window, size, rows, (output, stride), (0.0, copy))
}

/// `empty` is the result of a window of padding only; `copy` copies one pixel.
#[inline(always)]
fn max_over<T: Copy + PartialOrd>(
    image: &Image<T>,
    window: &Window,
    size: [usize; 2],
    rows: Range<usize>,
    (output, stride): (&mut [T], usize),
    (empty, copy): (T, impl Fn(&[T], &mut [T])),
) -> Result<(), Error> {
    check(image, window, size, &rows, output.len(), stride)?;
    let channels = image.channels;
    let line_len = image.width.saturating_sub(1) * image.stride + channels;
    let line_at = |row: usize| &image.values[row * image.width * image.stride..][..line_len];
    let mut line = Vec::new();
    for y in rows.clone() {
        // First the maxima over the rows of the windows, in one long loop; then over the pixels.
        let mut taps = tap_positions(window, 0, y, image.height);
        let first = taps.next().filter(|_| image.width > 0).map(line_at);
        let maxima = match (first, taps.next()) {
            (Some(first), Some(second)) => {
                line.clear();
                line.extend_from_slice(first);
                raise(&mut line, line_at(second));
                taps.for_each(|row| raise(&mut line, line_at(row)));
                Some(&line[..])
            }
            (first, _) => first,
        };
        for x in 0..size[1] {
            let at = ((y - rows.start) * size[1] + x) * stride;
            let output = &mut output[at..][..channels];
            let Some(maxima) = maxima else {
                output.fill(empty);
                continue;
            };
            let pixels = tap_positions(window, 1, x, image.width);
            let mut pixels = pixels.map(|pixel| &maxima[pixel * image.stride..][..channels]);
            match (pixels.next(), pixels.next(), pixels.next()) {
                (None, ..) => output.fill(empty),
                (Some(one), None, _) => copy(one, output),
                (Some(one), Some(two), None) => {
                    for (most, (&one, &two)) in output.iter_mut().zip(one.iter().zip(two)) {
                        *most = greater(one, two);
                    }
                }
                (Some(one), Some(two), Some(three)) => {
                    let values = one.iter().zip(two).zip(three);
                    for (most, ((&one, &two), &three)) in output.iter_mut().zip(values) {
                        *most = greater(greater(one, two), three);
                    }
                    pixels.for_each(|pixel| raise(output, pixel));
                }
            }
        }
    }
    Ok(())
}

#[inline(always)]
fn greater<T: PartialOrd>(one: T, other: T) -> T {
    if other > one { other } else { one }
}

/// Raises values to those of a slice of the same length.
#[inline(always)]
fn raise<T: Copy + PartialOrd>(values: &mut [T], to: &[T]) {
    for (value, &to) in values.iter_mut().zip(to) {
        *value = greater(*value, to);
    }
}

/// Parameters of average pooling.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    /// Input scale divided by output scale.
    pub multiplier: f32,
    /// Zero point and clamp of the output.
    pub to: Target,
    /// Counts padding as zeros (ONNX's count_include_pad). Positions beyond the padding never
    /// count.
    pub count_pads: bool,
}

/// Average pooling: `Σ (x - zero) · (multiplier / count)` in steps of the output.
pub fn average_pool(
    image: &Image,
    window: &Window,
    size: [usize; 2],
    rows: Range<usize>,
    params: Average,
    output: &mut [u8],
    stride: usize,
) -> Result<(), Error> {
    check(image, window, size, &rows, output.len(), stride)?;
    finite("the multiplier", &[params.multiplier])?;
    if rows.is_empty() || size[1] == 0 {
        return Ok(());
    }
    let mut sums = vec![0i32; image.channels];
    for y in rows.clone() {
        for x in 0..size[1] {
            sums.fill(0);
            let mut count = 0;
            for iy in tap_positions(window, 0, y, image.height) {
                for ix in tap_positions(window, 1, x, image.width) {
                    count += 1;
                    let pixel = (iy * image.width + ix) * image.stride;
                    let input = &image.values[pixel..][..image.channels];
                    for (sum, &value) in sums.iter_mut().zip(input) {
                        *sum += i32::from(value);
                    }
                }
            }
            let zeros = count * i32::from(image.zero_point);
            if params.count_pads {
                count = [(0, y, image.height), (1, x, image.width)]
                    .map(|(axis, position, size)| taps_in_padded(window, axis, position, size))
                    .iter()
                    .product();
            }
            let multiplier = params.multiplier / count.max(1) as f32;
            let at = ((y - rows.start) * size[1] + x) * stride;
            for (byte, &sum) in output[at..][..image.channels].iter_mut().zip(&sums) {
                *byte = params.to.byte(sum.wrapping_sub(zeros) as f32 * multiplier);
            }
        }
    }
    Ok(())
}

/// Returns the number of a window's taps on the image or its padding, along one axis.
fn taps_in_padded(window: &Window, axis: usize, position: usize, size: usize) -> i32 {
    let end = size + window.pads[axis] + window.pads[axis + 2];
    (0..window.kernel[axis])
        .filter(|tap| position * window.strides[axis] + tap * window.dilations[axis] < end)
        .count() as i32
}

/// Global average pooling: one value per channel.
pub fn global_average_pool(
    image: &Image,
    multiplier: f32,
    to: Target,
    output: &mut [u8],
) -> Result<(), Error> {
    image.check()?;
    finite("the multiplier", &[multiplier])?;
    at_least("the output", output.len(), image.channels)?;
    let pixels = product("the image", &[image.height, image.width])?;
    let count = i32::try_from(pixels)
        .ok()
        // Within this limit no sum of bytes overflows i32.
        .filter(|&count| count <= i32::MAX / 255)
        .ok_or(Error::TooLarge { what: "the image" })?;
    let mut sums = vec![0i32; image.channels];
    for pixel in 0..pixels {
        let input = &image.values[pixel * image.stride..][..image.channels];
        for (sum, &value) in sums.iter_mut().zip(input) {
            *sum += i32::from(value);
        }
    }
    let zeros = count * i32::from(image.zero_point);
    let multiplier = multiplier / count.max(1) as f32;
    for (byte, &sum) in output.iter_mut().zip(&sums) {
        *byte = to.byte((sum - zeros) as f32 * multiplier);
    }
    Ok(())
}

/// Reduces the middle of [.., middle, inner] to its maximum or minimum. Rows of `inner` values are
/// `stride` apart; `middle` rows reduce to one output row.
pub fn extreme_over<T: PartialOrd + Copy>(
    values: &[T],
    [middle, inner]: [usize; 2],
    stride: usize,
    least: bool,
    output: &mut [T],
) -> Result<(), Error> {
    if middle == 0 {
        return Err(Error::Zero {
            what: "the length of the reduced axis",
        });
    }
    let count = output.len() / inner.max(1);
    equal("the output in whole rows", count * inner, output.len())?;
    let rows = product("the input", &[count, middle])?;
    at_least(
        "the input",
        values.len(),
        span("the input", rows, stride, inner)?,
    )?;
    let better = |value: T, than: T| if least { value < than } else { value > than };
    let best = |one: T, other: T| if better(other, one) { other } else { one };
    if [inner, stride] == [1; 2] {
        for (to, values) in output.iter_mut().zip(values.chunks_exact(middle)) {
            *to = values[1..].iter().copied().fold(values[0], best);
        }
        return Ok(());
    }
    for (at, output) in output.chunks_exact_mut(inner.max(1)).enumerate() {
        let row = |row: usize| &values[(at * middle + row) * stride..][..inner];
        output.copy_from_slice(row(0));
        for row in (1..middle).map(row) {
            for (to, &value) in output.iter_mut().zip(row) {
                *to = best(*to, value);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_over_reduces_the_middle() {
        let values: Vec<u8> = (0..60).map(|at| (at * 37 % 61) as u8).collect();
        for [outer, middle, inner, stride] in [
            [2, 5, 3, 3],
            [2, 5, 1, 1],
            [1, 12, 4, 5],
            [0, 2, 2, 2],
            [3, 1, 0, 4],
        ] {
            for least in [false, true] {
                let mut actual = vec![0; outer * inner];
                extreme_over(&values, [middle, inner], stride, least, &mut actual).unwrap();
                for (at, actual) in actual.into_iter().enumerate() {
                    let first = at / inner * middle * stride + at % inner;
                    let of = (0..middle).map(|row| values[first + row * stride]);
                    let expected = if least { of.min() } else { of.max() };
                    assert_eq!(Some(actual), expected, "{outer} {middle} {inner} {stride}");
                }
            }
        }
        let over = |sizes, stride, made: usize| {
            extreme_over(&values, sizes, stride, true, &mut vec![0; made]).is_err()
        };
        assert!(over([0, 1], 1, 1) && over([61, 1], 1, 1) && over([2, 3], 3, 4));
    }
}
