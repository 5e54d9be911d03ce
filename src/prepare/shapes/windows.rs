//! Shapes of operators that slide a window: convolutions and pooling.

use super::{Known, Types};
use crate::graph::Dim;
use crate::onnx::schema::NodeProto;

/// The shape a sliding window gives, or `None` where not even the rank is known.
pub(super) fn shape(node: &NodeProto, types: &Types) -> Option<Vec<Dim>> {
    let input = types.get(node.input_at(0)?)?.shape.clone()?;
    let weight = node
        .input_at(1)
        .and_then(|w| types.get(w))
        .and_then(Known::sizes);
    let spatial = input.len().checked_sub(2)?;
    let convolution = node.is("Conv") || node.is("ConvTranspose");
    let kernel: Vec<usize> = match (node.ints("kernel_shape"), &weight) {
        (Some(kernel), _) => kernel.iter().map(|&k| k.max(0) as usize).collect(),
        (None, Some(weight)) => weight.get(2..)?.to_vec(),
        (None, None) => return Some(unknown(&input, None)),
    };
    let list = |key: &str, default: i64| -> Vec<i64> {
        node.ints(key)
            .map_or_else(|| vec![default; spatial], <[i64]>::to_vec)
    };
    let (strides, dilations) = (list("strides", 1), list("dilations", 1));
    let pads = node
        .ints("pads")
        .map_or_else(|| vec![0; 2 * spatial], <[i64]>::to_vec);
    let extra = list("output_padding", 0);
    let lengths = [
        kernel.len(),
        strides.len(),
        dilations.len(),
        extra.len(),
        pads.len() / 2,
    ];
    let channel = if node.is("Conv") {
        weight.as_ref().and_then(|w| w.first().copied())
    } else if node.is("ConvTranspose") {
        let group = node.int("group").unwrap_or(1).max(1) as usize;
        weight.as_ref().and_then(|w| Some(w.get(1)? * group))
    } else {
        None
    };
    let mut result = unknown(
        &input,
        if convolution {
            channel.map(Dim::Known)
        } else {
            Some(input[1].clone())
        },
    );
    if lengths.iter().any(|&l| l != spatial) || strides.iter().any(|&s| s < 1) {
        return Some(result);
    }
    for axis in 0..spatial {
        let Dim::Known(size) = input[axis + 2] else {
            continue;
        };
        let window = Window {
            size: size as i64,
            reach: dilations[axis] * (kernel[axis] as i64 - 1) + 1,
            stride: strides[axis],
            before: pads[axis],
            after: pads[axis + spatial],
        };
        let made = if node.is("ConvTranspose") {
            match node.ints("output_shape") {
                Some(shape) => shape.get(shape.len().checked_sub(spatial)? + axis).copied(),
                None => Some(window.enlarged(node, extra[axis])),
            }
        } else {
            window.shrunk(node)
        };
        result[axis + 2] = made
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

struct Window {
    size: i64,
    reach: i64,
    stride: i64,
    before: i64,
    after: i64,
}

impl Window {
    fn shrunk(&self, node: &NodeProto) -> Option<i64> {
        let (before, after) = match node.text("auto_pad") {
            Some("SAME_UPPER" | "SAME_LOWER") => {
                return Some((self.size + self.stride - 1) / self.stride);
            }
            Some("VALID") => (0, 0),
            _ => (self.before, self.after),
        };
        let room = self.size + before + after - self.reach;
        if room < 0 {
            return None;
        }
        let floor = room / self.stride + 1;
        if node.int("ceil_mode").unwrap_or(0) == 0 || room % self.stride == 0 {
            return Some(floor);
        }
        // A last window that would start beyond the input is dropped by some and kept by others.
        (floor * self.stride < self.size + before).then_some(floor + 1)
    }

    fn enlarged(&self, node: &NodeProto, extra: i64) -> i64 {
        match node.text("auto_pad") {
            Some("SAME_UPPER" | "SAME_LOWER") => self.size * self.stride,
            _ => self.stride * (self.size - 1) + extra + self.reach - self.before - self.after,
        }
    }
}
