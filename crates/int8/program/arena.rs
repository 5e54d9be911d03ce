//! Arena offsets of buffers; buffers with overlapping lifetimes never overlap in memory.

/// Size of a buffer, and its first and last accessing instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BufferLifetime {
    pub(crate) size: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Alignment of buffers: a cache line.
const ALIGNMENT: usize = 64;

/// Assigns an offset to each buffer and returns the arena's size.
///
/// Buffers are placed by descending size, each at the lowest offset that is free during its
/// lifetime. For the layers of a network, the result is close to the maximum of the live sizes,
/// which is the lower bound.
pub(crate) fn assign_offsets(lives: &[BufferLifetime]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..lives.len()).collect();
    order.sort_by_key(|&buffer| (std::cmp::Reverse(lives[buffer].size), buffer));
    let mut offsets = vec![0; lives.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut total = 0;
    for buffer in order {
        let life = lives[buffer];
        let mut busy: Vec<(usize, usize)> = placed
            .iter()
            .filter(|&&other| lives[other].first <= life.last && life.first <= lives[other].last)
            .map(|&other| (offsets[other], offsets[other] + lives[other].size))
            .collect();
        busy.sort_unstable();
        let mut offset = 0;
        for (begin, end) in busy {
            if offset + life.size <= begin {
                break;
            }
            offset = offset.max(end.next_multiple_of(ALIGNMENT));
        }
        offsets[buffer] = offset;
        total = total.max(offset + life.size);
        placed.push(buffer);
    }
    (offsets, total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn life(size: usize, first: usize, last: usize) -> BufferLifetime {
        BufferLifetime { size, first, last }
    }

    #[test]
    fn a_chain_of_layers_needs_two_buffers() {
        let lives: Vec<BufferLifetime> = (0..10).map(|i| life(1000, i, i + 1)).collect();
        let (_, total) = assign_offsets(&lives);
        assert!(total <= 2 * 1024, "{total}");
    }

    proptest! {
        #[test]
        fn buffers_with_overlapping_lifetimes_never_overlap(spans in prop::collection::vec((0usize..5000, 0usize..20, 0usize..8), 1..40)) {
            let lives: Vec<BufferLifetime> = spans.iter().map(|&(size, first, more)| life(size, first, first + more)).collect();
            let (offsets, total) = assign_offsets(&lives);
            for (i, a) in lives.iter().enumerate() {
                prop_assert!(offsets[i] + a.size <= total);
                for (j, b) in lives.iter().enumerate().skip(i + 1) {
                    let together = a.first <= b.last && b.first <= a.last;
                    let overlap = offsets[i] < offsets[j] + b.size && offsets[j] < offsets[i] + a.size;
                    prop_assert!(!(together && overlap && a.size > 0 && b.size > 0));
                }
            }
        }
    }
}
