//! A dense convolution of a small image, whose threads share the packed input.
//!
//! A small image has too few rows for all threads, so they divide the output channels, and each
//! part needs the whole im2col matrix. Threads first pack it together, by input channels.

use std::ops::Range;

use super::dense::{Band, ChannelDestination, Dense, multiply_panels};
use super::gemm::NR;
use super::output_parts::{once_each, ranges};
use super::polyphase::Polyphase;
use super::shared_floats::SharedFloats;
use super::{Epilogue, FloatBytes, Geometry, PartRunner};

/// Maximum floats of an im2col matrix that is packed as a whole: two megabytes.
const MAX_FLOATS: usize = 1 << 19;

/// True if the whole im2col matrix may be packed at once.
pub(super) fn fits(geometry: &Geometry) -> bool {
    let panels = (geometry.output[0] * geometry.output[1]).div_ceil(NR);
    geometry.groups == 1 && panels * geometry.depth() * NR <= MAX_FLOATS
}

impl Dense {
    /// Computes these ranges of output channels. The matrix [`fits`], and the layout is that of all
    /// rows.
    ///
    /// # Safety
    ///
    /// The ranges are disjoint, and there is no other reference to the output.
    pub(super) unsafe fn run_packed_once(
        &self,
        geometry: &Geometry,
        (weights, input): (&[FloatBytes], &[f32]),
        (channels, output): (&[Range<usize>], &SharedFloats<'_>),
        each: &PartRunner<'_>,
        epilogue: Epilogue<'_>,
    ) {
        let (depth, taps) = (geometry.depth(), geometry.taps());
        let pixels = geometry.output[0] * geometry.output[1];
        let panels = pixels.div_ceil(NR);
        let plane = geometry.input[0] * geometry.input[1];
        let layout = &self.layout;
        let padded_plane = layout.phases.as_ref().map_or(0, Polyphase::len);
        let mut padded = vec![0.0; padded_plane * geometry.input_channels];
        let mut packed = vec![0.0; panels * depth * NR];
        let band = Band::new(geometry, 0, geometry.output[0]);
        let inputs = ranges(geometry.input_channels, 1, channels.len());
        {
            let padded = SharedFloats::new(&mut padded);
            let packed = SharedFloats::new(&mut packed);
            once_each(inputs.len(), each, &|part| {
                let own = inputs[part].clone();
                let planes = &input[own.start * plane..own.end * plane];
                let (values, pitch) = match &layout.phases {
                    None => (planes, geometry.input[1]),
                    Some(phases) => {
                        // SAFETY: each part has its own input channels and runs once.
                        let values = unsafe {
                            padded.slice(own.start * padded_plane, own.len() * padded_plane)
                        };
                        let to = values.chunks_exact_mut(padded_plane);
                        for (plane, to) in planes.chunks_exact(plane).zip(to) {
                            phases.fill(&band.geometry, &plane[band.lines.clone()], to);
                        }
                        (&*values, phases.pitch)
                    }
                };
                // Offsets of the first channels are those of any as many channels.
                let im2col = layout.im2col(geometry, values, pitch);
                let im2col = im2col.of_taps(own.len() * taps);
                for panel in 0..panels {
                    let start = (panel * depth + own.start * taps) * NR;
                    // SAFETY: as above.
                    let panel_part = unsafe { packed.slice(start, own.len() * taps * NR) };
                    im2col.pack(panel * NR, pixels, panel_part);
                }
            });
        }
        once_each(channels.len(), each, &|part| {
            let own = channels[part].clone();
            let to = ChannelDestination {
                output,
                start: own.start * pixels,
                count: pixels,
                pixels,
            };
            let epilogue = Epilogue {
                bias: &epilogue.bias[own.clone()],
                ..epilogue
            };
            let weights = &weights[own.start * depth..own.end * depth];
            let at_once = Dense::panels_at_once(depth, panels);
            for (block, packed) in packed.chunks(at_once * depth * NR).enumerate() {
                // SAFETY: each part has its own output channels and runs once.
                unsafe { multiply_panels(weights, (block * at_once, packed), &to, epilogue) };
            }
        });
    }
}
