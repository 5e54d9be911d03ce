//! Gathers the inputs that a layer's weights multiply, at some positions of each sample.

use octet_graph::SlidingWindow;
use octet_stats::Im2colView;

/// The inputs of a layer in a value of one shape.
pub(crate) struct Positions<'a> {
    view: &'a Im2colView,
    /// Inputs per output of a group.
    inputs: usize,
    shape: Vec<usize>,
    /// Number of positions.
    pub(crate) count: usize,
    /// Padding before, and positions, along each spatial axis.
    along: Vec<(i64, usize)>,
}

/// The place of a position's inputs.
pub(crate) struct Place {
    /// The first value of the row or the image.
    first: usize,
    /// The offset of each tap in a plane; `None` in the padding.
    taps: Vec<Option<usize>>,
}

impl<'a> Positions<'a> {
    /// `None` if the layer can't read a value of this shape.
    pub(crate) fn new(
        view: &'a Im2colView,
        inputs: usize,
        shape: &[usize],
    ) -> Option<Positions<'a>> {
        let (count, along) = match view {
            Im2colView::Rows => {
                let (&last, before) = shape.split_last()?;
                (last == inputs).then(|| (before.iter().product(), Vec::new()))?
            }
            Im2colView::Windows { groups, slides } => {
                let (&[images, channels], extents) = shape.split_first_chunk()?;
                let taps: usize = slides.iter().map(|slide| slide.taps as usize).product();
                if extents.len() != slides.len() || channels * taps != groups * inputs {
                    return None;
                }
                let along = slides.iter().zip(extents).map(|(slide, &extent)| {
                    let (before, places) = slide.places(extent as i64);
                    (before, places as usize)
                });
                let along: Vec<(i64, usize)> = along.collect();
                let places: usize = along.iter().map(|&(_, places)| places).product();
                (images * places, along)
            }
        };
        Some(Positions {
            view,
            inputs,
            shape: shape.to_vec(),
            count,
            along,
        })
    }

    /// Finds the inputs of a position.
    pub(crate) fn place(&self, position: usize) -> Place {
        match self.view {
            Im2colView::Rows => Place {
                first: position * self.inputs,
                taps: Vec::new(),
            },
            Im2colView::Windows { slides, .. } => {
                let places: usize = self.along.iter().map(|&(_, places)| places).product();
                let taps: usize = slides.iter().map(|slide| slide.taps as usize).product();
                let image: usize = self.shape[1..].iter().product();
                let own = position % places.max(1);
                Place {
                    first: position / places.max(1) * image,
                    taps: (0..taps).map(|tap| self.offset(slides, own, tap)).collect(),
                }
            }
        }
    }

    /// Writes the inputs of all groups at some places to `out`, a row for each input and a column
    /// for each place. `zero` stands in the padding.
    pub(crate) fn read<F: Copy, T: Copy>(
        &self,
        values: &[F],
        convert: impl Fn(F) -> T + Copy,
        zero: T,
        places: &[Place],
        out: &mut [T],
    ) {
        let of_group = self.inputs * places.len();
        for (group, out) in out.chunks_exact_mut(of_group.max(1)).enumerate() {
            self.read_group(values, convert, zero, places, group, out);
        }
    }

    /// Writes the inputs of one group, as [`Positions::read`] does for all.
    pub(crate) fn read_group<F: Copy, T: Copy>(
        &self,
        values: &[F],
        convert: impl Fn(F) -> T,
        zero: T,
        places: &[Place],
        group: usize,
        out: &mut [T],
    ) {
        for (column, place) in places.iter().enumerate() {
            let to = out[column..].iter_mut().step_by(places.len());
            match self.view {
                Im2colView::Rows => {
                    for (to, &value) in to.zip(&values[place.first..][..self.inputs]) {
                        *to = convert(value);
                    }
                }
                Im2colView::Windows { .. } => {
                    let plane: usize = self.shape[2..].iter().product();
                    let channels = self.inputs / place.taps.len().max(1);
                    let of_group = (group * channels..(group + 1) * channels)
                        .flat_map(|channel| place.taps.iter().map(move |tap| (channel, tap)));
                    for (to, (channel, tap)) in to.zip(of_group) {
                        let first = place.first + channel * plane;
                        *to = tap.map_or(zero, |at| convert(values[first + at]));
                    }
                }
            }
        }
    }

    /// The offset of a tap in a plane; `None` in the padding.
    fn offset(&self, slides: &[SlidingWindow], mut place: usize, mut tap: usize) -> Option<usize> {
        let (mut at, mut stride) = (0, 1);
        let axes = slides.iter().zip(&self.shape[2..]).zip(&self.along);
        for ((slide, &extent), &(before, places)) in axes.rev() {
            let own = (tap % slide.taps as usize) as i64;
            let value = slide.value_index((place % places) as i64, own, before);
            at += usize::try_from(value)
                .ok()
                .filter(|&value| value < extent)?
                * stride;
            stride *= extent;
            place /= places;
            tap /= slide.taps as usize;
        }
        Some(at)
    }
}

