//! Windows of convolutions and poolings, with explicit padding.

use octet_kernels::int8::Window;

use octet_graph::{Around, Node, SlidingWindow};

use crate::float_reason::FloatReason;
use crate::program::image_size::plane;

/// The window of a Conv or ConvTranspose with one or two spatial axes.
pub(super) fn convolution_window(
    node: &Node,
    kernel: &[usize],
    image: &[usize],
    output: &[usize],
    transposed: bool,
) -> Result<Window, FloatReason> {
    if let Some(attribute) = node.ints("kernel_shape")
        && !attribute
            .iter()
            .map(|&k| k as usize)
            .eq(kernel.iter().copied())
    {
        return Err(FloatReason::KernelShape(
            kernel.to_vec(),
            attribute.to_vec(),
        ));
    }
    window(node, kernel, image, output, transposed)
}

/// The window of a pooling.
pub(super) fn pooling_window(
    node: &Node,
    image: &[usize],
    output: &[usize],
) -> Result<Window, FloatReason> {
    let attribute = node.ints("kernel_shape").unwrap_or_default();
    let kernel: Option<Vec<usize>> = attribute.iter().map(|&k| usize::try_from(k).ok()).collect();
    window(node, &kernel.unwrap_or_default(), image, output, false)
}

fn window(
    node: &Node,
    kernel: &[usize],
    image: &[usize],
    output: &[usize],
    transposed: bool,
) -> Result<Window, FloatReason> {
    let spatial = kernel.len();
    if !matches!(spatial, 1 | 2) || image.len() != spatial + 2 || output.len() != spatial + 2 {
        return Err(FloatReason::WindowAxes(spatial, image.to_vec()));
    }
    let slides = SlidingWindow::from_node(node, kernel);
    let slides = slides.filter(|slides| slides.iter().all(is_sound));
    let slides = slides.ok_or(FloatReason::InvalidWindow)?;
    let mut pads = vec![0; 2 * spatial];
    for (axis, slide) in slides.iter().enumerate() {
        let [from, to] = [image[axis + 2], output[axis + 2]];
        let zeros = match transposed {
            true => cut_off(node, slide, axis, [from, to])?,
            false => {
                let reached = (to.max(1) as i64 - 1) * slide.stride + slide.span();
                slide.zeros(reached - from as i64)
            }
        };
        [pads[axis], pads[axis + spatial]] = zeros.map(|zeros| zeros as usize);
    }
    let two = |list: &[usize], one: usize| match *list {
        [only] => [one, only],
        [first, second, ..] => [first, second],
        [] => [one, one],
    };
    let each = |of: fn(&SlidingWindow) -> i64| -> Vec<usize> {
        slides.iter().map(|slide| of(slide) as usize).collect()
    };
    Ok(Window {
        kernel: two(kernel, 1),
        strides: two(&each(|slide| slide.stride), 1),
        dilations: two(&each(|slide| slide.dilation), 1),
        pads: match pads[..] {
            [left, right] => [0, left, 0, right],
            [top, left, bottom, right] => [top, left, bottom, right],
            _ => return Err(FloatReason::WindowPads(pads)),
        },
    })
}

/// Elements cropped from both ends of a transposed convolution's output, so that `to` remain of
/// those computed from `from` inputs. Its window slides over the output.
fn cut_off(
    node: &Node,
    slide: &SlidingWindow,
    axis: usize,
    [from, to]: [usize; 2],
) -> Result<[i64; 2], FloatReason> {
    let along = |key: &str| node.ints(key).and_then(|list| list.get(axis).copied());
    let more = along("output_padding").unwrap_or(0);
    if !(0..slide.stride.max(slide.dilation)).contains(&more) {
        return Err(FloatReason::OutputPadding(more));
    }
    let extent = from.max(1) as i64;
    let (before, made) = match along("output_shape") {
        Some(_) => slide.output_of_size(to as i64, extent, more),
        None => slide.output(extent, more),
    };
    let behind = slide.full_output(extent, more) - before - made;
    match made == to as i64 && behind >= 0 {
        true => Ok([before, behind]),
        false => Err(FloatReason::WindowSize(to, axis + 2, made + behind.min(0))),
    }
}

/// True if all sizes are small enough for arithmetic without overflow and no padding is negative.
fn is_sound(slide: &SlidingWindow) -> bool {
    const LARGEST: i64 = 1 << 20;
    let zeros = match slide.around {
        Around::Fixed(before, after) => [before, after],
        _ => [0, 0],
    };
    let sizes = [slide.taps, slide.stride, slide.dilation];
    sizes.iter().all(|&size| size < LARGEST)
        && zeros.iter().all(|zeros| (0..=LARGEST).contains(zeros))
}

/// Checks a window's output shape; `up` permits a pooling to round up.
pub(super) fn has_output(
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

#[cfg(test)]
mod tests {
    use super::*;
    use octet_graph::Attribute;

    /// Values of ONNX Runtime 1.31; seven thousand windows in all modes were compared.
    #[test]
    fn a_transposed_convolution_crops_to_its_size() {
        let sized = Some(16);
        for (auto, sized, more, taps, to, cut) in [
            ("NOTSET", None, 0, 3, 17, Some([0, 0])),
            ("NOTSET", None, 1, 3, 18, Some([0, 0])),
            ("NOTSET", sized, 0, 3, 16, Some([1, 0])),
            ("NOTSET", sized, 1, 3, 16, Some([1, 1])),
            ("VALID", sized, 0, 3, 16, Some([1, 0])),
            ("SAME_UPPER", sized, 0, 3, 16, Some([0, 1])),
            ("SAME_UPPER", sized, 1, 3, 16, Some([1, 1])),
            ("SAME_LOWER", sized, 0, 3, 16, Some([1, 0])),
            ("SAME_UPPER", None, 0, 3, 16, Some([0, 1])),
            ("SAME_UPPER", None, 1, 3, 16, Some([1, 1])),
            ("SAME_LOWER", None, 1, 4, 16, Some([2, 1])),
            ("SAME_LOWER", None, 0, 2, 16, Some([0, 0])),
            // A kernel smaller than the stride is not padded.
            ("SAME_UPPER", None, 0, 1, 15, Some([0, 0])),
            ("SAME_UPPER", None, 0, 1, 16, None),
            // The output shape without the additional elements.
            ("SAME_UPPER", None, 1, 3, 15, None),
            ("NOTSET", None, 2, 3, 19, None),
        ] {
            let mut node = Node::new("ConvTranspose", "c", &["x", "w"], &["y"])
                .with(Attribute::text("auto_pad", auto))
                .with(Attribute::ints("strides", &[2]))
                .with(Attribute::ints("output_padding", &[more]));
            if let Some(size) = sized {
                node.set(Attribute::ints("output_shape", &[size]));
            }
            let slides = SlidingWindow::from_node(&node, &[taps]).unwrap_or_default();
            let found = cut_off(&node, &slides[0], 0, [8, to]).ok();
            assert_eq!(found, cut, "{auto} {sized:?} {more} {taps} {to}");
        }
    }
}
