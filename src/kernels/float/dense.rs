//! Convolutions in which an output channel reads several input channels: a product of the weights and the
//! windows, of which a few panels are packed at a time and stay in the cache while all weights pass over them.

use super::gemm::{COLUMNS, LANES, ROWS, tile};
use super::lanes::Lanes;
use super::padded::Parts;
use super::{Ends, Geometry, Raw};

/// Floats of the panels that are packed at a time: half of a common second cache.
const BLOCK: usize = 128 * 1024 / 4;

/// Floats of a picture with its zeros that are laid out at a time.
pub(super) const ROOM: usize = 1 << 20;

/// As many rows of the output as have their input within so many floats, but one at least.
fn rows_in(room: usize, geometry: &Geometry) -> usize {
    let line = Parts::new(&Band::new(geometry, 0, 1).geometry, 0);
    let each = line.pitch * geometry.stride[1] * geometry.stride[0] * geometry.inputs_per_group();
    let window = line.len() * geometry.inputs_per_group();
    (1 + room.saturating_sub(window) / each).min(geometry.output[0])
}

#[derive(Clone, Debug)]
pub(super) struct Dense {
    /// Where each point of a window reads, from where the window is.
    offsets: Vec<usize>,
    /// How the planes are laid out, if not as they come in, and for how many rows of the output at a time.
    parts: Option<(Parts, usize)>,
}

impl Dense {
    pub(super) fn new(geometry: &Geometry, room: usize) -> Dense {
        let as_it_comes = geometry.taps() == 1
            && geometry.stride == [1, 1]
            && geometry.pad == [0, 0]
            && geometry.output == geometry.input;
        let parts = (!as_it_comes).then(|| {
            let rows = rows_in(room, geometry);
            (Parts::new(&Band::new(geometry, 0, rows).geometry, 0), rows)
        });
        let plane = match &parts {
            Some((parts, _)) => parts.len(),
            None => geometry.input[0] * geometry.input[1],
        };
        let mut offsets = Vec::with_capacity(geometry.depth());
        for channel in 0..geometry.inputs_per_group() {
            for row in 0..geometry.kernel[0] {
                for column in 0..geometry.kernel[1] {
                    let [down, right] = geometry.dilation;
                    let within = parts
                        .as_ref()
                        .map_or(0, |(parts, _)| parts.offset(row * down, column * right));
                    offsets.push(channel * plane + within);
                }
            }
        }
        Dense { offsets, parts }
    }

    pub(super) fn run(
        &self,
        geometry: &Geometry,
        weights: &[Raw],
        input: &[f32],
        output: &mut [f32],
        ends: Ends<'_>,
    ) {
        let per_group = geometry.outputs_per_group();
        let inputs = geometry.inputs_per_group();
        let pixels = geometry.output[0] * geometry.output[1];
        let plane = geometry.input[0] * geometry.input[1];
        let of_group = per_group * geometry.depth();
        let mut laid = match &self.parts {
            Some((parts, _)) => vec![0.0; parts.len() * inputs],
            None => Vec::new(),
        };
        let groups = input.chunks_exact(inputs * plane);
        let outputs = output.chunks_exact_mut(per_group * pixels);
        for (group, (planes, output)) in groups.zip(outputs).enumerate() {
            let weights = &weights[group * of_group..][..of_group];
            let ends = Ends {
                bias: &ends.bias[group * per_group..][..per_group],
                ..ends
            };
            let Some((parts, rows)) = &self.parts else {
                let windows = self.windows(geometry, planes, geometry.input[1]);
                multiply(weights, &windows, output, (0, pixels, pixels), ends);
                continue;
            };
            for first in (0..geometry.output[0]).step_by(*rows) {
                let rows = (*rows).min(geometry.output[0] - first);
                let band = Band::new(geometry, first, rows);
                // Where one band is all, its zeros are always in the same places.
                if band.zeros && rows < geometry.output[0] {
                    laid.fill(0.0);
                }
                let to = laid.chunks_exact_mut(parts.len());
                for (plane, to) in planes.chunks_exact(plane).zip(to) {
                    parts.fill(&band.geometry, &plane[band.lines.clone()], to);
                }
                let windows = self.windows(geometry, &laid, parts.pitch);
                let columns = geometry.output[1];
                let part = (first * columns, rows * columns, pixels);
                multiply(weights, &windows, output, part, ends);
            }
        }
    }

    fn windows<'a>(&'a self, geometry: &Geometry, values: &'a [f32], pitch: usize) -> Windows<'a> {
        Windows {
            values,
            offsets: &self.offsets,
            columns: geometry.output[1],
            pitch,
        }
    }
}