/// Some positions of a sample, in an order in which any first few are spread evenly.
pub(crate) fn chosen(count: usize, wanted: usize, seed: u64) -> Vec<usize> {
    // Multiples of the fractional part of the golden ratio, in 64 bits.
    const RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
    let place = |index: u64| {
        let fraction = index
            .wrapping_mul(RATIO)
            .wrapping_add(seed.wrapping_mul(0xD134_2543_DE82_EF95));
        ((u128::from(fraction) * count as u128) >> 64) as usize
    };
    (0..wanted.min(count) as u64).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_graph::Around;

    #[test]
    fn windows_are_read_as_a_convolution_reads_them() {
        let slide = |around| SlidingWindow {
            taps: 3,
            stride: 2,
            dilation: 1,
            around,
        };
        let view = Im2colView::Windows {
            groups: 2,
            slides: vec![slide(Around::Fixed(1, 1)), slide(Around::Fixed(0, 1))],
        };
        let shape = [2, 4, 5, 4];
        let values: Vec<f32> = (0..160).map(|i| i as f32 + 1.0).collect();
        let positions = Positions::new(&view, 18, &shape).unwrap();
        assert_eq!(positions.count, 2 * 3 * 2);
        let places: Vec<Place> = (0..positions.count).map(|at| positions.place(at)).collect();
        let mut out = vec![9.0; 2 * 18 * 12];
        positions.read(&values, |value| value, 0.0, &places, &mut out);
        for position in 0..positions.count {
            for group in 0..2 {
                let (image, y, x) = (position / 6, position % 6 / 2, position % 2);
                for input in 0..18 {
                    let (channel, i, j) = (2 * group + input / 9, input % 9 / 3, input % 3);
                    let (row, column) = ((2 * y + i) as i64 - 1, 2 * x + j);
                    let inside = (0..5).contains(&row) && column < 4;
                    let at = ((image * 4 + channel) * 5 + row.max(0) as usize) * 4 + column;
                    let expected = if inside { values[at] } else { 0.0 };
                    assert_eq!(
                        out[(group * 18 + input) * 12 + position],
                        expected,
                        "{position} {group} {input}"
                    );
                }
            }
        }
        assert!(Positions::new(&view, 17, &shape).is_none());
        assert!(Positions::new(&Im2colView::Rows, 3, &[2, 4]).is_none());
    }

    #[test]
    fn chosen_positions_are_spread_and_depend_on_the_seed() {
        let places = chosen(1000, 100, 1);
        assert!(places.iter().all(|&place| place < 1000));
        assert_ne!(places, chosen(1000, 100, 2));
        let mut sorted = places.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.len() > 95);
        let widest = sorted.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(widest < Some(40));
        assert_eq!(chosen(3, 10, 0).len(), 3);
    }
}
