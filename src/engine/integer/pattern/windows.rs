//! Windows of convolutions and poolings, with all padding as numbers.

use octet_kernels::int8::Window;

use super::reader::Reason;
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
    let list = |key: &str, default: usize, length: usize| -> Result<Vec<usize>, Reason> {
        let Some(given) = node.ints(key) else {
            return Ok(vec![default; length]);
        };
        let sizes: Option<Vec<usize>> = given.iter().map(|&v| usize::try_from(v).ok()).collect();
        sizes
            .filter(|sizes| sizes.len() == length)
            .ok_or_else(|| format!("its {key} are {given:?}"))
    };
    let strides = list("strides", 1, spatial)?;
    let dilations = list("dilations", 1, spatial)?;
    let mut pads = list("pads", 0, 2 * spatial)?;
    let sound = |list: &[usize]| list.iter().all(|&v| (1..1 << 20).contains(&v));
    if !sound(kernel) || !sound(&strides) || !sound(&dilations) || pads.iter().any(|&p| p > 1 << 20)
    {
        return Err("its kernel, strides, dilations or padding make no window".into());
    }
    let automatic = node.text("auto_pad").unwrap_or("NOTSET");
    let sized = transposed && node.ints("output_shape").is_some();
    for axis in 0..spatial {
        let reach = (kernel[axis] - 1) * dilations[axis] + 1;
        // The window moves over the larger of the two images.
        let (larger, places) = match transposed {
            true => (output[axis + 2], image[axis + 2]),
            false => (image[axis + 2], output[axis + 2]),
        };
        let total = ((places.max(1) - 1) * strides[axis] + reach).saturating_sub(larger);
        let half = total / 2;
        // What is left of an odd amount goes behind for SAME_UPPER, before for SAME_LOWER. A transposed
        // convolution of a given size has it before, unless it is SAME_UPPER.
        let before = match automatic {
            "SAME_UPPER" => half,
            "SAME_LOWER" => total - half,
            _ if sized => total - half,
            "VALID" => 0,
            _ => continue,
        };
        let behind = if automatic == "VALID" && !sized {
            0
        } else {
            total - before
        };
        (pads[axis], pads[axis + spatial]) = (before, behind);
    }
    let two = |list: &[usize], one: usize| match *list {
        [only] => [one, only],
        [first, second, ..] => [first, second],
        [] => [one, one],
    };
    Ok(Window {
        kernel: two(kernel, 1),
        strides: two(&strides, 1),
        dilations: two(&dilations, 1),
        pads: match pads[..] {
            [left, right] => [0, left, 0, right],
            [top, left, bottom, right] => [top, left, bottom, right],
            _ => return Err(format!("its pads are {pads:?}")),
        },
    })
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
