//! `octet quantize` for models of any size: the weights are read and written piece by piece.

use std::path::Path;

use clap::Args;
use octet::allocator;
use octet::profile::{Profiler, RunStep};
use octet::quantize::{Scheme, Settings};
use octet::session::{DataFile, RESTARTED, StreamedResult};
use octet::stream::{Conversion, ConversionStep, OutputFiles, SmallTensors, StreamError};
use octet_host::time::Instant;
use serde::Serialize;

use super::progress::Progress;
use super::read_ahead::ConversionReads;
use super::stream_parts::PartFiles;
use super::stream_source::Source;
use super::write_behind::WAITING;
use super::{Failure, interrupt};

/// Models with more bytes than this are converted piece by piece.
const LARGE_MODEL: u64 = 1 << 30;

/// A forecast converts at most this many milliseconds.
const FORECAST_MS: u128 = 2000;

/// Bytes of the slices that are read.
const SLICES: u64 = 3 * octet::quantize::recipe::SLICE;

#[derive(Args)]
pub struct StreamOptions {
    /// Read and write the weights piece by piece, as for models of more than 1 GiB (all schemes but
    /// static)
    #[arg(long)]
    stream: bool,
    /// The greatest size in MiB of a file of weights, such as 2000 for browsers [default: one file]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    data_size: Option<u64>,
}

impl StreamOptions {
    /// True if the model is converted piece by piece.
    pub fn applies(&self, model: &Path, settings: &Settings) -> bool {
        let streams = settings.scheme != Scheme::Static && !settings.needs_gram_matrices();
        self.is_asked() || (streams && Source::size(model).is_some_and(|bytes| bytes > LARGE_MODEL))
    }

    /// True if the options ask for it.
    pub fn is_asked(&self) -> bool {
        self.stream || self.data_size.is_some()
    }

    /// The greatest size of a file of weights.
    pub fn limit(&self) -> u64 {
        self.data_size.map_or(u64::MAX, |mib| mib << 20)
    }
}

/// A conversion of one model into one form.
pub struct StreamedRun<'a> {
    pub model: &'a Path,
    pub out: &'a Path,
    pub settings: &'a Settings,
    /// The greatest size of a file of weights.
    pub limit: u64,
}

/// Forecast of a conversion.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamForecast {
    /// Time with the files of weights in the system's memory, as in the part that was tried.
    pub ms: f64,
    pub peak_bytes: u64,
    pub output_bytes: u64,
    pub files: Vec<DataFile>,
    pub bytes_to_read: u64,
}

