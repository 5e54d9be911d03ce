//! Data movement: transposes, selections and block rearrangements.

use super::error::{Error, at_least, equal, product};
use super::table::copy_rows;

/// Transposes a dense tensor of any rank. Output axis i is input axis `order[i]`.
pub fn permute<T: Copy>(
    values: &[T],
    shape: &[usize],
    order: &[usize],
    output: &mut [T],
) -> Result<(), Error> {
    equal("axes", shape.len(), order.len())?;
    let count = product("the tensor", shape)?;
    at_least("the input", values.len(), count)?;
    at_least("the output", output.len(), count)?;
    let mut strides = vec![1usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        // Wraps only if another size is zero; then nothing is copied.
        strides[axis - 1] = strides[axis].wrapping_mul(shape[axis]);
    }
    let mut named = vec![false; shape.len()];
    for &axis in order {
        match named.get_mut(axis) {
            Some(named) if !*named => *named = true,
            Some(_) => return Err(Error::RepeatedAxis(axis)),
            None => {
                return Err(Error::OutOfRange {
                    what: "a permutation",
                    length: shape.len(),
                    index: axis,
                });
            }
        }
    }
    let sizes: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
    let steps: Vec<usize> = order.iter().map(|&axis| strides[axis]).collect();
    let (Some((&width, outer)), Some(&step)) = (sizes.split_last(), steps.last()) else {
        // A tensor without axes is a single value.
        output[0] = values[0];
        return Ok(());
    };
    if count == 0 {
        return Ok(());
    }
    let mut place = vec![0; outer.len()];
    let mut first = 0;
    for row in output[..count].chunks_exact_mut(width) {
        if step == 1 {
            row.copy_from_slice(&values[first..][..width]);
        } else {
            for (at, to) in row.iter_mut().enumerate() {
                *to = values[first + at * step];
            }
        }
        // Advances the index, last axis first.
        for axis in (0..outer.len()).rev() {
            place[axis] += 1;
            first += steps[axis];
            if place[axis] < outer[axis] {
                break;
            }
            first -= place[axis] * steps[axis];
            place[axis] = 0;
        }
    }
    Ok(())
}

/// Selects the given positions of each axis, in order; `None` selects the fill value. It implements
/// Slice, Split, Pad, Gather along an axis and nearest Resize.
pub fn select<T: Copy>(
    values: &[T],
    shape: &[usize],
    positions: &[impl AsRef<[Option<usize>]>],
    fill: T,
    output: &mut [T],
) -> Result<(), Error> {
    equal("axes", shape.len(), positions.len())?;
    let count = product("the tensor", shape)?;
    at_least("the input", values.len(), count)?;
    let positions: Vec<&[Option<usize>]> = positions.iter().map(AsRef::as_ref).collect();
    let sizes: Vec<usize> = positions.iter().map(|along| along.len()).collect();
    let total = product("the output", &sizes)?;
    at_least("the output", output.len(), total)?;
    for (positions, &size) in positions.iter().zip(shape) {
        if let Some(most) = positions.iter().copied().flatten().max()
            && most >= size
        {
            return Err(Error::OutOfRange {
                what: "a selection",
                length: size,
                index: most,
            });
        }
    }
    let axes: Vec<Axis> = (0..shape.len())
        .map(|axis| Axis::new(shape[axis], positions[axis]))
        .collect();
    selected(&values[..count], &axes, fill, &mut output[..total]);
    Ok(())
}

/// The selection along one axis.
struct Axis {
    size: usize,
    picked: usize,
    runs: Vec<Run>,
}

/// A run of consecutive positions, or of fill values.
struct Run {
    first: Option<usize>,
    count: usize,
}

impl Axis {
    fn new(size: usize, positions: &[Option<usize>]) -> Axis {
        let mut runs: Vec<Run> = Vec::new();
        for &position in positions {
            match runs.last_mut() {
                Some(run) if run.first.map(|first| first + run.count) == position => run.count += 1,
                _ => runs.push(Run {
                    first: position,
                    count: 1,
                }),
            }
        }
        Axis {
            size,
            picked: positions.len(),
            runs,
        }
    }

    /// Returns true if the axis is selected unchanged.
    fn is_whole(&self) -> bool {
        let all = |run: &Run| run.first == Some(0) && run.count == self.size;
        matches!(&self.runs[..], [run] if all(run))
    }
}

