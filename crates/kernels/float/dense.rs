//! Dense and grouped convolutions as a GEMM of the weights with the im2col matrix.
//!
//! A few im2col panels are packed at a time. They stay in cache while all weights pass over them.

use super::gemm::{MR, NR, NR_VECTORS, tile};
use super::lanes::Lanes;
use super::polyphase::Polyphase;
use super::{Epilogue, FloatBytes, Geometry};

/// Floats of packed panels at a time: half of a common L2 cache.
const BLOCK: usize = 128 * 1024 / 4;

/// Maximum number of padded input floats that are laid out at a time.
pub(super) const BAND_FLOATS: usize = 1 << 20;

/// Returns the number of output rows whose padded input fits this many floats, at least one.
fn band_rows(band_floats: usize, geometry: &Geometry) -> usize {
    let line = Polyphase::new(&Band::new(geometry, 0, 1).geometry, 0);
    let each = line.pitch * geometry.stride[1] * geometry.stride[0] * geometry.inputs_per_group();
    let window = line.len() * geometry.inputs_per_group();
    (1 + band_floats.saturating_sub(window) / each).min(geometry.output[0])
}

#[derive(Clone, Debug)]
pub(super) struct Dense {
    /// Offset of each tap relative to the window's origin.
    offsets: Vec<usize>,
    /// Padded layout of the planes, with the number of output rows per band. `None` if the input is
    /// read in place.
    phases: Option<(Polyphase, usize)>,
}

impl Dense {
    pub(super) fn new(geometry: &Geometry, band_floats: usize) -> Dense {
        let as_it_comes = geometry.taps() == 1
            && geometry.stride == [1, 1]
            && geometry.pad == [0, 0]
            && geometry.output == geometry.input;
        let phases = (!as_it_comes).then(|| {
            let rows = band_rows(band_floats, geometry);
            (
                Polyphase::new(&Band::new(geometry, 0, rows).geometry, 0),
                rows,
            )
        });
        let plane = match &phases {
            Some((phases, _)) => phases.len(),
            None => geometry.input[0] * geometry.input[1],
        };
        let mut offsets = Vec::with_capacity(geometry.depth());
        for channel in 0..geometry.inputs_per_group() {
            for row in 0..geometry.kernel[0] {
                for column in 0..geometry.kernel[1] {
                    let [down, right] = geometry.dilation;
                    let within = phases
                        .as_ref()
                        .map_or(0, |(phases, _)| phases.offset(row * down, column * right));
                    offsets.push(channel * plane + within);
                }
            }
        }
        Dense { offsets, phases }
    }

    pub(super) fn run(
        &self,
        geometry: &Geometry,
        weights: &[FloatBytes],
        input: &[f32],
        output: &mut [f32],
        epilogue: Epilogue<'_>,
    ) {
        let per_group = geometry.outputs_per_group();
        let inputs = geometry.inputs_per_group();
        let pixels = geometry.output[0] * geometry.output[1];
        let plane = geometry.input[0] * geometry.input[1];
        let group_weights = per_group * geometry.depth();
        let mut padded = match &self.phases {
            Some((phases, _)) => vec![0.0; phases.len() * inputs],
            None => Vec::new(),
        };
        let groups = input.chunks_exact(inputs * plane);
        let outputs = output.chunks_exact_mut(per_group * pixels);
        for (group, (planes, output)) in groups.zip(outputs).enumerate() {
            let weights = &weights[group * group_weights..][..group_weights];
            let epilogue = Epilogue {
                bias: &epilogue.bias[group * per_group..][..per_group],
                ..epilogue
            };
            let Some((phases, rows)) = &self.phases else {
                let im2col = self.im2col(geometry, planes, geometry.input[1]);
                multiply(weights, &im2col, output, (0, pixels, pixels), epilogue);
                continue;
            };
            for first in (0..geometry.output[0]).step_by(*rows) {
                let rows = (*rows).min(geometry.output[0] - first);
                let band = Band::new(geometry, first, rows);
                // A single band pads the same positions for every plane, so their zeros stay valid.
                if band.zeros && rows < geometry.output[0] {
                    padded.fill(0.0);
                }
                let to = padded.chunks_exact_mut(phases.len());
                for (plane, to) in planes.chunks_exact(plane).zip(to) {
                    phases.fill(&band.geometry, &plane[band.lines.clone()], to);
                }
                let im2col = self.im2col(geometry, &padded, phases.pitch);
                let columns = geometry.output[1];
                let part = (first * columns, rows * columns, pixels);
                multiply(weights, &im2col, output, part, epilogue);
            }
        }
    }

    fn im2col<'a>(&'a self, geometry: &Geometry, values: &'a [f32], pitch: usize) -> Im2col<'a> {
        Im2col {
            values,
            offsets: &self.offsets,
            columns: geometry.output[1],
            pitch,
        }
    }
}

