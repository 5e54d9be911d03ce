//! Shapes of sliding-window operators: convolutions, pooling and their inverses.

use super::{InferredValue, Types};
use crate::{Around, Dim, SlidingWindow};
use octet_onnx::schema::NodeProto;

/// Limit on sizes, so that products of them fit.
const LARGEST: usize = 1 << 31;

/// The output shape of a sliding window; `None` if the rank is unknown.
pub(super) fn shape(node: &NodeProto, types: &Types) -> Option<Vec<Dim>> {
    let input = types.get(node.input_at(0)?)?.shape.clone()?;
    let weight = node
        .input_at(1)
        .and_then(|w| types.get(w))
        .and_then(InferredValue::sizes);
    let spatial = input.len().checked_sub(2)?;
    let convolution = ["Conv", "DeformConv", "ConvTranspose"]
        .iter()
        .any(|one| node.is(one));
    let kernel: Vec<usize> = match (node.ints("kernel_shape"), &weight) {
        (Some(kernel), _) => kernel.iter().map(|&k| k.max(0) as usize).collect(),
        (None, Some(weight)) => weight.get(2..)?.to_vec(),
        (None, None) => return Some(unknown(&input, None)),
    };
    let channel = if node.is("ConvTranspose") {
        let group = node.int("group").unwrap_or(1).max(1) as usize;
        weight.as_ref().and_then(|w| Some(w.get(1)? * group))
    } else {
        weight.as_ref().and_then(|w| w.first().copied())
    };
    let mut result = unknown(
        &input,
        if convolution {
            channel.map(Dim::Known)
        } else {
            Some(input[1].clone())
        },
    );
    let slides = SlidingWindow::from_node(node, &kernel).filter(|slides| slides.len() == spatial);
    let extra = node.ints("output_padding");
    let extra = extra.map_or_else(|| vec![0; spatial], <[i64]>::to_vec);
    let (Some(slides), true) = (slides, extra.len() == spatial) else {
        return Some(result);
    };
    for (axis, slide) in slides.iter().enumerate() {
        let size = match input[axis + 2] {
            Dim::Known(size) if size < LARGEST => size as i64,
            _ => continue,
        };
        let output_size = if node.is("MaxUnpool") {
            Some(slide.output(size, 0).1)
        } else if node.is("ConvTranspose") {
            match node.ints("output_shape") {
                Some(shape) => shape.get(axis).copied(),
                None => Some(slide.output(size, extra[axis]).1),
            }
        } else {
            window_positions(slide, size, node.int("ceil_mode").unwrap_or(0) != 0)
        };
        result[axis + 2] = output_size
            .and_then(|m| usize::try_from(m).ok())
            .map_or(Dim::Unknown, Dim::Known);
    }
    Some(result)
}

fn unknown(input: &[Dim], channel: Option<Dim>) -> Vec<Dim> {
    let mut shape = vec![Dim::Unknown; input.len()];
    shape[0] = input[0].clone();
    if let (Some(channel), Some(at)) = (channel, shape.get_mut(1)) {
        *at = channel;
    }
    shape
}

/// Number of positions of a window over so many values; `up` rounds it up.
fn window_positions(slide: &SlidingWindow, size: i64, up: bool) -> Option<i64> {
    let (before, room) = slide.travel(size);
    if room < 0 {
        return None;
    }
    let (_, places) = slide.places(size);
    let fixed = matches!(slide.around, Around::Fixed(..));
    if !(up && fixed) || room % slide.stride == 0 {
        return Some(places);
    }
    // Implementations differ on a last window that would start beyond the input.
    (places * slide.stride < size + before).then_some(places + 1)
}
