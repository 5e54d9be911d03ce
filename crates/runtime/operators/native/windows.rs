//! Operators with a sliding window: LpPool, MaxUnpool, Col2Im and DeformConv.

use tract_onnx::tract_hir::internal::*;

use super::{NativeCall, NativeKernel};
use octet_graph::SlidingWindow;
use octet_graph::prepare::count;

/// The operators of this file.
pub(super) static KERNELS: &[NativeKernel] = &[
    NativeKernel::floats("Col2Im", join),
    NativeKernel::floats("DeformConv", deform),
    NativeKernel::floats("LpPool", norm),
    NativeKernel::floats("MaxUnpool", unpool),
];

/// Windows over all spatial axes.
struct Windows {
    kernel: Vec<usize>,
    slides: Vec<SlidingWindow>,
    /// Input size, padding before, and number of output positions of each axis.
    extent: Vec<usize>,
    before: Vec<i64>,
    places: Vec<usize>,
}

impl Windows {
    fn new(call: &NativeCall, kernel: Vec<usize>, extent: &[usize]) -> TractResult<Windows> {
        let slides =
            SlidingWindow::from_node(call.node, &kernel).filter(|all| all.len() == extent.len());
        let slides = slides.with_context(|| {
            format!("its window of {kernel:?} does not fit an input of size {extent:?}")
        })?;
        let over = slides.iter().zip(extent);
        let (before, places) = over
            .map(|(slide, &size)| slide.places(size as i64))
            .map(|(before, places)| (before, places as usize))
            .unzip();
        Ok(Windows {
            kernel,
            slides,
            extent: extent.to_vec(),
            before,
            places,
        })
    }

    /// Linear index of the input element under a tap at an output position; `None` in the padding.
    fn source(&self, mut place: usize, mut tap: usize, places: &[usize]) -> Option<usize> {
        let (mut found, mut step) = (0, 1);
        for axis in (0..self.kernel.len()).rev() {
            let (at, by) = (place % places[axis], tap % self.kernel[axis]);
            let source = self.slides[axis].value_index(at as i64, by as i64, self.before[axis]);
            let source = usize::try_from(source).ok();
            found += step * source.filter(|&source| source < self.extent[axis])?;
            step *= self.extent[axis];
            place /= places[axis];
            tap /= self.kernel[axis];
        }
        Some(found)
    }
}

/// Converts a list to sizes.
fn sizes(list: &[i64]) -> TractResult<Vec<usize>> {
    let sizes = list.iter().map(|&size| usize::try_from(size).ok());
    let sizes: Option<Vec<usize>> = sizes.collect();
    sizes.with_context(|| format!("{list:?} must be sizes of at least 0"))
}

/// LpPool: the p-norm of each window.
fn norm(call: &NativeCall, made: &mut [f32]) -> TractResult<()> {
    let (values, shape) = (call.floats(0)?, call.tensor(0)?.shape());
    let kernel = call.node.ints("kernel_shape").unwrap_or_default();
    let windows = Windows::new(call, sizes(kernel)?, &shape[2..])?;
    let power = call.node.int("p").unwrap_or(2) as f32;
    let places = &call.output_shape[2..];
    let (each, taps) = (count(places), count(&windows.kernel));
    let extent = count(&windows.extent);
    for (place, made) in made.iter_mut().enumerate() {
        let values = &values[place / each * extent..];
        let source = (0..taps).filter_map(|tap| windows.source(place % each, tap, places));
        let sum: f32 = source.map(|source| values[source].abs().powf(power)).sum();
        *made = sum.powf(1.0 / power);
    }
    Ok(())
}

/// MaxUnpool: writes each value to the index that MaxPool returned; all others are 0.
fn unpool(call: &NativeCall, made: &mut [f32]) -> TractResult<()> {
    let (values, places) = (call.floats(0)?, call.integers(1)?);
    ensure!(
        values.len() == places.len(),
        "it has {} indices for {} values",
        places.len(),
        values.len()
    );
    let all = made.len();
    for (&value, &place) in values.iter().zip(&places) {
        let made = usize::try_from(place).ok().and_then(|at| made.get_mut(at));
        *made.with_context(|| format!("index {place} is outside an output of {all} elements"))? =
            value;
    }
    Ok(())
}

