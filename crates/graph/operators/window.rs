//! Sliding windows of convolutions, poolings and their inverses.

use super::shape_context::ShapeContext;
use crate::inferred_value::InferredValue;
use crate::{Around, Dim, Node, SlidingWindow};

/// The way in which a window maps its input to its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowKind {
    /// A convolution, whose weight is the second input.
    Convolution,
    /// The inverse of a convolution.
    Transposed,
    /// A pooling.
    Pooling,
    /// The inverse of a pooling.
    Unpooling,
}

/// Attributes of convolutions and poolings. `None` for a list that is absent.
pub(super) struct WindowAttributes<'a> {
    pub(super) kernel_shape: Option<&'a [i64]>,
    pub(super) strides: Option<&'a [i64]>,
    pub(super) dilations: Option<&'a [i64]>,
    pub(super) pads: Option<&'a [i64]>,
    pub(super) output_padding: Option<&'a [i64]>,
    pub(super) output_shape: Option<&'a [i64]>,
    pub(super) auto_pad: Option<&'a str>,
    group: Option<i64>,
    /// A last window that is incomplete counts.
    ceil_mode: bool,
}

impl WindowAttributes<'_> {
    pub(super) fn read(node: &Node) -> WindowAttributes<'_> {
        WindowAttributes {
            kernel_shape: node.ints("kernel_shape"),
            strides: node.ints("strides"),
            dilations: node.ints("dilations"),
            pads: node.ints("pads"),
            output_padding: node.ints("output_padding"),
            output_shape: node.ints("output_shape"),
            auto_pad: node.text("auto_pad"),
            group: node.int("group"),
            ceil_mode: node.int("ceil_mode").unwrap_or(0) != 0,
        }
    }
}

/// Limit on sizes, so that products of them fit.
const LARGEST: usize = 1 << 31;

/// The output of a sliding window.
pub(super) fn infer(ctx: &ShapeContext, kind: WindowKind) -> Option<InferredValue> {
    let element = ctx.input(0)?.element;
    Some(InferredValue::new(element, shape(ctx, kind)))
}

/// The output shape of a sliding window; `None` if the rank is unknown.
pub(super) fn shape(ctx: &ShapeContext, kind: WindowKind) -> Option<Vec<Dim>> {
    let attributes = WindowAttributes::read(ctx.node);
    let input = ctx.input(0)?.shape.clone()?;
    let weight = ctx.input(1).and_then(InferredValue::sizes);
    let spatial = input.len().checked_sub(2)?;
    let convolution = matches!(kind, WindowKind::Convolution | WindowKind::Transposed);
    let kernel: Vec<usize> = match (attributes.kernel_shape, &weight) {
        (Some(kernel), _) => kernel.iter().map(|&k| k.max(0) as usize).collect(),
        (None, Some(weight)) => weight.get(2..)?.to_vec(),
        (None, None) => return Some(unknown(&input, None)),
    };
    let channel = if kind == WindowKind::Transposed {
        let group = attributes.group.unwrap_or(1).max(1) as usize;
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
    let slides =
        SlidingWindow::from_node(ctx.node, &kernel).filter(|slides| slides.len() == spatial);
    let extra = attributes.output_padding;
    let extra = extra.map_or_else(|| vec![0; spatial], <[i64]>::to_vec);
    let (Some(slides), true) = (slides, extra.len() == spatial) else {
        return Some(result);
    };
    for (axis, slide) in slides.iter().enumerate() {
        let size = match input[axis + 2] {
            Dim::Known(size) if size < LARGEST => size as i64,
            _ => continue,
        };
        let output_size = match (kind, attributes.output_shape) {
            (WindowKind::Unpooling, _) => Some(slide.output(size, 0).1),
            (WindowKind::Transposed, Some(shape)) => shape.get(axis).copied(),
            (WindowKind::Transposed, None) => Some(slide.output(size, extra[axis]).1),
            _ => window_positions(slide, size, attributes.ceil_mode),
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
