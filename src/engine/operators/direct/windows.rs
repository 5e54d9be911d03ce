//! Operators with a sliding window: LpPool, MaxUnpool, Col2Im and DeformConv.

use tract_onnx::tract_hir::internal::*;

use super::Call;
use crate::graph::Slide;
use crate::prepare::count;

/// Windows over all spatial axes.
struct Windows {
    kernel: Vec<usize>,
    slides: Vec<Slide>,
    /// Input size, padding before, and number of output positions of each axis.
    extent: Vec<usize>,
    before: Vec<i64>,
    places: Vec<usize>,
}

impl Windows {
    fn of(call: &Call, kernel: Vec<usize>, extent: &[usize]) -> TractResult<Windows> {
        let slides = Slide::of(call.node, &kernel).filter(|all| all.len() == extent.len());
        let slides = slides.with_context(|| {
            format!("its window of {kernel:?} doesn't slide over values of {extent:?}")
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
    fn met(&self, mut place: usize, mut tap: usize, places: &[usize]) -> Option<usize> {
        let (mut found, mut step) = (0, 1);
        for axis in (0..self.kernel.len()).rev() {
            let (at, by) = (place % places[axis], tap % self.kernel[axis]);
            let met = self.slides[axis].met(at as i64, by as i64, self.before[axis]);
            let met = usize::try_from(met).ok();
            found += step * met.filter(|&met| met < self.extent[axis])?;
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
    sizes.with_context(|| format!("{list:?} are no sizes"))
}

/// LpPool: the p-norm of each window.
pub(super) fn norm(call: &Call, made: &mut [f32]) -> TractResult<()> {
    let (values, shape) = (call.floats(0)?, call.tensor(0)?.shape());
    let kernel = call.node.ints("kernel_shape").unwrap_or_default();
    let windows = Windows::of(call, sizes(kernel)?, &shape[2..])?;
    let power = call.node.int("p").unwrap_or(2) as f32;
    let places = &call.made[2..];
    let (each, taps) = (count(places), count(&windows.kernel));
    let extent = count(&windows.extent);
    for (place, made) in made.iter_mut().enumerate() {
        let values = &values[place / each * extent..];
        let met = (0..taps).filter_map(|tap| windows.met(place % each, tap, places));
        let sum: f32 = met.map(|met| values[met].abs().powf(power)).sum();
        *made = sum.powf(1.0 / power);
    }
    Ok(())
}

/// MaxUnpool: writes each value to the index that MaxPool returned; all others are 0.
pub(super) fn unpool(call: &Call, made: &mut [f32]) -> TractResult<()> {
    let (values, places) = (call.floats(0)?, call.integers(1)?);
    ensure!(
        values.len() == places.len(),
        "there are {} places for {} values",
        places.len(),
        values.len()
    );
    let all = made.len();
    for (&value, &place) in values.iter().zip(&places) {
        let made = usize::try_from(place).ok().and_then(|at| made.get_mut(at));
        *made.with_context(|| format!("a value goes to place {place} of {all}"))? = value;
    }
    Ok(())
}

/// Col2Im: writes columns back to the positions of their windows and adds where windows overlap.
pub(super) fn join(call: &Call, made: &mut [f32]) -> TractResult<()> {
    let [batch, rows, columns] = call.sizes(0)?;
    let (values, extent) = (call.floats(0)?, sizes(&call.integers(1)?)?);
    let windows = Windows::of(call, sizes(&call.integers(2)?)?, &extent)?;
    let (taps, each) = (count(&windows.kernel), count(&extent));
    ensure!(
        count(&windows.places) == columns && rows % taps == 0 && !values.is_empty(),
        "its {rows} rows of {columns} are not those of windows of {taps} at {:?} places",
        windows.places
    );
    ensure!(
        made.len() == batch * (rows / taps) * each,
        "its sizes don't fit"
    );
    for row in 0..batch * rows {
        let made = &mut made[row / taps * each..][..each];
        for place in 0..columns {
            if let Some(met) = windows.met(place, row % taps, &windows.places) {
                made[met] += values[row * columns + place];
            }
        }
    }
    Ok(())
}

/// DeformConv: a convolution with an offset for each tap at each position.
pub(super) fn deform(call: &Call, made: &mut [f32]) -> TractResult<()> {
    let [images, channels, height, width] = call.sizes(0)?;
    let [filters, within, tall, wide] = call.sizes(1)?;
    let [_, _, rows, columns] = *call.made else {
        bail!("it makes pictures, not {:?}", call.made);
    };
    let windows = Windows::of(call, vec![tall, wide], &[height, width])?;
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
        "its inputs don't fit: {channels} channels in {groups} groups, {filters} filters of {within}, {moved} groups of moves"
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
            let met = |axis: usize, (place, tap): (usize, usize)| {
                let met = windows.slides[axis].met(place as i64, tap as i64, windows.before[axis]);
                met as f32 + move_of(axis)
            };
            let around = around(met(0, y), met(1, x), height, width);
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