/// Col2Im: writes columns back to the positions of their windows and adds where windows overlap.
fn join(call: &NativeCall, made: &mut [f32]) -> TractResult<()> {
    let [batch, rows, columns] = call.sizes(0)?;
    let (values, extent) = (call.floats(0)?, sizes(&call.integers(1)?)?);
    let windows = Windows::new(call, sizes(&call.integers(2)?)?, &extent)?;
    let (taps, each) = (count(&windows.kernel), count(&extent));
    ensure!(
        count(&windows.places) == columns && rows % taps == 0 && !values.is_empty(),
        "its input of {rows} rows and {columns} columns does not fit windows of {taps} elements at {:?} positions",
        windows.places
    );
    ensure!(
        made.len() == batch * (rows / taps) * each,
        "its sizes don't fit"
    );
    for row in 0..batch * rows {
        let made = &mut made[row / taps * each..][..each];
        for place in 0..columns {
            if let Some(source) = windows.source(place, row % taps, &windows.places) {
                made[source] += values[row * columns + place];
            }
        }
    }
    Ok(())
}

/// DeformConv: a convolution with an offset for each tap at each position.
fn deform(call: &NativeCall, made: &mut [f32]) -> TractResult<()> {
    let [images, channels, height, width] = call.sizes(0)?;
    let [filters, within, tall, wide] = call.sizes(1)?;
    let [_, _, rows, columns] = *call.output_shape else {
        bail!(
            "its output must have four axes, not shape {:?}",
            call.output_shape
        );
    };
    let windows = Windows::new(call, vec![tall, wide], &[height, width])?;
    let number = |key: &str| call.node.int(key).unwrap_or(1).max(1) as usize;
    let (groups, moved) = (number("group"), number("offset_group"));
    let (taps, places) = (tall * wide, rows * columns);
    let mask = call.input(4).map(|_| call.floats(4)).transpose()?;
    let bias = call.input(3).map(|_| call.floats(3)).transpose()?;
    let (pixels, weights, moves) = (call.floats(0)?, call.floats(1)?, call.floats(2)?);
    let masked = images * moved * taps * places;
    ensure!(
        height * width > 0
            && channels % moved == 0
            && channels == within * groups
            && filters % groups == 0
            && moves.len() == 2 * masked
            && mask.is_none_or(|mask| mask.len() == masked)
            && bias.is_none_or(|bias| bias.len() == filters),
        "its inputs don't fit: {channels} channels in {groups} groups, {filters} filters of {within}, {moved} groups of offsets"
    );
    let (plane, together) = (height * width, channels / moved);
    let mut seen = vec![0.0; channels * taps * places];
    for image in 0..images {
        for at in 0..moved * taps * places {
            let (tap, place) = (at / places, at % places);
            let move_of =
                |axis: usize| moves[((image * moved * taps + tap) * 2 + axis) * places + place];
            let (group, tap) = (tap / taps, tap % taps);
            let [y, x] = [(place / columns, tap / wide), (place % columns, tap % wide)];
            let source = |axis: usize, (place, tap): (usize, usize)| {
                let source = windows.slides[axis].value_index(
                    place as i64,
                    tap as i64,
                    windows.before[axis],
                );
                source as f32 + move_of(axis)
            };
            let around = around(source(0, y), source(1, x), height, width);
            let shown = mask.map_or(1.0, |mask| mask[image * moved * taps * places + at]);
            for channel in group * together..(group + 1) * together {
                let pixels = &pixels[(image * channels + channel) * plane..][..plane];
                let value = around.iter().map(|&(pixel, share)| share * pixels[pixel]);
                seen[(channel * taps + tap) * places + place] = shown * value.sum::<f32>();
            }
        }
        for filter in 0..filters {
            let made = &mut made[(image * filters + filter) * places..][..places];
            made.fill(bias.map_or(0.0, |bias| bias[filter]));
            let first = filter / (filters / groups) * within;
            for row in 0..within * taps {
                let weight = weights[filter * within * taps + row];
                let seen = &seen[(first * taps + row) * places..][..places];
                for (made, seen) in made.iter_mut().zip(seen) {
                    *made += weight * seen;
                }
            }
        }
    }
    Ok(())
}

/// Four pixels around a position, with their interpolation weights; those outside have weight 0.
fn around(y: f32, x: f32, height: usize, width: usize) -> [(usize, f32); 4] {
    let (top, left) = (y.floor(), x.floor());
    [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)].map(|(down, across)| {
        let (row, column) = (top + down, left + across);
        let inside = (0.0..height as f32).contains(&row) && (0.0..width as f32).contains(&column);
        match inside {
            true => (
                row as usize * width + column as usize,
                (1.0 - (y - row).abs()) * (1.0 - (x - column).abs()),
            ),
            false => (0, 0.0),
        }
    })
}