/// Some rows of the picture that goes out, and what they read.
struct Band {
    /// A convolution of their own.
    geometry: Geometry,
    /// Where their input is in a plane.
    lines: std::ops::Range<usize>,
    /// Whether they read zeros before the first row or after the last.
    zeros: bool,
}

impl Band {
    fn new(geometry: &Geometry, first: usize, rows: usize) -> Band {
        let [height, width] = geometry.input;
        let of_band = Geometry {
            output: [rows, geometry.output[1]],
            ..*geometry
        };
        // From the first row of the picture with its zeros before it.
        let start = first * geometry.stride[0];
        let end = start + of_band.reach(0);
        let row = |at: usize| at.saturating_sub(geometry.pad[0]).min(height);
        let pad = geometry.pad[0].saturating_sub(start);
        Band {
            geometry: Geometry {
                input: [row(end) - row(start), width],
                pad: [pad, geometry.pad[1]],
                ..of_band
            },
            lines: row(start) * width..row(end) * width,
            zeros: pad > 0 || end > geometry.pad[0] + height,
        }
    }
}

/// The matrix whose columns are the windows of a picture.
struct Windows<'a> {
    values: &'a [f32],
    offsets: &'a [usize],
    /// Windows in a row of the picture.
    columns: usize,
    /// Distance of the rows.
    pitch: usize,
}

impl Windows<'_> {
    /// Packs `COLUMNS` windows from the `first` on; what is behind the last of `all` is zero.
    fn pack(&self, first: usize, all: usize, panel: &mut [f32]) {
        let steps = panel.chunks_exact_mut(COLUMNS).zip(self.offsets);
        let place = |window: usize| window / self.columns * self.pitch + window % self.columns;
        let last = first + COLUMNS - 1;
        if last < all && place(last) - place(first) == COLUMNS - 1 {
            let start = place(first);
            for (to, offset) in steps {
                to.copy_from_slice(&self.values[offset + start..][..COLUMNS]);
            }
            return;
        }
        let count = COLUMNS.min(all - first);
        // The missing ones repeat the last and are left behind.
        let places: [usize; COLUMNS] =
            std::array::from_fn(|column| place(first + column.min(count - 1)));
        for (to, offset) in steps {
            for (to, place) in to.iter_mut().zip(places) {
                *to = self.values[offset + place];
            }
        }
    }
}

/// Every row of weights times every window: `count` floats from `start` on in each of the rows of `pixels` floats.
fn multiply(
    weights: &[Raw],
    windows: &Windows<'_>,
    output: &mut [f32],
    (start, count, pixels): (usize, usize, usize),
    ends: Ends<'_>,
) {
    let depth = windows.offsets.len();
    let panels = count.div_ceil(COLUMNS);
    let at_once = (BLOCK / (depth * COLUMNS)).clamp(1, panels);
    let mut block = vec![0.0; at_once * depth * COLUMNS];
    let (low, high) = (Lanes::splat(ends.low), Lanes::splat(ends.high));
    for first in (0..panels).step_by(at_once) {
        let here = at_once.min(panels - first);
        for (panel, packed) in block
            .chunks_exact_mut(depth * COLUMNS)
            .take(here)
            .enumerate()
        {
            windows.pack((first + panel) * COLUMNS, count, packed);
        }
        for (at, rows) in weights.chunks(ROWS * depth).enumerate() {
            let at = at * ROWS;
            // The missing ones repeat the last and are left behind.
            let last = rows.len() / depth - 1;
            let rows = std::array::from_fn(|row| &rows[row.min(last) * depth..][..depth]);
            let bias = std::array::from_fn(|row| ends.bias.get(at + row).copied().unwrap_or(0.0));
            for (panel, packed) in block.chunks_exact(depth * COLUMNS).take(here).enumerate() {
                let sums = tile(rows, packed, bias);
                let column = (first + panel) * COLUMNS;
                let width = COLUMNS.min(count - column);
                for (row, sums) in sums.into_iter().enumerate().take(last + 1) {
                    let line = &mut output[(at + row) * pixels + start + column..][..width];
                    let sums = sums.map(|sum| sum.clamp(low, high));
                    if let Ok(line) = <&mut [f32; COLUMNS]>::try_from(&mut *line) {
                        store(sums, line);
                    } else {
                        let mut whole = [0.0; COLUMNS];
                        store(sums, &mut whole);
                        line.copy_from_slice(&whole[..width]);
                    }
                }
            }
        }
    }
}

/// Writes the sums of a row of a tile.
fn store(sums: [Lanes; LANES], to: &mut [f32; COLUMNS]) {
    for (lane, sum) in sums.into_iter().enumerate() {
        // SAFETY: COLUMNS floats are as many lanes as a tile has.
        unsafe { sum.store(to.as_mut_ptr().add(4 * lane)) };
    }
}
