//! The im2col view of a value: the positions at which a layer reads its inputs.

mod stored;

use octet_kernels::LONGEST;
use serde::{Deserialize, Serialize};

use octet_graph::SlidingWindow;

/// Maximum number of positions read per sample.
const POSITIONS: usize = LONGEST / 2;

/// The layout in which a layer reads a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Im2colView {
    /// All numbers along the last axis: a matrix product.
    Rows,
    /// The channels of a group within a sliding window: a convolution.
    Windows {
        /// Number of groups.
        groups: usize,
        /// The window along each spatial axis.
        slides: Vec<SlidingWindow>,
    },
}

impl Im2colView {
    /// Number of groups.
    pub fn groups(&self) -> usize {
        match self {
            Im2colView::Rows => 1,
            Im2colView::Windows { groups, .. } => *groups,
        }
    }
}

/// Offsets of a layer's inputs in a value of one shape.
pub(super) struct Im2colOffsets {
    /// Inputs per output.
    pub(super) inputs: usize,
    /// Offset of the first input of each position.
    pub(super) positions: Vec<usize>,
    /// Channel stride, number of taps, and the offset of every tap at every position, tap by tap.
    /// `OUTSIDE` is a padding zero.
    windows: Option<(usize, usize, Vec<usize>)>,
}

const OUTSIDE: usize = usize::MAX;

impl Im2colOffsets {
    /// Returns `None` if the layer cannot read a value of this shape.
    pub(super) fn new(view: &Im2colView, shape: &[usize]) -> Option<Im2colOffsets> {
        match view {
            Im2colView::Rows => {
                let (&inputs, before) = shape.split_last()?;
                let positions = chosen(before.iter().product());
                Some(Im2colOffsets {
                    inputs,
                    positions: positions.into_iter().map(|row| row * inputs).collect(),
                    windows: None,
                })
            }
            Im2colView::Windows { groups, slides } => {
                Im2colOffsets::from_windows(*groups, slides, shape)
            }
        }
    }

    fn from_windows(
        groups: usize,
        slides: &[SlidingWindow],
        shape: &[usize],
    ) -> Option<Im2colOffsets> {
        let (&[images, channels], extents) = shape.split_first_chunk()?;
        if extents.len() != slides.len() || groups == 0 || !channels.is_multiple_of(groups) {
            return None;
        }
        let along: Vec<(i64, usize)> = slides
            .iter()
            .zip(extents)
            .map(|(slide, &extent)| {
                let (before, places) = slide.places(extent as i64);
                (before, places as usize)
            })
            .collect();
        let plane: usize = extents.iter().product();
        let places: usize = along.iter().map(|&(_, places)| places).product();
        let positions = chosen(images * places);
        let taps: usize = slides.iter().map(|slide| slide.taps as usize).product();
        let mut offsets = Vec::with_capacity(taps * positions.len());
        for tap in 0..taps {
            for position in &positions {
                // From the last axis to the first.
                let (mut place, mut tap, mut stride, mut at) = (position % places, tap, 1, 0);
                for ((slide, &extent), &(before, places)) in
                    slides.iter().zip(extents).zip(&along).rev()
                {
                    let own = (tap % slide.taps as usize) as i64;
                    let value = slide.value_index((place % places) as i64, own, before);
                    let inside = usize::try_from(value).ok().filter(|&value| value < extent);
                    at = match inside {
                        Some(value) if at != OUTSIDE => at + value * stride,
                        _ => OUTSIDE,
                    };
                    (place, tap, stride) =
                        (place / places, tap / slide.taps as usize, stride * extent);
                }
                offsets.push(at);
            }
        }
        let begin = |position: usize| position / places * channels * plane;
        Some(Im2colOffsets {
            inputs: channels / groups * taps,
            positions: positions.into_iter().map(begin).collect(),
            windows: Some((plane, taps, offsets)),
        })
    }

    /// Calls `each` with the index and value of every position at which the input lies inside.
    pub(super) fn read(
        &self,
        values: &[f32],
        group: usize,
        input: usize,
        mut each: impl FnMut(usize, f32),
    ) {
        match &self.windows {
            None => {
                for (place, &begin) in self.positions.iter().enumerate() {
                    each(place, values[begin + input]);
                }
            }
            Some((plane, taps, offsets)) => {
                let count = self.positions.len();
                let channel = (group * self.inputs + input) / taps * plane;
                let offsets = &offsets[input % taps * count..][..count];
                for (place, (&begin, &at)) in self.positions.iter().zip(offsets).enumerate() {
                    if at != OUTSIDE {
                        each(place, values[begin + channel + at]);
                    }
                }
            }
        }
    }
}

/// Selects positions: all, or a subset whose spacing is even for any extents.
fn chosen(count: usize) -> Vec<usize> {
    if count <= POSITIONS {
        return (0..count).collect();
    }
    // Multiples of the fractional part of the golden ratio, in 64 bits.
    let place = |index: u64| index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let scaled = |place: u64| ((u128::from(place) * count as u128) >> 64) as usize;
    let mut places: Vec<usize> = (0..POSITIONS as u64)
        .map(|index| scaled(place(index)))
        .collect();
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subset_of_many_positions_is_evenly_spaced() {
        let places = chosen(100_000);
        assert_eq!(places.len(), POSITIONS);
        let gaps = places.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().max() < Some(1_000) && gaps.min() > Some(100));
        assert_eq!(chosen(3), [0, 1, 2]);
    }
}
