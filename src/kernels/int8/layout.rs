//! Moving values without changing them: transposes, selections, blocks; and transposes that convert on the way.

use super::convert::Scale;
use super::error::{Error, at_least, equal, product, span};

/// [pixels, channels] to [channels, pixels]: channels first. A pixel begins every `stride` values.
pub fn to_channels_first<T: Copy>(
    values: &[T],
    stride: usize,
    [pixels, channels]: [usize; 2],
    output: &mut [T],
) -> Result<(), Error> {
    turned_out(values, stride, [pixels, channels], output, |value| value)
}

/// [channels, pixels] to [pixels, channels]: channels last. A pixel begins every `stride` values of the output.
pub fn to_channels_last<T: Copy>(
    values: &[T],
    [channels, pixels]: [usize; 2],
    output: &mut [T],
    stride: usize,
) -> Result<(), Error> {
    turned_in(values, [channels, pixels], output, stride, |value| value)
}

/// The same, quantizing on the way: floats with channels first come in.
pub fn quantize_to_channels_last(
    values: &[f32],
    [channels, pixels]: [usize; 2],
    to: Scale,
    output: &mut [u8],
    stride: usize,
) -> Result<(), Error> {
    turned_in(values, [channels, pixels], output, stride, |value| {
        to.byte(value)
    })
}

/// The same, dequantizing on the way: floats with channels first come out.
pub fn dequantize_to_channels_first(
    values: &[u8],
    stride: usize,
    [pixels, channels]: [usize; 2],
    from: Scale,
    output: &mut [f32],
) -> Result<(), Error> {
    turned_out(values, stride, [pixels, channels], output, |byte| {
        from.value(byte)
    })
}

/// Pixels and channels at once: a tile is turned in a small array, so that both sides are read and written in runs.
const TILE: usize = 16;

fn turned_out<F: Copy, T: Copy>(
    values: &[F],
    stride: usize,
    [pixels, channels]: [usize; 2],
    output: &mut [T],
    of: impl Fn(F) -> T,
) -> Result<(), Error> {
    at_least(
        "the input",
        values.len(),
        span("the input", pixels, stride, channels)?,
    )?;
    at_least(
        "the output",
        output.len(),
        product("the output", &[pixels, channels])?,
    )?;
    let Some(&any) = values.first().filter(|_| pixels * channels > 0) else {
        return Ok(());
    };
    let mut tile = [[any; TILE]; TILE];
    for (first, begin) in tiles(pixels, channels) {
        let (tall, wide) = (TILE.min(pixels - first), TILE.min(channels - begin));
        for pixel in 0..tall {
            let row = &values[(first + pixel) * stride + begin..][..wide];
            for (tile, &value) in tile.iter_mut().zip(row) {
                tile[pixel] = value;
            }
        }
        for (channel, tile) in tile[..wide].iter().enumerate() {
            let row = &mut output[(begin + channel) * pixels + first..][..tall];
            for (to, &from) in row.iter_mut().zip(tile) {
                *to = of(from);
            }
        }
    }
    Ok(())
}

fn turned_in<F: Copy, T: Copy>(
    values: &[F],
    [channels, pixels]: [usize; 2],
    output: &mut [T],
    stride: usize,
    of: impl Fn(F) -> T,
) -> Result<(), Error> {
    at_least(
        "the input",
        values.len(),
        product("the input", &[pixels, channels])?,
    )?;
    at_least(
        "the output",
        output.len(),
        span("the output", pixels, stride, channels)?,
    )?;
    let Some(any) = output.first().copied().filter(|_| pixels * channels > 0) else {
        return Ok(());
    };
    let mut tile = [[any; TILE]; TILE];
    for (first, begin) in tiles(pixels, channels) {
        let (tall, wide) = (TILE.min(pixels - first), TILE.min(channels - begin));
        for channel in 0..wide {
            let row = &values[(begin + channel) * pixels + first..][..tall];
            for (tile, &value) in tile.iter_mut().zip(row) {
                tile[channel] = of(value);
            }
        }
        for (pixel, tile) in tile[..tall].iter().enumerate() {
            let row = &mut output[(first + pixel) * stride + begin..][..wide];
            for (to, &from) in row.iter_mut().zip(tile) {
                *to = from;
            }
        }
    }
    Ok(())
}

/// The first pixel and channel of each tile.
fn tiles(pixels: usize, channels: usize) -> impl Iterator<Item = (usize, usize)> {
    let firsts = (0..pixels).step_by(TILE);
    firsts.flat_map(move |first| (0..channels).step_by(TILE).map(move |begin| (first, begin)))
}

