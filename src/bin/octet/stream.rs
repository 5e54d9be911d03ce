//! `octet quantize` for models of any size: the weights are read and written piece by piece.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use octet::onnx::skeleton::SkeletonReader;
use octet::onnx::{Stretch, check_stretches, external};
use octet::quantize::{Scheme, Settings};
use octet::stream::{
    Conversion, ConversionStep, Converted, OutputFiles, SmallTensors, StreamError,
};

use super::{Failure, files, targets};

/// Models with more bytes than this are converted piece by piece.
const LARGE_MODEL: u64 = 1 << 30;

#[derive(Args)]
pub struct StreamOptions {
    /// Read and write the weights piece by piece, as for models of more than 1 GiB (scheme blocks)
    #[arg(long)]
    stream: bool,
    /// The greatest size in MiB of a file of weights, such as 2000 for browsers [default: one file]
    #[arg(long, value_name = "MIB", requires = "stream", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    data_size: Option<u64>,
}

impl StreamOptions {
    /// True if the model is converted piece by piece.
    pub fn applies(&self, model: &Path, settings: &Settings) -> bool {
        let streams = settings.scheme == Scheme::Blocks && !settings.needs_gram_matrices();
        self.stream || (streams && Source::size(model).is_some_and(|bytes| bytes > LARGE_MODEL))
    }

    /// Converts the model and writes it with its files of weights.
    pub fn run(
        &self,
        model: &Path,
        out: &Path,
        settings: &Settings,
    ) -> Result<StreamedResult, Failure> {
        let about = |error: StreamError| failure(error).about(model.display());
        let mut source = Source::open(model)?;
        let mut small = SmallTensors::new(source.skeleton()?).map_err(about)?;
        let mut buffer = Vec::new();
        while let Some(stretch) = small.next().cloned() {
            source.read(&stretch, &mut buffer)?;
            small.feed(&buffer).map_err(about)?;
        }
        let output = OutputFiles {
            model: out.file_name().unwrap_or_default().to_string_lossy().into(),
            limit: self.data_size.map_or(u64::MAX, |mib| mib << 20),
        };
        let skeleton = small.finish().map_err(about)?;
        let mut conversion = Conversion::new(skeleton, settings, output).map_err(about)?;
        let mut parts = PartFiles::create(out, &conversion, &source)?;
        let bar = progress_bar(conversion.progress().1);
        loop {
            match conversion.next().map_err(about)? {
                ConversionStep::Read(stretch) => {
                    source.read(&stretch, &mut buffer)?;
                    conversion.feed(&buffer).map_err(about)?;
                    bar.set_position(conversion.progress().0);
                }
                ConversionStep::Write {
                    file,
                    offset,
                    bytes,
                } => parts.write(file, offset, &bytes)?,
                ConversionStep::Finished => break,
            }
        }
        bar.finish_and_clear();
        source.check_unchanged()?;
        let Converted {
            model: file,
            quantized,
            ..
        } = conversion.finish().map_err(about)?;
        let after = parts.finish()? + file.bytes() as u64;
        files::write(out, file.as_slice(), "--out")?;
        let before = source.bytes();
        let done = quantized.nodes.iter().filter(|node| node.quantized).count();
        let line = format!(
            "{}: {after} bytes, {:.0} % of {before}; {done} of {} operators with integer weights\n",
            out.display(),
            100.0 * after as f64 / before.max(1) as f64,
            quantized.nodes.len(),
        );
        Ok(StreamedResult {
            line,
            notes: quantized.notes,
        })
    }
}

