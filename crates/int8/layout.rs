//! Memory layout of a value: ONNX's axis order or channels-last.

/// Order of a value's axes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum MemoryLayout {
    /// ONNX's axis order.
    Plain,
    /// Axis 1 after all others.
    ChannelsLast,
}

impl MemoryLayout {
    /// The axes in memory order.
    pub(crate) fn order(self, rank: usize) -> Vec<usize> {
        match self {
            MemoryLayout::ChannelsLast if rank >= 3 => {
                let mut order: Vec<usize> = (0..rank).filter(|&axis| axis != 1).collect();
                order.push(1);
                order
            }
            _ => (0..rank).collect(),
        }
    }

    /// Position of an axis in memory order.
    pub(crate) fn place(self, axis: usize, rank: usize) -> usize {
        match self {
            MemoryLayout::ChannelsLast if rank >= 3 => match axis {
                0 => 0,
                1 => rank - 1,
                axis => axis - 1,
            },
            _ => axis,
        }
    }

    /// The sizes in memory order.
    pub(crate) fn sizes(self, shape: &[usize]) -> Vec<usize> {
        let order = self.order(shape.len());
        order.into_iter().map(|axis| shape[axis]).collect()
    }
}

/// True if both layouts have the same bytes: one channel, one pixel, or no image.
pub(crate) fn coincide(shape: &[usize]) -> bool {
    shape.len() < 3 || shape[1] == 1 || shape[2..].iter().all(|&size| size == 1)
}

/// True if a permutation moves no data: axes of size 1 do not count.
pub(crate) fn is_still(sizes: &[usize], order: &[usize]) -> bool {
    let moved: Vec<usize> = order
        .iter()
        .copied()
        .filter(|&axis| sizes[axis] != 1)
        .collect();
    moved.is_sorted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_an_axis_agrees_with_the_order() {
        for rank in 1..6 {
            for layout in [MemoryLayout::Plain, MemoryLayout::ChannelsLast] {
                for (place, &axis) in layout.order(rank).iter().enumerate() {
                    assert_eq!(layout.place(axis, rank), place, "{layout:?} {rank}");
                }
            }
        }
    }

    #[test]
    fn one_pixel_or_one_channel_has_equal_layouts() {
        for (shape, same) in [
            (&[2, 3, 1, 1][..], true),
            (&[2, 1, 4, 5], true),
            (&[2, 3, 4, 5], false),
            (&[7, 8], true),
        ] {
            assert_eq!(coincide(shape), same, "{shape:?}");
            let order = MemoryLayout::ChannelsLast.order(shape.len());
            assert_eq!(is_still(shape, &order), same, "{shape:?}");
        }
    }
}
