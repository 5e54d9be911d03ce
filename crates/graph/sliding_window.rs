//! The sliding window of a convolution or pooling along an axis.

use crate::Node;
use serde::{Deserialize, Serialize};

/// A sliding window along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlidingWindow {
    /// Values per window position.
    pub taps: i64,
    /// Distance between window positions.
    pub stride: i64,
    /// Distance between taps.
    pub dilation: i64,
    /// Padding around the values.
    pub around: Around,
}

/// Zeros before and after the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Around {
    /// Fixed numbers of zeros.
    Fixed(i64, i64),
    /// SAME_UPPER: the number of positions is the extent divided by the stride, rounded up. Of an
    /// odd number of zeros the greater half follows the values.
    Upper,
    /// SAME_LOWER: like `Upper`, with the greater half before the values.
    Lower,
}

impl SlidingWindow {
    /// The windows of a node, axis by axis, or `None` if its attributes are invalid.
    pub fn from_node(node: &Node, kernel: &[usize]) -> Option<Vec<SlidingWindow>> {
        let count = kernel.len();
        let list = |name: &str, usual: i64, length: usize| match node.ints(name) {
            None => Some(vec![usual; length]),
            Some(list) => (list.len() == length).then(|| list.to_vec()),
        };
        let (strides, dilations) = (list("strides", 1, count)?, list("dilations", 1, count)?);
        let pads = list("pads", 0, 2 * count)?;
        let along = |(axis, &taps): (usize, &usize)| {
            let slide = SlidingWindow {
                taps: i64::try_from(taps).ok()?,
                stride: strides[axis],
                dilation: dilations[axis],
                around: match node.text("auto_pad") {
                    Some("SAME_UPPER") => Around::Upper,
                    Some("SAME_LOWER") => Around::Lower,
                    Some("VALID") => Around::Fixed(0, 0),
                    _ => Around::Fixed(pads[axis], pads[axis + count]),
                },
            };
            // Sums and products of such sizes do not overflow.
            let whole = |size: i64| (1..1 << 31).contains(&size);
            let fits = |pad: &i64| (-(1 << 31)..1 << 31).contains(pad);
            let pads_fit = match slide.around {
                Around::Fixed(before, after) => [before, after].iter().all(fits),
                _ => true,
            };
            let valid = [slide.taps, slide.stride, slide.dilation]
                .into_iter()
                .all(whole);
            (valid && pads_fit).then_some(slide)
        };
        kernel.iter().enumerate().map(along).collect()
    }

    /// Extent of a dilated window.
    #[inline]
    pub fn span(&self) -> i64 {
        self.dilation * (self.taps - 1) + 1
    }

    /// Zeros before and after the values. `over` is the number of zeros needed for the intended
    /// number of positions.
    pub fn zeros(&self, over: i64) -> [i64; 2] {
        let over = over.max(0);
        match self.around {
            Around::Fixed(before, after) => [before, after],
            Around::Upper => [over / 2, over - over / 2],
            Around::Lower => [over - over / 2, over / 2],
        }
    }

    /// Zeros before the values, and the distance over which the window can move.
    pub fn travel(&self, extent: i64) -> (i64, i64) {
        let over = (extent - 1) / self.stride * self.stride + self.span() - extent;
        let [before, after] = self.zeros(over);
        (before, extent + before + after - self.span())
    }

    /// Zeros before the values, and the number of window positions.
    pub fn places(&self, extent: i64) -> (i64, i64) {
        let (before, travel) = self.travel(extent);
        (before, (travel.div_euclid(self.stride) + 1).max(0))
    }

    /// Outputs of a transposed convolution before cropping. `more` is the output padding.
    pub fn full_output(&self, extent: i64, more: i64) -> i64 {
        (extent - 1) * self.stride + self.span() + more
    }

