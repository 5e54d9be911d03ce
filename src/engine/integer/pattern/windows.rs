//! Windows of convolutions and poolings, with all padding as numbers.

use octet_kernels::int8::Window;

use super::reader::Reason;
use crate::graph::{Around, Slide};
use crate::onnx::schema::NodeProto;

/// The window of a Conv or ConvTranspose on an image of one or two dimensions.
pub(super) fn of_convolution(
    node: &NodeProto,
    kernel: &[usize],
    image: &[usize],
    output: &[usize],
    transposed: bool,
) -> Result<Window, Reason> {
    if let Some(given) = node.ints("kernel_shape")
        && !given.iter().map(|&k| k as usize).eq(kernel.iter().copied())
    {
        return Err(format!(
            "its kernel is {kernel:?}, and said to be {given:?}"
        ));
    }
    of(node, kernel, image, output, transposed)
}

/// The window of a pooling.
pub(super) fn of_pooling(
    node: &NodeProto,
    image: &[usize],
    output: &[usize],
) -> Result<Window, Reason> {
    let given = node.ints("kernel_shape").unwrap_or_default();
    let kernel: Option<Vec<usize>> = given.iter().map(|&k| usize::try_from(k).ok()).collect();
    of(node, &kernel.unwrap_or_default(), image, output, false)
}

fn of(
    node: &NodeProto,
    kernel: &[usize],
    image: &[usize],
    output: &[usize],
    transposed: bool,
) -> Result<Window, Reason> {
    let spatial = kernel.len();
    if !matches!(spatial, 1 | 2) || image.len() != spatial + 2 || output.len() != spatial + 2 {
        return Err(format!(
            "its window has {spatial} dimensions over an image {image:?}: 1 or 2 are known here"
        ));
    }
    let slides = Slide::of(node, kernel);
    let slides = slides.filter(|slides| slides.iter().all(is_sound));
    let slides = slides.ok_or("its kernel, strides, dilations or padding make no window")?;
    let sized = transposed && node.ints("output_shape").is_some();
    let mut pads = vec![0; 2 * spatial];
    for (axis, slide) in slides.iter().enumerate() {
        // The window moves over the larger of the two images.
        let (larger, places) = match transposed {
            true => (output[axis + 2], image[axis + 2]),
            false => (image[axis + 2], output[axis + 2]),
        };
        let over = (places.max(1) as i64 - 1) * slide.stride + slide.reach() - larger as i64;
        let around = match slide.around {
            // A transposed convolution of a given size has what is left of an odd amount before, unless it is SAME_UPPER.
            Around::Fixed(..) if sized => Around::Lower,
            around => around,
        };
        let zeros = Slide { around, ..*slide }.zeros(over);
        [pads[axis], pads[axis + spatial]] = zeros.map(|zeros| zeros as usize);
    }
    let two = |list: &[usize], one: usize| match *list {
        [only] => [one, only],
        [first, second, ..] => [first, second],
        [] => [one, one],
    };
    let each = |of: fn(&Slide) -> i64| -> Vec<usize> {
        slides.iter().map(|slide| of(slide) as usize).collect()
    };
    Ok(Window {
        kernel: two(kernel, 1),
        strides: two(&each(|slide| slide.stride), 1),
        dilations: two(&each(|slide| slide.dilation), 1),
        pads: match pads[..] {
            [left, right] => [0, left, 0, right],
            [top, left, bottom, right] => [top, left, bottom, right],
            _ => return Err(format!("its pads are {pads:?}")),
        },
    })
}

/// Whether all of it is small enough to be computed with, and no padding takes anything away.
fn is_sound(slide: &Slide) -> bool {
    const LARGEST: i64 = 1 << 20;
    let zeros = match slide.around {
        Around::Fixed(before, after) => [before, after],
        _ => [0, 0],
    };
    let sizes = [slide.taps, slide.stride, slide.dilation];
    sizes.iter().all(|&size| size < LARGEST)
        && zeros.iter().all(|zeros| (0..=LARGEST).contains(zeros))
}

/// Height and width of an image of one or two dimensions.
pub(in super::super) fn plane(shape: &[usize]) -> [usize; 2] {
    match *shape {
        [_, _, length] => [1, length],
        [_, _, height, width] => [height, width],
        _ => [1, 1],
    }
}

/// Whether a window over an image makes results of this shape, `up` where a pooling may round up.
pub(super) fn makes(
    window: &Window,
    image: &[usize],
    channels: usize,
    output: &[usize],
    transposed: bool,
    up: bool,
) -> bool {
    let (from, to) = match transposed {
        true => (plane(output), plane(image)),
        false => (plane(image), plane(output)),
    };
    let places = match up {
        true => window.output_rounded_up(from[0], from[1]),
        false => window.output(from[0], from[1]),
    };
    output.len() == image.len()
        && image.len() >= 3
        && output[0] == image[0]
        && output[1] == channels
        && places == Ok(to)
}
