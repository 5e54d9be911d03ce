//! The files that a conversion piece by piece reads.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use octet::onnx::skeleton::SkeletonReader;
use octet::onnx::{Stretch, check_stretches, external};
use octet::stream::SourceIdentity;
use octet_host::fs::{self, File};

use super::{Failure, files};

/// The model and its files of weights.
pub struct Source {
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
        // A buffer that is used again has the right length, and is not cleared first.
        to.resize(length as usize, 0);
        let unread = |error| unreadable(&self.path, "model's weights", &error);
        self.file.seek(SeekFrom::Start(offset)).map_err(unread)?;
        let mut filled = 0;
        while filled < to.len() {
            match self.file.read(&mut to[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unread(error)),
            }
        }
        to.truncate(filled);
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
    /// Opens the model.
    pub fn open(model: &Path) -> Result<Source, Failure> {
        let name = model.file_name().unwrap_or_default().to_string_lossy();
        let file = SourceFile::open(model.to_path_buf(), "model")?;
        Ok(Source {
            folder: files::folder_of(model).to_path_buf(),
            model: name.clone().into(),
            files: [(name.into(), file)].into(),
        })
    }

    /// Another reader of the same open files. Only one of both may read at a time.
    pub fn duplicate(&self) -> Result<Source, Failure> {
        let file = |(name, file): (&String, &SourceFile)| {
            let again = SourceFile {
                path: file.path.clone(),
                file: file.file.try_clone()?,
                bytes: file.bytes,
                modified: file.modified,
            };
            Ok((name.clone(), again))
        };
        let files: io::Result<_> = self.files.iter().map(file).collect();
        Ok(Source {
            folder: self.folder.clone(),
            model: self.model.clone(),
            files: files.map_err(|error| unreadable(&self.model_path(), "model", &error))?,
        })
    }

    /// Bytes of the model and its files of weights; `None` if the model can't be read.
    pub fn size(model: &Path) -> Option<u64> {
        let mut source = Source::open(model).ok()?;
        source.skeleton().ok()?;
        Some(source.bytes())
    }

    /// Path of the model.
    pub fn model_path(&self) -> PathBuf {
        self.folder.join(&self.model)
    }

    /// Reads the skeleton and opens all files of weights.
    pub fn skeleton(&mut self) -> Result<octet::onnx::schema::ModelProto, Failure> {
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
            if inside && !self.files.contains_key(&location) && fs::is_file(&beside) {
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

    /// Reads a stretch.
    pub fn read(&mut self, stretch: &Stretch, to: &mut Vec<u8>) -> Result<(), Failure> {
        match self.files.get_mut(&stretch.file) {
            Some(file) => file.read(stretch.offset, stretch.length, to),
            None => {
                to.clear();
                Ok(())
            }
        }
    }

    /// Paths of all files.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.files.values().map(|file| file.path.clone()).collect()
    }

    /// Identities of all files, for a journal.
    pub fn identities(&self) -> Vec<SourceIdentity> {
        let identity = |(name, file): (&String, &SourceFile)| {
            let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
            let modified = file.modified.and_then(since);
            SourceIdentity {
                name: name.clone(),
                bytes: file.bytes,
                modified: modified.map(|time| time.as_millis() as u64),
            }
        };
        self.files.iter().map(identity).collect()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }

    /// Fails if a file was written while it was read.
    pub fn check_unchanged(&self) -> Result<(), Failure> {
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
