//! Free list for large blocks in wasm memory, which never shrinks.
//!
//! An allocator for all sizes puts the first small block into the gap that a large one left. The
//! next large block must then grow the memory, so memory use depends on chance and grows with the
//! number of runs. Here the largest blocks come from the end of the free memory and smaller ones
//! from its beginning. The activations of many samples thus use the same places again.
//! docs/decisions/055-bench-history.md has the measurements.

/// Size and alignment of blocks: one cache line, so that no two blocks share one.
pub const GRAIN: usize = 64;

/// Maximum number of free ranges; beyond it the smallest is dropped. The list then takes half as
/// much memory as the smallest block that it manages.
const MAX_RANGES: usize = 2048;

/// Minimum size of blocks from this list; the system's allocator serves smaller ones.
pub const LARGE_BLOCK: usize = 32 << 10;

/// Minimum size of blocks that come from the end of the free memory.
const HUGE_BLOCK: usize = 1 << 20;

/// A free range, in grains.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FreeRange {
    at: u32,
    len: u32,
}

impl FreeRange {
    fn end(self) -> u32 {
        self.at + self.len
    }
}

/// Number of grains for this many bytes.
fn grains(bytes: usize) -> u32 {
    bytes.div_ceil(GRAIN) as u32
}

/// Free memory between large blocks: ranges in address order, none of which touch.
#[derive(Debug, Default)]
pub struct FreeList(Vec<FreeRange>);

impl FreeList {
    /// An empty list.
    pub const fn new() -> Self {
        FreeList(Vec::new())
    }

    /// Allocates a block and returns its address; `None` if no free range is large enough.
    pub fn take(&mut self, bytes: usize) -> Option<usize> {
        let len = grains(bytes);
        let fits = |range: &FreeRange| range.len >= len;
        let at = if bytes < HUGE_BLOCK {
            let index = self.0.iter().position(fits)?;
            let at = self.0[index].at;
            self.shorten(index, at + len, len);
            at
        } else {
            let index = self.0.iter().rposition(fits)?;
            let range = self.0[index];
            self.shorten(index, range.at, len);
            range.end() - len
        };
        Some(at as usize * GRAIN)
    }

    /// Resizes a block in place. Returns false if the free range behind it is too short.
    pub fn resize(&mut self, at: usize, old: usize, new: usize) -> bool {
        let (first, before, after) = (grains(at), grains(old), grains(new));
        if after <= before {
            if after < before {
                self.put(
                    (first + after) as usize * GRAIN,
                    (before - after) as usize * GRAIN,
                );
            }
            return true;
        }
        let (end, more) = (first + before, after - before);
        match self.0.binary_search_by_key(&end, |range| range.at) {
            Ok(index) if self.0[index].len >= more => {
                self.shorten(index, end + more, more);
                true
            }
            _ => false,
        }
    }

    /// Removes `by` grains from a range, which then begins at `at`.
    fn shorten(&mut self, index: usize, at: u32, by: u32) {
        let range = &mut self.0[index];
        *range = FreeRange {
            at,
            len: range.len - by,
        };
        if range.len == 0 {
            self.0.remove(index);
        }
    }

    /// Frees a block, or adds new memory.
    pub fn put(&mut self, at: usize, bytes: usize) {
        let mut new = FreeRange {
            at: (at / GRAIN) as u32,
            len: grains(bytes),
        };
        let mut index = self.0.partition_point(|range| range.at < new.at);
        if let Some(next) = self
            .0
            .get(index)
            .copied()
            .filter(|next| next.at == new.end())
        {
            new.len += next.len;
            self.0.remove(index);
        }
        if let Some(last) = index
            .checked_sub(1)
            .map(|before| self.0[before])
            .filter(|last| last.end() == new.at)
        {
            new = FreeRange {
                at: last.at,
                len: last.len + new.len,
            };
            index -= 1;
            self.0.remove(index);
        }
        self.0.insert(index, new);
        if self.0.len() == MAX_RANGES {
            let smallest = (0..MAX_RANGES).min_by_key(|&index| self.0[index].len);
            smallest.map(|index| self.0.remove(index));
        }
    }

