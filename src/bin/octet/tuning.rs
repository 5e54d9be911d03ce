//! Learned rounding on the command line.

use octet::quantize::Settings;
use octet::samples::SampleSettings;
use octet::session::Session;

use super::Failure;
use super::calibration::failure_of;
use super::progress::Progress;
use super::quantize::QuantizeOptions;
use super::samples::Samples;

/// Feeds the samples, and learns the constants that the settings ask for.
pub fn tune(
    session: &mut Session,
    settings: &Settings,
    (samples, reading): (&Samples, &SampleSettings),
    options: &QuantizeOptions,
    progress: &Progress,
) -> Result<(), Failure> {
    let named = |error| failure_of(options, error);
    let tuning = session.begin_tuning(settings, &octet_host::fs::temporary_folder());
    let mut tuning = tuning.map_err(named)?;
    if let Some(forecast) = tuning.forecast() {
        progress.tell(&format!(
            "{} layers; the data of `{}` needs most memory, {} MiB",
            forecast.layers,
            forecast.layer,
            forecast.layer_bytes >> 20
        ));
    }
    let most = settings
        .finetune
        .as_ref()
        .and_then(|finetune| finetune.data_size);
    let mut used = 0;
    for sample in samples.each(session) {
        if most.is_some_and(|most| used >= most) {
            break;
        }
        match session.decode(&sample?, reading) {
            Ok(inputs) => {
                let added = tuning.add(inputs);
                added.map_err(|error| named(error.into()))?;
                used += 1;
            }
            // The calibration has reported it.
            Err(error) if options.skips(&error) => {}
            Err(error) => return Err(named(error)),
        }
    }
    session.tune(tuning, settings, progress).map_err(named)?;
    Ok(())
}
