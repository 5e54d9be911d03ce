//! How the window of a convolution slides along an axis.

use serde::{Deserialize, Serialize};

use crate::onnx::schema::NodeProto;

/// How a window slides along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slide {
    /// How many values it meets at a place.
    pub taps: i64,
    /// How far it is from one place to the next.
    pub stride: i64,
    /// How far it is from one tap to the next.
    pub dilation: i64,
    /// What lies around the values.
    pub around: Around,
}

/// How many zeros there are before and after the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Around {
    /// So many.
    Fixed(i64, i64),
    /// As many as let the places be the values divided by the stride; of an odd number the greater half after them.
    Upper,
    /// The same, the greater half before them.
    Lower,
}

impl Slide {
    /// How the kernel of a convolution slides, axis by axis; `None` where that makes no sense.
    pub fn of(node: &NodeProto, kernel: &[usize]) -> Option<Vec<Slide>> {
        let along = |(axis, &taps): (usize, &usize)| {
            let at = |name: &str, place: usize, usual: i64| {
                let given = node.ints(name).and_then(|values| values.get(place));
                given.copied().unwrap_or(usual)
            };
            let slide = Slide {
                taps: i64::try_from(taps).ok()?,
                stride: at("strides", axis, 1),
                dilation: at("dilations", axis, 1),
                around: match node.text("auto_pad") {
                    Some("SAME_UPPER") => Around::Upper,
                    Some("SAME_LOWER") => Around::Lower,
                    Some("VALID") => Around::Fixed(0, 0),
                    _ => Around::Fixed(at("pads", axis, 0), at("pads", axis + kernel.len(), 0)),
                },
            };
            let whole = |size: i64| (1..1 << 31).contains(&size);
            let sound = [slide.taps, slide.stride, slide.dilation]
                .into_iter()
                .all(whole);
            sound.then_some(slide)
        };
        kernel.iter().enumerate().map(along).collect()
    }

    /// From the first value it meets at a place to the one behind the last.
    pub fn reach(&self) -> i64 {
        self.dilation * (self.taps - 1) + 1
    }

    /// The zeros before and after so many values. `over`: what the window reaches over them where it is at all places that it should
    /// have.
    pub fn zeros(&self, over: i64) -> [i64; 2] {
        let over = over.max(0);
        match self.around {
            Around::Fixed(before, after) => [before, after],
            Around::Upper => [over / 2, over - over / 2],
            Around::Lower => [over - over / 2, over / 2],
        }
    }

    /// The zeros before the values, and at how many places the window of a convolution is over so many.
    pub fn places(&self, extent: i64) -> (i64, i64) {
        let over = (extent - 1) / self.stride * self.stride + self.reach() - extent;
        let [before, after] = self.zeros(over);
        let room = extent + before + after - self.reach();
        (before, (room.div_euclid(self.stride) + 1).max(0))
    }

    /// The place among the values that a tap meets; outside of them it meets a zero.
    pub fn met(&self, place: i64, tap: i64, before: i64) -> i64 {
        place * self.stride + tap * self.dilation - before
    }
}