    /// Bytes of the free range that ends at `end`; 0 if there is none.
    pub fn bytes_ending_at(&self, end: u64) -> usize {
        let last = self
            .0
            .last()
            .filter(|last| u64::from(last.end()) * GRAIN as u64 == end);
        last.map_or(0, |last| last.len as usize * GRAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;

    #[test]
    fn the_largest_blocks_come_from_the_end_and_freed_blocks_merge() {
        let mut free = FreeList::new();
        assert_eq!(free.take(LARGE_BLOCK), None);
        free.put(MIB, 8 * MIB);
        assert_eq!(free.take(64 * KIB), Some(MIB));
        assert_eq!(free.take(2 * MIB), Some(7 * MIB));
        assert_eq!(free.take(64 * KIB), Some(MIB + 64 * KIB));
        assert_eq!(free.take(6 * MIB), None);
        free.put(MIB, 64 * KIB);
        free.put(7 * MIB, 2 * MIB);
        free.put(MIB + 64 * KIB, 64 * KIB);
        assert_eq!(
            free.0,
            [FreeRange {
                at: grains(MIB),
                len: grains(8 * MIB)
            }]
        );
        assert_eq!(
            (
                free.bytes_ending_at(9 << 20),
                free.bytes_ending_at(10 << 20)
            ),
            (8 * MIB, 0)
        );
    }

    #[test]
    fn a_block_grows_into_the_free_range_behind_it_and_leaves_one_when_it_shrinks() {
        let mut free = FreeList::new();
        free.put(0, MIB);
        let at = free.take(100 * KIB).unwrap();
        let next = free.take(100 * KIB).unwrap();
        assert!(
            !free.resize(at, 100 * KIB, 101 * KIB),
            "something lies behind it"
        );
        assert!(free.resize(next, 100 * KIB, 200 * KIB));
        assert!(!free.resize(next, 200 * KIB, MIB));
        assert!(free.resize(next, 200 * KIB, 50 * KIB));
        assert_eq!(
            free.0,
            [FreeRange {
                at: grains(150 * KIB),
                len: grains(MIB - 150 * KIB)
            }]
        );
    }

    proptest! {
        /// For any sequence of calls: no two blocks overlap, none leaves the memory, and freeing
        /// all leaves one range.
        #[test]
        fn blocks_never_overlap_and_nothing_is_lost(steps in prop::collection::vec((0..3u8, 1..3 * MIB, any::<prop::sample::Index>()), 1..200)) {
            let memory = 16 * MIB;
            let mut free = FreeList::new();
            free.put(0, memory);
            let mut blocks: Vec<(usize, usize)> = Vec::new();
            for (what, bytes, which) in steps {
                match what {
                    0 => blocks.extend(free.take(bytes).map(|at| (at, bytes))),
                    _ if blocks.is_empty() => {}
                    1 => {
                        let (at, bytes) = blocks.swap_remove(which.index(blocks.len()));
                        free.put(at, bytes);
                    }
                    _ => {
                        let block = which.index(blocks.len());
                        let (at, old) = blocks[block];
                        if free.resize(at, old, bytes) {
                            blocks[block].1 = bytes;
                        }
                    }
                }
                let mut sorted = blocks.clone();
                sorted.sort_unstable();
                prop_assert!(sorted.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
                prop_assert!(sorted.last().is_none_or(|last| last.0 + last.1 <= memory));
                prop_assert!(free.0.windows(2).all(|pair| pair[0].end() < pair[1].at));
            }
            for (at, bytes) in blocks {
                free.put(at, bytes);
            }
            prop_assert_eq!(free.0, [FreeRange { at: 0, len: grains(memory) }]);
        }
    }
}
