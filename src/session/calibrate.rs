//! A whole calibration in one call, for a program that has its samples in memory.

use super::{CalibrationSummary, Error, Session};
use crate::quantize;
use crate::samples::{self, Encoded};

impl Session {
    /// Calibrates for these settings: runs the samples once for each pass that the settings need.
    ///
    /// `decoding` says how the samples become tensors; its default takes arrays as they are and
    /// prepares pictures as for ImageNet classifiers. A face that reads samples one by one, shows
    /// progress or can be cancelled calls the steps itself, from [`Session::begin_calibration`] on.
    pub fn calibrate(
        &mut self,
        samples: &[Encoded],
        decoding: &samples::Settings,
        settings: &quantize::Settings,
    ) -> Result<CalibrationSummary, Error> {
        let method = settings.method.unwrap_or_default();
        self.equalize(settings.equalizes());
        self.begin_calibration(decoding.clone())?;
        self.feed(samples.to_vec(), &())?;
        while self.begin_further_pass(method, settings.need_moments())? {
            self.feed(samples.to_vec(), &())?;
        }
        self.finish_calibration(method)
    }
}
