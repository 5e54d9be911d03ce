//! Dense and grouped convolutions as a GEMM of the weights with the im2col matrix.
//!
//! A few im2col panels are packed at a time. They stay in cache while all weights pass over them.

use super::gemm::{MR, NR, NR_VECTORS, tile};
use super::lanes::Lanes;
use super::output_parts::ConvolutionPart;
use super::polyphase::Polyphase;
use super::shared_floats::SharedFloats;
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
    /// Maximum number of output rows per band.
    band_rows: usize,
    pub(super) layout: BandLayout,
}

/// BandLayout of the input planes for a band of output rows.
#[derive(Clone, Debug)]
pub(super) struct BandLayout {
    /// Output rows of a band.
    rows: usize,
    /// Offset of each tap relative to the window's origin.
    offsets: Vec<usize>,
    /// Padded layout of the planes; `None` if the input is read in place.
    pub(super) phases: Option<Polyphase>,
}

impl BandLayout {
    fn new(geometry: &Geometry, rows: usize) -> BandLayout {
        let in_place = geometry.taps() == 1
            && geometry.stride == [1, 1]
            && geometry.pad == [0, 0]
            && geometry.output == geometry.input;
        let band = || Polyphase::new(&Band::new(geometry, 0, rows).geometry, 0);
        let phases = (!in_place).then(band);
        let plane = match &phases {
            Some(phases) => phases.len(),
            None => geometry.input[0] * geometry.input[1],
        };
        let [down, right] = geometry.dilation;
        let mut offsets = Vec::with_capacity(geometry.depth());
        for channel in 0..geometry.inputs_per_group() {
            for row in 0..geometry.kernel[0] {
                for column in 0..geometry.kernel[1] {
                    let offset = |phases: &Polyphase| phases.offset(row * down, column * right);
                    let within = phases.as_ref().map_or(0, offset);
                    offsets.push(channel * plane + within);
                }
            }
        }
        BandLayout {
            rows,
            offsets,
            phases,
        }
    }

    pub(super) fn im2col<'a>(
        &'a self,
        geometry: &Geometry,
        values: &'a [f32],
        pitch: usize,
    ) -> Im2col<'a> {
        Im2col {
            values,
            offsets: &self.offsets,
            columns: geometry.output[1],
            pitch,
        }
    }
}

impl Dense {
    /// Number of packed panels that stay in cache while all weights pass over them.
    pub(super) fn panels_at_once(depth: usize, panels: usize) -> usize {
        (BLOCK / (depth * NR)).clamp(1, panels)
    }

    /// True if one band has all output rows.
    pub(super) fn is_one_band(&self, geometry: &Geometry) -> bool {
        self.band_rows == geometry.output[0]
    }

    pub(super) fn new(geometry: &Geometry, band_floats: usize) -> Dense {
        let band_rows = band_rows(band_floats, geometry);
        Dense {
            band_rows,
            layout: BandLayout::new(geometry, band_rows),
        }
    }

    /// Computes a part of the output.
    ///
    /// # Safety
    ///
    /// There is no other reference to the floats of the part.
    pub(super) unsafe fn run(
        &self,
        geometry: &Geometry,
        weights: &[FloatBytes],
        input: &[f32],
        (part, output): (&ConvolutionPart, &SharedFloats<'_>),
        epilogue: Epilogue<'_>,
    ) {
        let per_group = geometry.outputs_per_group();
        let inputs = geometry.inputs_per_group();
        let [height, columns] = geometry.output;
        let plane = geometry.input[0] * geometry.input[1];
        let depth = geometry.depth();
        // A part of few rows lays out only what it reads.
        let band_rows = self.band_rows.min(part.rows.len());
        let own_layout;
        let layout = match self.layout.phases {
            Some(_) if band_rows < self.layout.rows => {
                own_layout = BandLayout::new(geometry, band_rows);
                &own_layout
            }
            _ => &self.layout,
        };
        let padded_plane = layout.phases.as_ref().map_or(0, Polyphase::len);
        let mut padded = vec![0.0; padded_plane * inputs];
        for group in part.channels.start / per_group..part.channels.end.div_ceil(per_group) {
            let planes = &input[group * inputs * plane..][..inputs * plane];
            let start = part.channels.start.max(group * per_group);
            let end = part.channels.end.min((group + 1) * per_group);
            let weights = &weights[start * depth..end * depth];
            let epilogue = Epilogue {
                bias: &epilogue.bias[start..end],
                ..epilogue
            };
            let destination = |first: usize, rows: usize| ChannelDestination {
                output,
                start: start * height * columns + first * columns,
                count: rows * columns,
                pixels: height * columns,
            };
            let Some(phases) = &layout.phases else {
                let first = part.rows.start;
                let values = &planes[first * columns..];
                let im2col = layout.im2col(geometry, values, geometry.input[1]);
                let to = destination(first, part.rows.len());
                // SAFETY: the destination is within the part.
                unsafe { multiply(weights, &im2col, &to, epilogue) };
                continue;
            };
            for first in part.rows.clone().step_by(band_rows) {
                let rows = band_rows.min(part.rows.end - first);
                let band = Band::new(geometry, first, rows);
                // A single band pads the same positions for every plane, so their zeros stay valid.
                if band.zeros && rows < part.rows.len() {
                    padded.fill(0.0);
                }
                let to = padded.chunks_exact_mut(padded_plane);
                for (plane, to) in planes.chunks_exact(plane).zip(to) {
                    phases.fill(&band.geometry, &plane[band.lines.clone()], to);
                }
                let im2col = layout.im2col(geometry, &padded, phases.pitch);
                // SAFETY: the destination is within the part.
                unsafe { multiply(weights, &im2col, &destination(first, rows), epilogue) };
            }
        }
    }
}

/// Some output rows and the input they read.
pub(super) struct Band {
    /// The band as a convolution of its own.
    pub(super) geometry: Geometry,
    /// Range of the band's input rows within a plane.
    pub(super) lines: std::ops::Range<usize>,
    /// True if the band reads padding above or below the plane.
    zeros: bool,
}

impl Band {
    pub(super) fn new(geometry: &Geometry, first: usize, rows: usize) -> Band {
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
pub(super) struct Im2col<'a> {
    values: &'a [f32],
    offsets: &'a [usize],
    /// Output positions per output row.
    columns: usize,
    /// Distance between input rows.
    pitch: usize,
}

impl<'a> Im2col<'a> {
    /// The rows of the first taps only.
    pub(super) fn of_taps(self, count: usize) -> Im2col<'a> {
        let offsets = &self.offsets[..count];
        Im2col { offsets, ..self }
    }

