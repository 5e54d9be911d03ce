//! A whole calibration in one call, for programs that hold their samples in memory.

use super::{CalibrationSummary, Error, Session};
use crate::quantize;
use crate::samples::{self, Encoded};

impl Session {
    /// Calibrates for these settings: runs the samples once for each pass that the settings need.
    ///
    /// `decoding` sets how samples become tensors. Its default takes arrays unchanged and prepares
    /// images as for ImageNet classifiers. A caller that reads samples one by one, shows progress
    /// or can be cancelled calls the steps itself, beginning with [`Session::begin_calibration`].
    pub fn calibrate(
        &mut self,
        samples: &[Encoded],
        decoding: &samples::SampleSettings,
        settings: &quantize::Settings,
    ) -> Result<CalibrationSummary, Error> {
        let method = settings.method.unwrap_or_default();
        self.equalize(settings.equalizes());
        self.begin_calibration(decoding.clone())?;
        self.feed(samples.to_vec(), &())?;
        while self.begin_extra_pass(method, settings.needs_gram_matrices())? {
            self.feed(samples.to_vec(), &())?;
        }
        self.finish_calibration(method)
    }
}