/// A conversion that is done.
pub struct StreamedResult {
    /// The line to print.
    pub line: String,
    /// Notes for people.
    pub notes: Vec<String>,
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

fn progress_bar(bytes: u64) -> ProgressBar {
    let template = "Quantizing {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
    let bar = ProgressBar::new(bytes);
    bar.set_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

fn failure(error: StreamError) -> Failure {
    match error {
        StreamError::Quantize(error) => Failure::from(octet::session::Error::from(error)),
        StreamError::Write(error) => Failure::unfinished(error.to_string()),
        other => Failure::input(other.to_string()),
    }
}

/// The model and its files of weights.
struct Source {
    folder: PathBuf,
    model: String,
    files: BTreeMap<String, SourceFile>,
}

struct SourceFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl SourceFile {
    fn open(path: PathBuf, what: &str) -> Result<SourceFile, Failure> {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| unreadable(&path, what, &error))?;
        Ok(SourceFile {
            path,
            file,
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }

    /// Reads bytes at an offset, fewer at the end of the file.
    fn read(&mut self, offset: u64, length: u64, to: &mut Vec<u8>) -> Result<(), Failure> {
        to.clear();
        let read = self
            .file
            .seek(SeekFrom::Start(offset))
            .and_then(|_| (&mut self.file).take(length).read_to_end(to));
        read.map_err(|error| unreadable(&self.path, "model's weights", &error))?;
        Ok(())
    }
}

fn unreadable(path: &Path, what: &str, error: &io::Error) -> Failure {
    Failure::input(format!(
        "can't read the {what} {}: {}; check the file",
        path.display(),
        files::system_message(error)
    ))
}

impl Source {
    fn open(model: &Path) -> Result<Source, Failure> {
        let name = model.file_name().unwrap_or_default().to_string_lossy();
        let file = SourceFile::open(model.to_path_buf(), "model")?;
        Ok(Source {
            folder: files::folder_of(model).to_path_buf(),
            model: name.clone().into(),
            files: [(name.into(), file)].into(),
        })
    }

    /// Bytes of the model and its files of weights; `None` if the model can't be read.
    fn size(model: &Path) -> Option<u64> {
        let mut source = Source::open(model).ok()?;
        source.skeleton().ok()?;
        Some(source.bytes())
    }

    fn model_path(&self) -> PathBuf {
        self.folder.join(&self.model)
    }

    /// Reads the skeleton and opens all files of weights.
    fn skeleton(&mut self) -> Result<octet::onnx::schema::ModelProto, Failure> {
        let path = self.model_path();
        let about = |error: String| Failure::input(error).about(path.display());
        let length = self.bytes();
        let mut reader = SkeletonReader::new(&self.model, length);
        let mut buffer = Vec::new();
        while let Some((offset, length)) = reader.next() {
            let stretch = Stretch {
                file: self.model.clone(),
                offset,
                length: length as u64,
            };
            self.read(&stretch, &mut buffer)?;
            reader
                .feed(&buffer)
                .map_err(|error| about(error.to_string()))?;
        }
        let model = reader.finish().map_err(|error| about(error.to_string()))?;
        for location in external::files(&model) {
            let inside = external::is_inside(&location);
            let beside = self.folder.join(&location);
            if inside && !self.files.contains_key(&location) && beside.is_file() {
                let file = SourceFile::open(beside, "model's weights")?;
                self.files.insert(location, file);
            }
        }
        let sizes = self
            .files
            .iter()
            .map(|(name, file)| (name.clone(), file.bytes));
        check_stretches(&model, &sizes.collect()).map_err(|error| about(error.to_string()))?;
        Ok(model)
    }

    fn read(&mut self, stretch: &Stretch, to: &mut Vec<u8>) -> Result<(), Failure> {
        to.clear();
        match self.files.get_mut(&stretch.file) {
            Some(file) => file.read(stretch.offset, stretch.length, to),
            None => Ok(()),
        }
    }

    /// Bytes of all files.
    fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }

    /// Fails if a file was written while it was read.
    fn check_unchanged(&self) -> Result<(), Failure> {
        for file in self.files.values() {
            let now = fs::metadata(&file.path).ok();
            let same = now
                .is_some_and(|now| now.len() == file.bytes && now.modified().ok() == file.modified);
            if !same {
                return Err(Failure::input(format!(
                    "{} changed while it was read: run the command again when it is complete",
                    file.path.display()
                )));
            }
        }
        Ok(())
    }
}

/// The files of weights of the result, under temporary names until all are complete.
struct PartFiles {
    parts: Vec<Part>,
    finished: bool,
}

struct Part {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    bytes: u64,
}

impl PartFiles {
    fn create(out: &Path, conversion: &Conversion, source: &Source) -> Result<PartFiles, Failure> {
        let mut parts = PartFiles {
            parts: Vec::new(),
            finished: false,
        };
        let sources: Vec<PathBuf> = source.files.values().map(|f| f.path.clone()).collect();
        let check =
            |path: &Path| targets::check(&[(path, "--out")], &source.model_path(), &sources);
        check(out)?;
        for data in conversion.files() {
            let path = out.with_file_name(&data.name);
            check(&path)?;
            let temporary =
                out.with_file_name(format!(".{}.{}.part", data.name, std::process::id()));
            let created = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(&temporary)
                .and_then(|file| file.set_len(data.bytes).map(|()| file));
            let file = created.map_err(|error| unwritable(&path, data.bytes, &error))?;
            parts.parts.push(Part {
                path,
                temporary,
                file,
                bytes: data.bytes,
            });
        }
        Ok(parts)
    }

    fn write(&mut self, file: usize, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let part = &mut self.parts[file];
        let written = part
            .file
            .seek(SeekFrom::Start(offset))
            .and_then(|_| part.file.write_all(bytes));
        written.map_err(|error| unwritable(&part.path, part.bytes, &error))
    }

    /// Gives the files their names. Returns their bytes.
    fn finish(mut self) -> Result<u64, Failure> {
        for part in &self.parts {
            // Some file systems report a full disk only here.
            let synced = part.file.sync_all();
            synced.map_err(|error| unwritable(&part.path, part.bytes, &error))?;
        }
        for part in &self.parts {
            let moved = fs::rename(&part.temporary, &part.path);
            moved.map_err(|error| unwritable(&part.path, part.bytes, &error))?;
        }
        self.finished = true;
        Ok(self.parts.iter().map(|part| part.bytes).sum())
    }
}

impl Drop for PartFiles {
    fn drop(&mut self) {
        if !self.finished {
            for part in &self.parts {
                let _ = fs::remove_file(&part.temporary);
            }
        }
    }
}

fn unwritable(path: &Path, bytes: u64, error: &io::Error) -> Failure {
    Failure::unfinished(format!(
        "can't write {} ({bytes} bytes): {}; free some space or choose another --out (nothing was \
         left behind)",
        path.display(),
        files::system_message(error)
    ))
}
