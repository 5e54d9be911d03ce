//! Plain loops over the channels of a pixel, which a compiler makes vector code of.

use super::super::output::Output;
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
    let mut pixels = vec![job.taps.padding.as_ptr(); job.weights.taps()];
    for y in job.rows.clone() {
        let rows = job.taps.rows(y);
        for x in 0..job.width {
            job.taps.look(&rows, x, &mut pixels);
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
