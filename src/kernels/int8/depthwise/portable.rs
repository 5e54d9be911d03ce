//! Plain loops over the channels of a pixel, which a compiler makes vector code of.

use super::super::output::Output;
use super::super::shape::{Image, Window};
use super::Job;

/// Runs the job.
pub(super) fn run(job: &Job, output: Output) {
    #[cfg(target_arch = "x86_64")]
    if job.weights.form == super::Form::Avx2 {
        assert!(
            std::is_x86_feature_detected!("avx2"),
            "checked when packing"
        );
        // SAFETY: the processor has AVX2.
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
            taps.look(&rows, x, &mut pixels);
            sums.copy_from_slice(job.beginnings);
            for (pixel, weights) in pixels.iter().zip(job.weights.values.chunks_exact(channels)) {
                // SAFETY: what the taps look at has the image's channels.
                let pixel = unsafe { core::slice::from_raw_parts(*pixel, channels) };
                for ((sum, &value), &weight) in sums.iter_mut().zip(pixel).zip(weights) {
                    *sum = sum.wrapping_add(i32::from(i16::from(value)) * i32::from(weight));
                }
            }
            let place = (y - job.rows.start) * job.width + x;
            output.put_row(place, &sums);
        }
    }
}

/// Stands for a column in the padding.
const PADDED: usize = usize::MAX;

/// Where the taps of the window look, an axis each: built once, for all rows and columns.
struct Taps<'a> {
    window: &'a Window,
    image: &'a Image<'a>,
    /// Places × taps: the column's offset in its row, or [`PADDED`].
    columns: Vec<usize>,
    /// A pixel of zero points.
    padding: Vec<u8>,
}

impl<'a> Taps<'a> {
    fn new(job: &Job<'a>) -> Taps<'a> {
        let (window, image) = (job.window, job.image);
        let columns = (0..job.width)
            .flat_map(|x| (0..window.kernel[1]).map(move |kx| window.at(1, x, kx, image.width)))
            .map(|column| column.map_or(PADDED, |column| column * image.stride))
            .collect();
        Taps {
            window,
            image,
            columns,
            padding: vec![image.zero_point; image.channels],
        }
    }

    /// The image's rows that the taps of an output's row look at.
    fn rows(&self, y: usize) -> Vec<Option<&[u8]>> {
        let Taps { window, image, .. } = self;
        (0..window.kernel[0])
            .map(|tap| Some(image.row(window.at(0, y, tap, image.height)?)))
            .collect()
    }

    /// The pixels that a place's taps look at, row after row of the kernel. Each has the image's channels.
    #[inline]
    fn look(&self, rows: &[Option<&[u8]>], x: usize, pixels: &mut [*const u8]) {
        let wide = self.window.kernel[1];
        let columns = &self.columns[x * wide..][..wide];
        for (row, pixels) in rows.iter().zip(pixels.chunks_exact_mut(wide)) {
            match row {
                Some(row) => {
                    for (pixel, &column) in pixels.iter_mut().zip(columns) {
                        *pixel = match column {
                            PADDED => self.padding.as_ptr(),
                            // SAFETY: a column of the image, so inside its row.
                            column => unsafe { row.as_ptr().add(column) },
                        };
                    }
                }
                None => pixels.fill(self.padding.as_ptr()),
            }
        }
    }
}