/// Transposes a dense tensor of any rank: output axis i is input axis `order[i]`.
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
        // Wraps only where another size is zero, and nothing is moved.
        strides[axis - 1] = strides[axis].wrapping_mul(shape[axis]);
    }
    let mut named = vec![false; shape.len()];
    for &axis in order {
        match named.get_mut(axis) {
            Some(named) if !*named => *named = true,
            _ => {
                return Err(Error::Mismatch {
                    what: "an axis named twice or beyond the last",
                    expected: shape.len(),
                    found: axis,
                });
            }
        }
    }
    let sizes: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
    let steps: Vec<usize> = order.iter().map(|&axis| strides[axis]).collect();
    let (Some((&width, outer)), Some(&step)) = (sizes.split_last(), steps.last()) else {
        // A tensor without axes is one value.
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
        // Counts on, the last axis first.
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

/// Takes from each axis the positions named, in that order, or a filling where none is named: Slice, Split, Pad,
/// Gather along an axis, a nearest Resize.
pub fn select<T: Copy>(
    values: &[T],
    shape: &[usize],
    positions: &[Vec<Option<usize>>],
    fill: T,
    output: &mut [T],
) -> Result<(), Error> {
    equal("axes", shape.len(), positions.len())?;
    let count = product("the tensor", shape)?;
    at_least("the input", values.len(), count)?;
    let sizes: Vec<usize> = positions.iter().map(Vec::len).collect();
    let total = product("the output", &sizes)?;
    at_least("the output", output.len(), total)?;
    for (positions, &size) in positions.iter().zip(shape) {
        if let Some(&most) = positions.iter().flatten().max()
            && most >= size
        {
            return Err(Error::Mismatch {
                what: "a position beyond the axis",
                expected: size,
                found: most,
            });
        }
    }
    selected(
        &values[..count],
        shape,
        positions,
        fill,
        &mut output[..total],
    );
    Ok(())
}

fn selected<T: Copy>(
    values: &[T],
    shape: &[usize],
    positions: &[Vec<Option<usize>>],
    fill: T,
    output: &mut [T],
) {
    let (Some((size, shape)), Some((first, rest))) = (shape.split_first(), positions.split_first())
    else {
        output[0] = values[0];
        return;
    };
    if output.is_empty() {
        return;
    }
    if rest.is_empty() {
        for (to, position) in output.iter_mut().zip(first) {
            *to = position.map_or(fill, |at| values[at]);
        }
        return;
    }
    let (inner, outer) = (values.len() / (*size).max(1), output.len() / first.len());
    // Whole from here on inwards: a copy.
    let whole = rest.iter().zip(shape).all(|(positions, &size)| {
        positions.len() == size && positions.iter().enumerate().all(|(at, &p)| p == Some(at))
    });
    for (output, position) in output.chunks_exact_mut(outer).zip(first) {
        match position {
            None => output.fill(fill),
            Some(at) if whole => output.copy_from_slice(&values[at * inner..][..inner]),
            Some(at) => selected(&values[at * inner..][..inner], shape, rest, fill, output),
        }
    }
}

/// What stands in the padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// The filling.
    Constant,
    /// The outermost value.
    Edge,
    /// Mirrored at the outermost value, which is not repeated.
    Reflect,
    /// From the other end.
    Wrap,
}

/// Positions for [`select`] that pad an axis.
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

/// Positions for [`select`]: `count` of them from `start`, `step` apart (backwards where it is negative).
pub fn stepped(start: usize, step: isize, count: usize) -> Vec<Option<usize>> {
    (0..count)
        .map(|at| {
            let moved = step.checked_mul(isize::try_from(at).ok()?)?;
            start.checked_add_signed(moved)
        })
        .collect()
}

/// In what order the values of a block lie in the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOrder {
    /// ONNX's DCR: the block's row, its column, then the channel.
    BlockFirst,
    /// ONNX's CRD: the channel, then the block's row and column.
    ChannelFirst,
}

/// DepthToSpace of an image [height, width, channels].
pub fn depth_to_space<T: Copy>(
    values: &[T],
    [height, width, channels]: [usize; 3],
    block: usize,
    order: BlockOrder,
    output: &mut [T],
) -> Result<(), Error> {
    let area = product("the block", &[block, block])?;
    if area == 0 {
        return Err(Error::Zero { what: "the block" });
    }
    equal("channels, over the block", channels / area * area, channels)?;
    let inner = channels / area;
    match order {
        BlockOrder::BlockFirst => permute(
            values,
            &[height, width, block, block, inner],
            &[0, 2, 1, 3, 4],
            output,
        ),
        BlockOrder::ChannelFirst => permute(
            values,
            &[height, width, inner, block, block],
            &[0, 3, 1, 4, 2],
            output,
        ),
    }
}

/// SpaceToDepth of an image [height, width, channels].
pub fn space_to_depth<T: Copy>(
    values: &[T],
    [height, width, channels]: [usize; 3],
    block: usize,
    output: &mut [T],
) -> Result<(), Error> {
    if block == 0 {
        return Err(Error::Zero { what: "the block" });
    }
    equal("height, over the block", height / block * block, height)?;
    equal("width, over the block", width / block * block, width)?;
    permute(
        values,
        &[height / block, block, width / block, block, channels],
        &[0, 2, 1, 3, 4],
        output,
    )
}
