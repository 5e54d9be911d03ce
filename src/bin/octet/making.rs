//! The making of a quantized model in memory, for `octet quantize` and `octet verify`.

use std::path::Path;

use octet::allocator;
use octet::exchange::RangeFile;
use octet::quantize::Settings;
use octet::samples::SampleSettings;
use octet::session::{Forecast, QuantizationResult, Session};

use super::calibration::{calibrate, failure_of, forecast, report_so_far};
use super::progress::Progress;
use super::quantize::{QuantizeOptions, print_notes};
use super::samples::{Samples, left_out};
use super::tuning::tune;
use super::{Failure, files, notes, open, stats_files, targets};

/// Live activations of this many bytes mark a large model.
const LARGE: u64 = 64 << 20;

/// A quantized model that is not written yet.
pub struct MadeModel {
    pub session: Session,
    pub outcome: QuantizationResult,
    pub forecast: Option<Forecast>,
    pub progress: Progress,
}

/// Reading of the samples, by the options.
pub fn reading(options: &QuantizeOptions) -> Result<SampleSettings, Failure> {
    Ok(SampleSettings {
        demo: options.demo.is_some(),
        bad_samples: options.bad.setting(),
        ..options.images.settings()?
    })
}

fn is_observed(options: &QuantizeOptions) -> bool {
    options.ranges.ranges.is_some() || !options.stats.is_empty()
}

fn has_data(options: &QuantizeOptions) -> bool {
    !options.samples.is_empty() || options.demo.is_some() || is_observed(options)
}

/// Checks that samples, ranges or statistics are given where the settings use them. Returns true if
/// any are.
pub fn check_data(options: &QuantizeOptions, settings: &Settings) -> Result<bool, Failure> {
    let has_data = has_data(options);
    let fits = match has_data {
        true => settings.takes_samples(),
        false => !settings.needs_samples(),
    };
    if !fits {
        return Err(Failure::usage(match has_data {
            true => {
                "--samples, --demo, --ranges and --stats are for the scheme static, half precision, and the methods gptq and awq of \
                 blocks: leave them out, these settings use no samples"
            }
            false => {
                "no samples were given: name some with --samples, or choose a scheme that needs none (--scheme dynamic, \
                 weights, blocks or float16)"
            }
        }));
    }
    if is_observed(options) && settings.tunes() {
        return Err(Failure::usage(
            "`finetune` and `rounding: closed-form` learn from samples, and --ranges and --stats hold none: give --samples in \
             their place",
        ));
    }
    Ok(has_data)
}

/// Makes the model; `None` if only a forecast was asked for, which is printed.
pub fn make(
    options: &QuantizeOptions,
    (settings, ranges): (&Settings, Option<RangeFile>),
    image_settings: SampleSettings,
    targets: &[(&Path, &'static str)],
    threads: usize,
) -> Result<Option<MadeModel>, Failure> {
    let samples = Samples::new(&options.samples, options.demo)?;

    let progress = Progress::reading(&options.model);
    let mut session = open::open(&options.model)?;
    targets::check(
        targets,
        &options.model,
        &open::data(&options.model, &session),
    )?;
    session
        .refuse_quantized()
        .map_err(|error| failure_of(options, error))?;
    let (mut image_settings, proposed) =
        options
            .images
            .proposed(&session, settings.images.as_ref(), image_settings)?;
    let pictures = samples.have_pictures();
    let samples = samples.tokenized(&session, &options.model, &options.texts)?;
    let samples = samples.usable(&mut session, &mut image_settings)?;
    let named = |error| failure_of(options, error);
    session.checkpoint_layers(options.layer_checkpoints);
    options
        .scope
        .iter()
        .for_each(|message| session.begin_scope(message));
    progress.set_length(samples.count() as u64);
    progress.stage("Preparing");
    if let Some(proposed) = proposed.filter(|_| pictures) {
        progress.note(&proposed);
    }
    let forecast = forecast(
        &mut session,
        options,
        settings,
        &image_settings,
        &samples,
        threads,
    )?;
    if let Some(forecast) = &forecast {
        if forecast.live_bytes > LARGE {
            allocator::give_back_large_blocks(1 << 20);
        }
        if options.forecast {
            progress.clear();
            files::print(&match options.json {
                true => serde_json::to_string_pretty(forecast)? + "\n",
                false => notes::forecast_line(forecast),
            })?;
            return Ok(None);
        }
        match &forecast.refusal {
            Some(why) => progress.note(why),
            None => progress.tell(notes::forecast_line(forecast).trim_end()),
        }
    } else if options.forecast {
        return Err(Failure::usage(
            "--forecast needs samples: give some with --samples, or use --demo",
        ));
    }
    match ranges {
        Some(file) => {
            print_notes(&progress, &file.notes, options);
            session.set_ranges(file.ranges).map_err(named)?;
        }
        None if !has_data(options) => {}
        None if !options.stats.is_empty() => {
            stats_files::calibrate(&mut session, options, settings, &progress)?;
        }
        None => {
            session.equalize(settings.equalizes());
            session
                .begin_calibration(image_settings.clone())
                .map_err(named)?;
            progress.stage("Calibrating");
            if let (None, Some(first)) = (options.demo, samples.each(&session).next()) {
                let first = first?;
                // An unusable sample is reported when it runs.
                let seen = session.preview(&first, &image_settings).unwrap_or_default();
                let texts: Vec<String> = seen
                    .into_iter()
                    .flat_map(|input| input.notes)
                    .map(|note| format!("{}: {note}", first.name))
                    .collect();
                print_notes(&progress, &texts, options);
            }
            if options.demo.is_some() {
                progress.note("the samples are random: the result is for trying things out only");
            }
            let method = settings.method.unwrap_or_default();
            if let Some(note) = method.note() {
                progress.note(&note);
            }
            let pass = |session: &mut Session| -> Result<(), Failure> {
                let done = calibrate(session, &samples, threads, options, &progress);
                if done.is_err() {
                    report_so_far(session, options)?;
                }
                done
            };
            pass(&mut session)?;
            let moments = settings.needs_gram_matrices();
            while session.begin_extra_pass(method, moments).map_err(named)? {
                progress.stage("Extra pass");
                pass(&mut session)?;
            }
            let done = session.finish_calibration(method).map_err(named)?;
            let skipped = [image_settings.skipped.as_slice(), &done.skipped].concat();
            if let Some(texts) = left_out(&skipped, done.samples) {
                progress.note(&texts);
            }
        }
    }
    report_so_far(&session, options)?;
    if settings.tunes() {
        progress.stage("Fine-tuning");
        let reading = (&samples, &image_settings);
        tune(&mut session, settings, reading, options, &progress)?;
        report_so_far(&session, options)?;
    }
    progress.stage("Quantizing");
    let outcome = session.quantize(settings);
    progress.clear();
    options.scope.iter().for_each(|_| session.end_scope());
    // If quantizing fails, the report shows how far it came.
    report_so_far(&session, options)?;
    let outcome = outcome.map_err(named)?;
    Ok(Some(MadeModel {
        session,
        outcome,
        forecast,
        progress,
    }))
}
