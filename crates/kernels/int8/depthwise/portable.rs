//! Scalar loops over the channels of a pixel, which the compiler vectorizes.

use super::super::output::Output;
use super::super::shape::{Image, Window};
use super::Job;

/// Computes the convolution.
pub(super) fn run(job: &Job, output: Output) {
    #[cfg(target_arch = "x86_64")]
    if job.weights.isa == super::Isa::Avx2 {
        assert!(
            std::is_x86_feature_detected!("avx2"),
            "checked when packing"
        );
        // SAFETY: the processor supports AVX2.
        return unsafe { run_in_avx2(job, output) };
    }
    plain(job, output);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_in_avx2(job: &Job, output: Output) {
    plain(job, output);
}

#[inline(always)]
fn plain(job: &Job, mut output: Output) {
    let channels = job.image.channels;
    let mut sums = vec![0i32; channels];
    let taps = Taps::new(job);
    let mut pixels = vec![taps.padding.as_ptr(); job.weights.taps()];
    for y in job.rows.clone() {
        let rows = taps.rows(y);
        for x in 0..job.width {
            taps.pixels(&rows, x, &mut pixels);
            sums.copy_from_slice(job.initial);
            for (pixel, weights) in pixels.iter().zip(job.weights.values.chunks_exact(channels)) {
                // SAFETY: the pixels of taps have the image's channels.
                let pixel = unsafe { core::slice::from_raw_parts(*pixel, channels) };
                for ((sum, &value), &weight) in sums.iter_mut().zip(pixel).zip(weights) {
                    *sum = sum.wrapping_add(i32::from(i16::from(value)) * i32::from(weight));
                }
            }
            let pixel = (y - job.rows.start) * job.width + x;
            output.put_row(pixel, &sums);
        }
    }
}

/// Marks a column in the padding.
const PADDED: usize = usize::MAX;

/// Indirection tables of the window's taps per axis, built once for all rows and columns.
struct Taps<'a> {
    window: &'a Window,
    image: &'a Image<'a>,
    /// Output columns × taps: the offset of the input column in its row, or [`PADDED`].
    columns: Vec<usize>,
    /// A pixel of zero points.
    padding: Vec<u8>,
}

impl<'a> Taps<'a> {
    fn new(job: &Job<'a>) -> Taps<'a> {
        let (window, image) = (job.window, job.image);
        let columns = (0..job.width)
            .flat_map(|x| {
                (0..window.kernel[1]).map(move |kx| window.input_position(1, x, kx, image.width))
            })
            .map(|column| column.map_or(PADDED, |column| column * image.stride))
            .collect();
        Taps {
            window,
            image,
            columns,
            padding: vec![image.zero_point; image.channels],
        }
    }

    /// Returns the image rows that the taps of an output row read.
    fn rows(&self, y: usize) -> Vec<Option<&[u8]>> {
        let Taps { window, image, .. } = self;
        (0..window.kernel[0])
            .map(|tap| Some(image.row(window.input_position(0, y, tap, image.height)?)))
            .collect()
    }

    /// Writes pointers to the pixels of an output position's taps, row by row. Each has the image's
    /// channels.
    #[inline]
    fn pixels(&self, rows: &[Option<&[u8]>], x: usize, pixels: &mut [*const u8]) {
        let wide = self.window.kernel[1];
        let columns = &self.columns[x * wide..][..wide];
        for (row, pixels) in rows.iter().zip(pixels.chunks_exact_mut(wide)) {
            match row {
                Some(row) => {
                    for (pixel, &column) in pixels.iter_mut().zip(columns) {
                        *pixel = match column {
                            PADDED => self.padding.as_ptr(),
                            // SAFETY: an image column, so inside its row.
                            column => unsafe { row.as_ptr().add(column) },
                        };
                    }
                }
                None => pixels.fill(self.padding.as_ptr()),
            }
        }
    }
}
