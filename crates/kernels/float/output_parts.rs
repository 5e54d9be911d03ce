//! Parts of a convolution's output that threads compute independently.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::gemm::{MR, NR};
use super::{Geometry, PartRunner, packed_once};

/// Minimum panels of a part of rows. The last panel of a part is not full.
const MIN_PANELS: usize = 6;

/// Minimum channels of a part of channels. Packing the input costs as much as a few channels, if
/// each part does it for itself.
const MIN_CHANNELS: usize = 32;

/// Minimum channels of a part if all parts share the packed input.
const MIN_CHANNELS_OF_SHARED: usize = 4 * MR;

/// Output channels and output rows. A value does not depend on the part that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConvolutionPart {
    pub(super) channels: Range<usize>,
    pub(super) rows: Range<usize>,
}

impl ConvolutionPart {
    pub(super) fn whole(geometry: &Geometry) -> ConvolutionPart {
        ConvolutionPart {
            channels: 0..geometry.output_channels,
            rows: 0..geometry.output[0],
        }
    }

    /// Splits the output into at most `most` parts of nearly equal size.
    ///
    /// Parts of different rows read different inputs, apart from the borders. Parts of different
    /// channels read all inputs. A dense convolution is split by channels only if it has too few
    /// rows.
    pub(super) fn split(geometry: &Geometry, most: usize, depthwise: bool) -> Vec<ConvolutionPart> {
        let whole = ConvolutionPart::whole(geometry);
        let channels = geometry.output_channels;
        let [rows, columns] = geometry.output;
        let shared = packed_once::fits(geometry);
        let (unit, by_channels) = match geometry.groups {
            _ if depthwise => (1, most),
            1 if shared => (MR, most.min(channels / MIN_CHANNELS_OF_SHARED)),
            1 => (MR, most.min(channels / MIN_CHANNELS)),
            groups => (geometry.outputs_per_group(), most.min(groups)),
        };
        let by_rows = most.min(rows).min(rows * columns / NR / MIN_PANELS);
        // Enough parts of rows are better than parts that each pack the whole input.
        let enough = by_rows > 1 && 2 * by_rows >= most && !shared;
        if !depthwise && (enough || by_rows >= by_channels) {
            let ranges = ranges(rows, 1, by_rows).into_iter();
            let part = |rows| ConvolutionPart {
                rows,
                ..whole.clone()
            };
            return ranges.map(part).collect();
        }
        let ranges = ranges(channels, unit, by_channels).into_iter();
        let part = |channels| ConvolutionPart {
            channels,
            ..whole.clone()
        };
        ranges.map(part).collect()
    }
}

/// At most `most` ranges of whole units, whose sizes differ by one unit at most.
pub(super) fn ranges(all: usize, unit: usize, most: usize) -> Vec<Range<usize>> {
    let units = all.div_ceil(unit);
    let count = most.clamp(1, units.max(1));
    let start = |part: usize| (part * units / count * unit).min(all);
    (0..count)
        .map(|part| start(part)..start(part + 1))
        .collect()
}

/// Runs `part` once for each index below `count`.
pub(super) fn once_each(count: usize, each: &PartRunner<'_>, part: &(dyn Fn(usize) + Sync)) {
    let begun: Vec<AtomicBool> = (0..count).map(|_| AtomicBool::new(false)).collect();
    each(count, &|index| {
        if !begun[index].swap(true, Ordering::Relaxed) {
            part(index);
        }
    });
}
