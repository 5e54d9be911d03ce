//! Convolutions in which an output channel reads several input channels: a product of the weights and the
//! windows, of which a few panels are packed at a time and stay in the cache while all weights pass over them.

use super::gemm::{COLUMNS, ROWS, tile};
use super::lanes::Lanes;
use super::padded::Parts;
use super::{Ends, Geometry, Raw};

/// Floats of the panels that are packed at a time: half of a common second cache.
const BLOCK: usize = 128 * 1024 / 4;

#[derive(Clone, Debug)]
pub(super) struct Dense {
    /// Where each point of a window reads, from where the window is.
    offsets: Vec<usize>,
    /// How the planes are laid out, if not as they come in.
    parts: Option<Parts>,
}

impl Dense {
    pub(super) fn new(geometry: &Geometry) -> Dense {
        let as_it_comes = geometry.taps() == 1
            && geometry.stride == [1, 1]
            && geometry.pad == [0, 0]
            && geometry.output == geometry.input;
        let parts = (!as_it_comes).then(|| Parts::new(geometry, 0));
        let plane = match &parts {
            Some(parts) => parts.len(),
            None => geometry.input[0] * geometry.input[1],
        };
        let mut offsets = Vec::with_capacity(geometry.depth());
        for channel in 0..geometry.inputs_per_group() {
            for row in 0..geometry.kernel[0] {
                for column in 0..geometry.kernel[1] {
                    let [down, right] = geometry.dilation;
                    let within = parts
                        .as_ref()
                        .map_or(0, |parts| parts.offset(row * down, column * right));
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
        let pixels = geometry.output[0] * geometry.output[1];
        let plane = geometry.input[0] * geometry.input[1];
        let of_group = per_group * geometry.depth();
        let pitch = self
            .parts
            .as_ref()
            .map_or(geometry.input[1], |parts| parts.pitch);
        let mut laid = match &self.parts {
            Some(parts) => vec![0.0; parts.len() * geometry.inputs_per_group()],
            None => Vec::new(),
        };
        let groups = input.chunks_exact(geometry.inputs_per_group() * plane);
        let outputs = output.chunks_exact_mut(per_group * pixels);
        for (group, (planes, output)) in groups.zip(outputs).enumerate() {
            let values = match &self.parts {
                Some(parts) => {
                    let to = laid.chunks_exact_mut(parts.len());
                    for (plane, to) in planes.chunks_exact(plane).zip(to) {
                        parts.fill(geometry, plane, to);
                    }
                    &laid[..]
                }
                None => planes,
            };
            let windows = Windows {
                values,
                offsets: &self.offsets,
                columns: geometry.output[1],
                pitch,
            };
            let ends = Ends {
                bias: &ends.bias[group * per_group..][..per_group],
                ..ends
            };
            multiply(
                &weights[group * of_group..][..of_group],
                &windows,
                output,
                pixels,
                ends,
            );
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

/// Every row of weights times every window, into rows of `pixels` floats.
fn multiply(
    weights: &[Raw],
    windows: &Windows<'_>,
    output: &mut [f32],
    pixels: usize,
    ends: Ends<'_>,
) {
    let depth = windows.offsets.len();
    let panels = pixels.div_ceil(COLUMNS);
    let at_once = (BLOCK / (depth * COLUMNS)).clamp(1, panels);
    let mut block = vec![0.0; at_once * depth * COLUMNS];
    let (low, high) = (Lanes::splat(ends.low), Lanes::splat(ends.high));
    for first in (0..panels).step_by(at_once) {
        let count = at_once.min(panels - first);
        for (panel, packed) in block
            .chunks_exact_mut(depth * COLUMNS)
            .take(count)
            .enumerate()
        {
            windows.pack((first + panel) * COLUMNS, pixels, packed);
        }
        for (at, rows) in weights.chunks(ROWS * depth).enumerate() {
            let at = at * ROWS;
            // The missing ones repeat the last and are left behind.
            let last = rows.len() / depth - 1;
            let rows = std::array::from_fn(|row| &rows[row.min(last) * depth..][..depth]);
            let bias = std::array::from_fn(|row| ends.bias.get(at + row).copied().unwrap_or(0.0));
            for (panel, packed) in block.chunks_exact(depth * COLUMNS).take(count).enumerate() {
                let sums = tile(rows, packed, bias);
                let column = (first + panel) * COLUMNS;
                let width = COLUMNS.min(pixels - column);
                let lines = output[at * pixels..].chunks_exact_mut(pixels).zip(sums);
                for (line, sums) in lines {
                    let out = &mut line[column..][..width];
                    let mut whole = [0.0; COLUMNS];
                    for (lane, sum) in sums.into_iter().enumerate() {
                        // SAFETY: `whole` has COLUMNS floats, which are as many lanes as a tile has.
                        unsafe {
                            sum.clamp(low, high).store(whole.as_mut_ptr().add(4 * lane));
                        }
                    }
                    match <&mut [f32; COLUMNS]>::try_from(&mut *out) {
                        Ok(out) => *out = whole,
                        Err(_) => out.copy_from_slice(&whole[..width]),
                    }
                }
            }
        }
    }
}