    /// Packs `NR` columns from `first` on. Columns beyond `all` get unspecified values, which are
    /// discarded.
    pub(super) fn pack(&self, first: usize, all: usize, panel: &mut [f32]) {
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

/// Some floats of each output channel.
pub(super) struct ChannelDestination<'a> {
    pub(super) output: &'a SharedFloats<'a>,
    /// Index of the first float of the first channel.
    pub(super) start: usize,
    /// Floats of each channel.
    pub(super) count: usize,
    /// Distance of two channels.
    pub(super) pixels: usize,
}

/// Multiplies all weight rows by the im2col columns.
///
/// # Safety
///
/// There is no other reference to the floats of the destination.
unsafe fn multiply(
    weights: &[FloatBytes],
    im2col: &Im2col<'_>,
    to: &ChannelDestination<'_>,
    epilogue: Epilogue<'_>,
) {
    let depth = im2col.offsets.len();
    let panels = to.count.div_ceil(NR);
    let at_once = Dense::panels_at_once(depth, panels);
    let mut block = vec![0.0; at_once * depth * NR];
    for first in (0..panels).step_by(at_once) {
        let here = at_once.min(panels - first);
        let block = &mut block[..here * depth * NR];
        for (panel, packed) in block.chunks_exact_mut(depth * NR).enumerate() {
            im2col.pack((first + panel) * NR, to.count, packed);
        }
        // SAFETY: the caller's promise.
        unsafe { multiply_panels(weights, (first, block), to, epilogue) };
    }
}

/// Multiplies all weight rows by packed panels, the first of which has this index.
///
/// # Safety
///
/// There is no other reference to the floats of the destination.
pub(super) unsafe fn multiply_panels(
    weights: &[FloatBytes],
    (first, panels): (usize, &[f32]),
    to: &ChannelDestination<'_>,
    epilogue: Epilogue<'_>,
) {
    let depth = weights.len() / epilogue.bias.len();
    let (low, high) = (Lanes::splat(epilogue.low), Lanes::splat(epilogue.high));
    for (at, rows) in weights.chunks(MR * depth).enumerate() {
        let at = at * MR;
        // Missing rows repeat the last one; their results are discarded.
        let last = rows.len() / depth - 1;
        let rows = std::array::from_fn(|row| &rows[row.min(last) * depth..][..depth]);
        let bias = std::array::from_fn(|row| epilogue.bias.get(at + row).copied().unwrap_or(0.0));
        for (panel, packed) in panels.chunks_exact(depth * NR).enumerate() {
            let sums = tile(rows, packed, bias);
            let column = (first + panel) * NR;
            let width = NR.min(to.count - column);
            for (row, sums) in sums.into_iter().enumerate().take(last + 1) {
                let place = to.start + (at + row) * to.pixels + column;
                // SAFETY: it is within the destination, and no other slice of it lives.
                let line = unsafe { to.output.slice(place, width) };
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

/// Stores one row of a tile.
fn store(sums: [Lanes; NR_VECTORS], to: &mut [f32; NR]) {
    for (lane, sum) in sums.into_iter().enumerate() {
        // SAFETY: NR floats are exactly the lanes of a tile row.
        unsafe { sum.store(to.as_mut_ptr().add(4 * lane)) };
    }
}
