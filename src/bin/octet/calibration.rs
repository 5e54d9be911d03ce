//! The samples of a calibration, its forecast, and the report so far.

use std::time::Duration;

use octet::quantize::Settings;
use octet::samples::{Encoded, SampleSettings};
use octet::session::{Error, ErrorKind, Forecast, ForecastJob, Session};
use octet_host::time::Instant;

use super::progress::Progress;
use super::quantize::QuantizeOptions;
use super::samples::Samples;
use super::{Failure, files};

/// Limit in bytes for samples that are read ahead to keep all threads busy.
const READ_AHEAD_BYTES: usize = 64 << 20;

/// Number of samples that are read ahead.
pub fn read_ahead(threads: usize) -> usize {
    match threads {
        1 => 1,
        more => 4 * more,
    }
}

/// Feeds all samples to a calibration.
pub fn calibrate(
    session: &mut Session,
    samples: &Samples,
    threads: usize,
    options: &QuantizeOptions,
    progress: &Progress,
) -> Result<(), Failure> {
    // The report contains an entry per sample, so writing it after each one is quadratic. It is
    // written at doubling intervals and at least every second.
    let (mut next, mut written) = (1, Instant::now());
    let named = |error| failure_of(options, error);
    let report = |session: &Session, fed| {
        if fed >= next || written.elapsed() > Duration::from_secs(1) {
            report_so_far(session, options)?;
            (next, written) = (2 * fed, Instant::now());
        }
        Ok(())
    };
    feed(session, samples, threads, progress, named, |_| {}, report)
}

/// Feeds all samples, as many at a time as keep the threads busy. `seen` is called for each sample
/// that was read, and `after` after each portion with the number of samples fed so far.
pub fn feed(
    session: &mut Session,
    samples: &Samples,
    threads: usize,
    progress: &Progress,
    named: impl Fn(Error) -> Failure,
    mut seen: impl FnMut(&Encoded),
    mut after: impl FnMut(&Session, usize) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut waiting = Vec::new();
    let mut bytes = 0;
    for index in 0..samples.count() {
        let encoded = samples.get(session, index)?;
        seen(&encoded);
        bytes += encoded
            .parts
            .iter()
            .map(|(_, content)| content.len())
            .sum::<usize>();
        waiting.push(encoded);
        let last = index + 1 == samples.count();
        if last || waiting.len() >= read_ahead(threads) || bytes >= READ_AHEAD_BYTES {
            session
                .feed(std::mem::take(&mut waiting), progress)
                .map_err(&named)?;
            bytes = 0;
            after(session, index + 1)?;
        }
    }
    Ok(())
}

/// The failure of an error, prefixed with the model's path. Errors of a sample name the sample
/// already.
pub fn failure_of(options: &QuantizeOptions, error: Error) -> Failure {
    match error.kind() {
        ErrorKind::Sample => Failure::from(error),
        _ => Failure::from(error).about(options.model.display()),
    }
}

/// Writes the report so far. It is written after each step, so a run that is killed leaves one.
pub fn report_so_far(session: &Session, options: &QuantizeOptions) -> Result<(), Failure> {
    match &options.report {
        Some(path) => files::write(path, &[session.report()], "--report"),
        None => Ok(()),
    }
}

/// The forecast of the job, if it has samples.
pub fn forecast(
    session: &mut Session,
    options: &QuantizeOptions,
    settings: &Settings,
    reading: &SampleSettings,
    samples: &Samples,
    threads: usize,
) -> Result<Option<Forecast>, Failure> {
    let job = ForecastJob {
        samples: samples.count(),
        ahead: read_ahead(threads),
        threads,
        method: settings.method.unwrap_or_default(),
        settings,
    };
    let mut failed = None;
    for index in 0..samples.count() {
        let sample = samples.get(session, index)?;
        match session.forecast(sample, reading, &job, &()) {
            Ok(forecast) => return Ok(Some(forecast)),
            // Try the next sample; if all fail, the first error is reported.
            Err(error) if options.skips(&error) => {
                failed.get_or_insert(error);
            }
            Err(error) => return Err(failure_of(options, error)),
        }
    }
    failed.map_or(Ok(None), |error| Err(failure_of(options, error)))
}