/// Some output rows and the input they read.
struct Band {
    /// The band as a convolution of its own.
    geometry: Geometry,
    /// Range of the band's input rows within a plane.
    lines: std::ops::Range<usize>,
    /// True if the band reads padding above or below the plane.
    zeros: bool,
}

impl Band {
    fn new(geometry: &Geometry, first: usize, rows: usize) -> Band {
        let [height, width] = geometry.input;
        let band = Geometry {
            output: [rows, geometry.output[1]],
            ..*geometry
        };
        // Counted from the first padded row.
        let start = first * geometry.stride[0];
        let end = start + band.reach(0);
        let row = |at: usize| at.saturating_sub(geometry.pad[0]).min(height);
        let pad = geometry.pad[0].saturating_sub(start);
        Band {
            geometry: Geometry {
                input: [row(end) - row(start), width],
                pad: [pad, geometry.pad[1]],
                ..band
            },
            lines: row(start) * width..row(end) * width,
            zeros: pad > 0 || end > geometry.pad[0] + height,
        }
    }
}

/// The im2col matrix, one column per output position. It is virtual: only panels of it exist.
struct Im2col<'a> {
    values: &'a [f32],
    offsets: &'a [usize],
    /// Output positions per output row.
    columns: usize,
    /// Distance between input rows.
    pitch: usize,
}

impl Im2col<'_> {
    /// Packs `NR` columns from `first` on. Columns beyond `all` get unspecified values, which are
    /// discarded.
    fn pack(&self, first: usize, all: usize, panel: &mut [f32]) {
        let steps = panel.chunks_exact_mut(NR).zip(self.offsets);
        let origin = |window: usize| window / self.columns * self.pitch + window % self.columns;
        let last = first + NR - 1;
        if last < all && origin(last) - origin(first) == NR - 1 {
            let start = origin(first);
            for (to, offset) in steps {
                to.copy_from_slice(&self.values[offset + start..][..NR]);
            }
            return;
        }
        let count = NR.min(all - first);
        // Missing columns repeat the last one; their results are discarded.
        let origins: [usize; NR] =
            std::array::from_fn(|column| origin(first + column.min(count - 1)));
        for (to, offset) in steps {
            for (to, origin) in to.iter_mut().zip(origins) {
                *to = self.values[offset + origin];
            }
        }
    }
}

/// Multiplies all weight rows by the im2col columns. Writes `count` floats from `start` on in each
/// output channel of `pixels` floats.
fn multiply(
    weights: &[FloatBytes],
    im2col: &Im2col<'_>,
    output: &mut [f32],
    (start, count, pixels): (usize, usize, usize),
    epilogue: Epilogue<'_>,
) {
    let depth = im2col.offsets.len();
    let panels = count.div_ceil(NR);
    let at_once = (BLOCK / (depth * NR)).clamp(1, panels);
    let mut block = vec![0.0; at_once * depth * NR];
    let (low, high) = (Lanes::splat(epilogue.low), Lanes::splat(epilogue.high));
    for first in (0..panels).step_by(at_once) {
        let here = at_once.min(panels - first);
        for (panel, packed) in block.chunks_exact_mut(depth * NR).take(here).enumerate() {
            im2col.pack((first + panel) * NR, count, packed);
        }
        for (at, rows) in weights.chunks(MR * depth).enumerate() {
            let at = at * MR;
            // Missing rows repeat the last one; their results are discarded.
            let last = rows.len() / depth - 1;
            let rows = std::array::from_fn(|row| &rows[row.min(last) * depth..][..depth]);
            let bias =
                std::array::from_fn(|row| epilogue.bias.get(at + row).copied().unwrap_or(0.0));
            for (panel, packed) in block.chunks_exact(depth * NR).take(here).enumerate() {
                let sums = tile(rows, packed, bias);
                let column = (first + panel) * NR;
                let width = NR.min(count - column);
                for (row, sums) in sums.into_iter().enumerate().take(last + 1) {
                    let line = &mut output[(at + row) * pixels + start + column..][..width];
                    let sums = sums.map(|sum| sum.clamp(low, high));
                    if let Ok(line) = <&mut [f32; NR]>::try_from(&mut *line) {
                        store(sums, line);
                    } else {
                        let mut whole = [0.0; NR];
                        store(sums, &mut whole);
                        line.copy_from_slice(&whole[..width]);
                    }
                }
            }
        }
    }
}

/// Stores one row of a tile.
fn store(sums: [Lanes; NR_VECTORS], to: &mut [f32; NR]) {
    for (lane, sum) in sums.into_iter().enumerate() {
        // SAFETY: NR floats are exactly the lanes of a tile row.
        unsafe { sum.store(to.as_mut_ptr().add(4 * lane)) };
    }
}