fn selected<T: Copy>(values: &[T], axes: &[Axis], fill: T, output: &mut [T]) {
    let Some((axis, rest)) = axes.split_first() else {
        output[0] = values[0];
        return;
    };
    if output.is_empty() {
        return;
    }
    let (inner, outer) = (values.len() / axis.size.max(1), output.len() / axis.picked);
    // If all inner axes are unchanged, a run is one copy.
    let whole = rest.iter().all(Axis::is_whole);
    let (mut done, mut before) = (0, None);
    for run in &axis.runs {
        let (made, output) = output.split_at_mut(done * outer);
        let output = &mut output[..run.count * outer];
        match run.first {
            None => output.fill(fill),
            // A repeated position, as in upscaling, copies the output just written.
            Some(at) if run.count == 1 && before == Some(at) => {
                copied(&made[made.len() - outer..], output);
            }
            Some(at) if whole => copied(&values[at * inner..][..run.count * inner], output),
            Some(at) => {
                for (place, output) in output.chunks_exact_mut(outer).enumerate() {
                    selected(&values[(at + place) * inner..][..inner], rest, fill, output);
                }
            }
        }
        done += run.count;
        before = run.first.map(|first| first + run.count - 1);
    }
}

/// Copies a slice. In wasm, the compiler turns even the shortest copy into a call to `memory.copy`.
fn copied<T: Copy>(from: &[T], to: &mut [T]) {
    if from.len() > 16 {
        return to.copy_from_slice(from);
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Padding modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// The fill value.
    Constant,
    /// The outermost value.
    Edge,
    /// Mirrored at the outermost value, which is not repeated.
    Reflect,
    /// Continued from the opposite end.
    Wrap,
}

/// Returns the positions for [`select`] that pad an axis.
pub fn padded(
    size: usize,
    before: usize,
    after: usize,
    padding: Padding,
) -> Result<Vec<Option<usize>>, Error> {
    let total = before
        .checked_add(size)
        .and_then(|all| all.checked_add(after))
        .filter(|&all| all <= isize::MAX as usize / size_of::<Option<usize>>())
        .ok_or(Error::TooLarge {
            what: "the padding",
        })?;
    let (length, begin) = (size as i128, before as i128);
    let position = |at: usize| {
        let at = at as i128 - begin;
        let inside = match padding {
            _ if length == 0 => return None,
            Padding::Constant => at,
            Padding::Edge => at.clamp(0, length - 1),
            Padding::Wrap => at.rem_euclid(length),
            Padding::Reflect if length == 1 => 0,
            Padding::Reflect => {
                let round = 2 * (length - 1);
                let at = at.rem_euclid(round);
                at.min(round - at)
            }
        };
        usize::try_from(inside).ok().filter(|&at| at < size)
    };
    Ok((0..total).map(position).collect())
}

/// Returns `count` positions for [`select`] from `start` on. A negative `step` goes backwards.
pub fn stepped(start: usize, step: isize, count: usize) -> Vec<Option<usize>> {
    (0..count)
        .map(|at| {
            let moved = step.checked_mul(isize::try_from(at).ok()?)?;
            start.checked_add_signed(moved)
        })
        .collect()
}

/// Order of a block's values in the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOrder {
    /// ONNX's DCR: block row, block column, channel.
    BlockFirst,
    /// ONNX's CRD: channel, block row, block column.
    ChannelFirst,
}

/// DepthToSpace of an image [height, width, channels].
pub fn depth_to_space(
    values: &[u8],
    [height, width, channels]: [usize; 3],
    block: usize,
    order: BlockOrder,
    output: &mut [u8],
) -> Result<(), Error> {
    let area = product("the block", &[block, block])?;
    if area == 0 {
        return Err(Error::Zero { what: "the block" });
    }
    equal("channels in whole blocks", channels / area * area, channels)?;
    let inner = channels / area;
    match order {
        BlockOrder::BlockFirst => {
            let run = product("a block's row", &[block, inner])?;
            swapped(values, [height, width, block], run, output)
        }
        BlockOrder::ChannelFirst => permute(
            values,
            &[height, width, inner, block, block],
            &[0, 3, 1, 4, 2],
            output,
        ),
    }
}

/// SpaceToDepth of an image [height, width, channels].
pub fn space_to_depth(
    values: &[u8],
    [height, width, channels]: [usize; 3],
    block: usize,
    output: &mut [u8],
) -> Result<(), Error> {
    if block == 0 {
        return Err(Error::Zero { what: "the block" });
    }
    equal("height in whole blocks", height / block * block, height)?;
    equal("width in whole blocks", width / block * block, width)?;
    let run = product("a block's row", &[block, channels])?;
    swapped(values, [height / block, block, width / block], run, output)
}

/// Transposes runs of bytes from [outer, a, b] to [outer, b, a].
fn swapped(
    values: &[u8],
    [outer, a, b]: [usize; 3],
    run: usize,
    output: &mut [u8],
) -> Result<(), Error> {
    let count = product("the image", &[outer, a, b, run])?;
    at_least("the input", values.len(), count)?;
    at_least("the output", output.len(), count)?;
    let block = a * b * run;
    if block == 0 {
        return Ok(());
    }
    let blocks = values[..count]
        .chunks_exact(block)
        .zip(output[..count].chunks_exact_mut(block));
    for (values, output) in blocks {
        for (at, row) in output.chunks_exact_mut(a * run).enumerate() {
            copy_rows(&values[at * run..], b * run, [a, run], None, row, run)?;
        }
    }
    Ok(())
}