impl StreamedRun<'_> {
    /// The model with its small tensors, and the plan of its conversion.
    fn plan(&self, profiler: &mut Profiler) -> Result<(Source, Conversion), Failure> {
        let about = |error| self.failure(error);
        profiler.begin(RunStep::ModelLoading);
        let mut source = Source::open(self.model)?;
        let mut small = SmallTensors::new(source.skeleton()?).map_err(about)?;
        let mut buffer = Vec::new();
        while let Some(stretch) = small.next().cloned() {
            source.read(&stretch, &mut buffer)?;
            small.feed(&buffer).map_err(about)?;
        }
        let skeleton = small.finish().map_err(about)?;
        profiler.end();
        profiler.begin(RunStep::Preparation);
        let conversion = Conversion::new(skeleton, self.settings, self.output()).map_err(about)?;
        profiler.end();
        Ok((source, conversion))
    }

    fn output(&self) -> OutputFiles {
        let name = self.out.file_name().unwrap_or_default().to_string_lossy();
        OutputFiles {
            model: name.into(),
            limit: self.limit,
        }
    }

    fn failure(&self, error: StreamError) -> Failure {
        failure(error).about(self.model.display())
    }

    /// Converts the model and writes it with its files of weights.
    pub fn convert(&self, profiler: &mut Profiler) -> Result<StreamedResult, Failure> {
        let about = |error| self.failure(error);
        let (source, mut conversion) = self.plan(profiler)?;
        profiler.begin(RunStep::Quantization(self.settings.scheme));
        interrupt::watch()?;
        let output = self.output();
        let (mut parts, note) =
            PartFiles::open(self.out, &mut conversion, &source, self.settings, &output)?;
        let mut notes = Vec::from_iter(note);
        let (done, bytes) = conversion.progress();
        let bar = Progress::of_bytes(bytes);
        bar.stage(&format!("Quantizing to {}", output.model));
        bar.set_position(done);
        let mut reads = ConversionReads::new(&source);
        let mut writer = parts.writer()?;
        let (mut read, mut written) = (0, 0);
        loop {
            if interrupt::happened() {
                bar.clear();
                return Err(parts.interrupted(&conversion, writer));
            }
            match conversion.next_step().map_err(about)? {
                ConversionStep::Read(stretch) => {
                    let buffer = reads.take(&stretch, &conversion, about)?;
                    read += buffer.len() as u64;
                    conversion.feed(&buffer).map_err(about)?;
                    reads.reuse(buffer);
                    bar.set_position(conversion.progress().0);
                    parts.note_progress(&conversion, &mut writer, false)?;
                }
                ConversionStep::Copy {
                    from,
                    file,
                    offset,
                    again,
                } => {
                    let buffer = reads.take(&from, &conversion, about)?;
                    written += from.length;
                    parts.note_bytes(from.length);
                    if again {
                        writer.write(file, offset, buffer.clone())?;
                        reads.keep(from, buffer);
                        continue;
                    }
                    read += from.length;
                    writer.write(file, offset, buffer)?;
                    bar.set_position(conversion.progress().0);
                    parts.note_progress(&conversion, &mut writer, false)?;
                }
                ConversionStep::Write {
                    file,
                    offset,
                    bytes,
                } => {
                    let count = bytes.len() as u64;
                    writer.write(file, offset, bytes)?;
                    written += count;
                    parts.note_bytes(count);
                }
                ConversionStep::Restart => {
                    writer.finish()?;
                    parts.restart(&conversion)?;
                    writer = parts.writer()?;
                    bar.set_length(conversion.progress().1);
                    notes.push(RESTARTED.to_owned());
                }
                ConversionStep::Finished => break,
            }
        }
        writer.finish()?;
        drop(reads);
        bar.clear();
        source.check_unchanged()?;
        profiler.end();
        profiler.begin(RunStep::PostProcess);
        let name = self.model.file_name().unwrap_or_default();
        let (model, result) = StreamedResult::new(
            &name.to_string_lossy(),
            &output.model,
            source.bytes(),
            [read, written],
            conversion,
        )
        .map_err(about)?;
        parts.finish(&model)?;
        profiler.end();
        Ok(StreamedResult { notes, ..result })
    }

    /// Size, files, memory and time of the conversion. Converts for a moment, and writes nothing.
    pub fn forecast(&self, profiler: &mut Profiler) -> Result<StreamForecast, Failure> {
        let about = |error| self.failure(error);
        allocator::restart_peak();
        let (source, mut conversion) = self.plan(profiler)?;
        let mut files = files_of(&conversion);
        let bytes_to_read = conversion.progress().1;
        let recipe = conversion.memory().map_err(about)?;
        // What a recipe had is written, while the next one computes.
        let planned = allocator::live() as u64 + recipe + recipe.max(WAITING) + SLICES;
        profiler.begin(RunStep::Forecast);
        let began = Instant::now();
        let mut reads = ConversionReads::new(&source);
        while began.elapsed().as_millis() < FORECAST_MS {
            match conversion.next_step().map_err(about)? {
                ConversionStep::Read(stretch) => {
                    let buffer = reads.take(&stretch, &conversion, about)?;
                    conversion.feed(&buffer).map_err(about)?;
                    reads.reuse(buffer);
                }
                ConversionStep::Copy { from, again, .. } => {
                    let buffer = reads.take(&from, &conversion, about)?;
                    match again {
                        true => reads.keep(from, buffer),
                        false => reads.reuse(buffer),
                    }
                }
                ConversionStep::Write { .. } => {}
                ConversionStep::Restart => files = files_of(&conversion),
                ConversionStep::Finished => break,
            }
        }
        let (done, all) = conversion.progress();
        let ms = began.elapsed().as_secs_f64() * 1e3 * all.max(1) as f64 / done.max(1) as f64;
        profiler.end();
        let tried = allocator::peak() as u64;
        files.insert(0, self.model_file(conversion.model_bytes().map_err(about)?));
        Ok(StreamForecast {
            ms,
            peak_bytes: match done == all {
                true => tried,
                false => tried.max(planned),
            },
            output_bytes: files.iter().map(|file| file.bytes).sum(),
            files,
            bytes_to_read,
        })
    }

    fn model_file(&self, bytes: u64) -> DataFile {
        DataFile {
            name: self.output().model,
            bytes,
        }
    }
}

fn files_of(conversion: &Conversion) -> Vec<DataFile> {
    let files = conversion.files().iter();
    let written = files.map(|file| DataFile {
        name: file.name.clone(),
        bytes: file.bytes,
    });
    written.collect()
}

/// The line that tells of a result.
pub fn line(out: &Path, scheme: Scheme, done: &StreamedResult) -> String {
    let (before, after) = (done.bytes_before, done.bytes_after());
    let nodes = &done.quantized.nodes;
    let count = nodes.iter().filter(|node| node.quantized).count();
    format!(
        "{}: {after} bytes, {:.0} % of {before}; {count} of {} operators {}\n",
        out.display(),
        100.0 * after as f64 / before.max(1) as f64,
        nodes.len(),
        super::quantize::operators_are(scheme),
    )
}

/// Fails if an option is given that a streamed conversion does not have.
pub fn refuse(options: &[(bool, &str)]) -> Result<(), Failure> {
    match options.iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(Failure::usage(format!(
            "{option} is not for models that are read piece by piece: leave it out"
        ))),
        None => Ok(()),
    }
}

fn failure(error: StreamError) -> Failure {
    match error {
        StreamError::Quantize(error) => Failure::from(octet::session::Error::from(error)),
        StreamError::Write(error) => Failure::unfinished(error.to_string()),
        other => Failure::input(other.to_string()),
    }
}
