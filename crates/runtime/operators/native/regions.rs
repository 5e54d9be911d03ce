//! Region pooling: RoiAlign and MaxRoiPool.

use tract_onnx::tract_hir::internal::*;

use super::{NativeCall, NativeKernel};

/// The operators of this file.
pub(super) static KERNELS: &[NativeKernel] = &[
    NativeKernel::floats("MaxRoiPool", pool),
    NativeKernel::floats("RoiAlign", align),
];

/// Maximum number of sampled positions of a region; regions are data and may have any size.
const MAX_POSITIONS: f32 = (1 << 24) as f32;

/// Four pixels around a position, with their interpolation weights.
type BilinearTaps = [(usize, f32); 4];

/// From this opset on, RoiAlign uses half-pixel centers by default.
const OPSET_WITH_HALVES: i64 = 16;

/// RoiAlign: the mean or maximum of interpolated values on a grid of positions in each cell of a
/// region.
fn align(call: &NativeCall, made: &mut [f32]) -> TractResult<()> {
    let [pictures, channels, height, width] = call.sizes(0)?;
    ensure!(
        call.sizes::<2>(1)?[1] == 4 && height * width > 0,
        "its regions must have four coordinates each; its image is {height} by {width}"
    );
    let [_, _, rows, columns] = *call.output_shape else {
        bail!(
            "its output must have four axes, not shape {:?}",
            call.output_shape
        );
    };
    let (pixels, corners, of) = (call.floats(0)?, call.floats(1)?, call.integers(2)?);
    let halves = match call.node.text("coordinate_transformation_mode") {
        Some(mode) => mode == "half_pixel",
        None => call.opset >= OPSET_WITH_HALVES,
    };
    let offset = if halves { 0.5 } else { 0.0 };
    let scale = call.node.float("spatial_scale").unwrap_or(1.0);
    let ratio = call.node.int("sampling_ratio").unwrap_or(0);
    let largest = call.node.text("mode") == Some("max");
    let each = channels * rows * columns;
    let mut places: Vec<BilinearTaps> = Vec::new();
    for (region, corners) in corners.chunks_exact(4).enumerate() {
        let picture = of.get(region).copied().unwrap_or(-1);
        ensure!(
            (0..pictures as i64).contains(&picture),
            "its region {region} refers to image {picture} of {pictures}"
        );
        let at = |corner: usize| corners[corner] * scale - offset;
        let along = |from: f32, to: f32, parts: usize| {
            let size = to - from;
            let size = if halves { size } else { size.max(1.0) };
            let part = size / parts as f32;
            let seen = match ratio > 0 {
                true => ratio as f32,
                false => part.ceil().max(0.0),
            };
            (from, part, seen)
        };
        let (top, tall, down) = along(at(1), at(3), rows);
        let (left, wide, across) = along(at(0), at(2), columns);
        ensure!(
            down * across * (rows * columns) as f32 <= MAX_POSITIONS,
            "its region {region} at {corners:?} is too large"
        );
        let (down, across) = (down as usize, across as usize);
        places.clear();
        for part in 0..rows * columns {
            for seen in 0..down * across {
                let place = |from: f32, part: usize, size: f32, at: usize, all: usize| {
                    from + part as f32 * size + (at as f32 + 0.5) * size / all as f32
                };
                let y = place(top, part / columns, tall, seen / across, down);
                let x = place(left, part % columns, wide, seen % across, across);
                places.push(around(y, x, height, width));
            }
        }
        let seen = down * across;
        let made = &mut made[region * each..][..each];
        for (channel, made) in made.chunks_exact_mut(rows * columns).enumerate() {
            let first = (picture as usize * channels + channel) * height * width;
            let pixels = &pixels[first..][..height * width];
            for (part, made) in made.iter_mut().enumerate() {
                let places = &places[part * seen..][..seen];
                let share = |&(pixel, share): &(usize, f32)| share * pixels[pixel];
                *made = match largest {
                    // The maximum of the weighted pixels, not of their sums, as ONNX Runtime
                    // computes it.
                    true => {
                        let shares = places.iter().flatten().map(share);
                        shares.reduce(f32::max).unwrap_or(0.0)
                    }
                    false => {
                        let sums = places
                            .iter()
                            .map(|around| around.iter().map(share).sum::<f32>());
                        sums.sum::<f32>() / seen.max(1) as f32
                    }
                };
            }
        }
    }
    Ok(())
}

/// The pixels around a position; zero weights beyond one pixel outside.
fn around(y: f32, x: f32, height: usize, width: usize) -> BilinearTaps {
    let inside = |at: f32, size: usize| at >= -1.0 && at <= size as f32 && size > 0;
    if !inside(y, height) || !inside(x, width) {
        return [(0, 0.0); 4];
    }
    // The pixels before and behind, and the distance from the first.
    let along = |at: f32, size: usize| {
        let at = at.max(0.0);
        let low = at as usize;
        match low + 1 < size {
            true => (low, low + 1, at - low as f32),
            false => (size - 1, size - 1, 0.0),
        }
    };
    let ((top, bottom, down), (left, right, across)) = (along(y, height), along(x, width));
    let (up, back) = (1.0 - down, 1.0 - across);
    [
        (top * width + left, up * back),
        (top * width + right, up * across),
        (bottom * width + left, down * back),
        (bottom * width + right, down * across),
    ]
}

/// MaxRoiPool: the maximum in each cell of a region.
fn pool(call: &NativeCall, made: &mut [f32]) -> TractResult<()> {
    let [pictures, channels, height, width] = call.sizes(0)?;
    ensure!(
        call.sizes::<2>(1)?[1] == 5,
        "its regions must have an image index and four coordinates each"
    );
    let [_, _, rows, columns] = *call.output_shape else {
        bail!(
            "its output must have four axes, not shape {:?}",
            call.output_shape
        );
    };
    let (pixels, regions) = (call.floats(0)?, call.floats(1)?);
    let scale = call.node.float("spatial_scale").unwrap_or(1.0);
    let each = channels * rows * columns;
    for (region, said) in regions.chunks_exact(5).enumerate() {
        let picture = said[0] as i64;
        ensure!(
            (0..pictures as i64).contains(&picture),
            "its region {region} refers to image {picture} of {pictures}"
        );
        // The pixel range of a cell along an axis.
        let along = |from: f32, to: f32, part: usize, parts: usize, size: usize| {
            let [from, to] = [from, to].map(|end| (end * scale).round());
            let step = (to - from + 1.0).max(1.0) / parts as f32;
            let inside = |at: f32| (at + from).clamp(0.0, size as f32) as usize;
            let ends = [part as f32 * step, (part + 1) as f32 * step];
            inside(ends[0].floor())..inside(ends[1].ceil())
        };
        let made = &mut made[region * each..][..each];
        for (place, made) in made.iter_mut().enumerate() {
            let (channel, part) = (place / (rows * columns), place % (rows * columns));
            let first = (picture as usize * channels + channel) * height * width;
            let down = along(said[2], said[4], part / columns, rows, height);
            let across = along(said[1], said[3], part % columns, columns, width);
            let values = down.flat_map(|y| {
                let row = &pixels[first + y * width..][..width];
                row[across.start.min(across.end)..across.end]
                    .iter()
                    .copied()
            });
            *made = values.reduce(f32::max).unwrap_or(0.0);
        }
    }
    Ok(())
}