    /// Outputs that a transposed convolution crops at the start, and outputs left. `more` is the
    /// output padding.
    pub fn output(&self, extent: i64, more: i64) -> (i64, i64) {
        let whole = self.full_output(extent, more);
        match self.around {
            Around::Fixed(before, after) => (before, whole - before - after),
            // ONNX Runtime adds no zeros to reach the extent times the stride. A kernel smaller
            // than the stride gives fewer outputs.
            _ => {
                let outputs = whole.min(extent * self.stride);
                let [before, _] = self.zeros(whole - outputs);
                (before, outputs)
            }
        }
    }

    /// Cropping of a transposed convolution whose output size is given. Of an odd amount ONNX
    /// Runtime crops the greater half at the start, unless the padding is `Upper`.
    pub fn output_of_size(&self, size: i64, extent: i64, more: i64) -> (i64, i64) {
        let around = match self.around {
            Around::Fixed(..) => Around::Lower,
            around => around,
        };
        let over = self.full_output(extent, more) - size;
        let [before, _] = SlidingWindow { around, ..*self }.zeros(over);
        (before, size)
    }

    /// Index of the value under a tap. An index outside of the values means a padding zero.
    #[inline]
    pub fn value_index(&self, place: i64, tap: i64, before: i64) -> i64 {
        place * self.stride + tap * self.dilation - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attribute;

    fn slide(
        kernel: usize,
        attributes: &[(&str, &[i64])],
        pad: Option<&str>,
    ) -> Option<SlidingWindow> {
        let mut node = Node::new("Conv", "n", &["x", "w"], &["y"]);
        for (name, values) in attributes {
            node = node.with(Attribute::ints(name, values));
        }
        if let Some(pad) = pad {
            node = node.with(Attribute::text("auto_pad", pad));
        }
        SlidingWindow::from_node(&node, &[kernel])?.first().copied()
    }

    #[test]
    fn positions_match_onnx() {
        for (kernel, attributes, pad, extent, places) in [
            (3, &[][..], None, 5, (0, 3)),
            (3, &[("pads", &[1, 2][..])][..], None, 5, (1, 6)),
            (3, &[("strides", &[2])], None, 6, (0, 2)),
            (3, &[("dilations", &[3])], None, 6, (0, 0)),
            (7, &[], None, 5, (0, 0)),
            (3, &[("strides", &[2])], Some("SAME_UPPER"), 6, (0, 3)),
            (3, &[("strides", &[2])], Some("SAME_LOWER"), 6, (1, 3)),
            (1, &[("strides", &[3])], Some("SAME_UPPER"), 7, (0, 3)),
            (3, &[("pads", &[1, 1])], Some("VALID"), 5, (0, 3)),
        ] {
            let window = slide(kernel, attributes, pad).unwrap();
            assert_eq!(window.places(extent), places, "{attributes:?} {pad:?}");
        }
    }

    #[test]
    fn outputs_of_transposed_convolutions_match_onnx() {
        for (kernel, attributes, pad, more, outputs) in [
            (3, &[][..], None, 0, (0, 6)),
            (
                3,
                &[("strides", &[2][..]), ("pads", &[1, 1][..])][..],
                None,
                1,
                (1, 8),
            ),
            (3, &[("strides", &[2])], Some("SAME_UPPER"), 0, (0, 8)),
            (4, &[("strides", &[2])], Some("SAME_LOWER"), 1, (2, 8)),
            (1, &[("strides", &[3])], Some("SAME_UPPER"), 0, (0, 10)),
            (1, &[("strides", &[3])], Some("SAME_UPPER"), 2, (0, 12)),
        ] {
            let window = slide(kernel, attributes, pad).unwrap();
            assert_eq!(window.output(4, more), outputs, "{attributes:?} {pad:?}");
        }
    }

    #[test]
    fn invalid_windows_give_none() {
        assert_eq!(slide(0, &[], None), None);
        assert_eq!(slide(3, &[("strides", &[0])], None), None);
        assert_eq!(slide(3, &[("strides", &[1, 1])], None), None);
        assert_eq!(slide(3, &[("dilations", &[-1])], None), None);
        assert_eq!(slide(3, &[("pads", &[1])], None), None);
        assert_eq!(slide(3, &[("pads", &[1 << 40, 0])], None), None);
        assert_eq!(slide(3, &[("strides", &[1 << 31])], None), None);
    }
}
