//! Files and folders, with the names of `std::fs`.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::host::{self, error};

/// The bits of an access, as `host.js` reads them.
const READ: u32 = 1;
const WRITE: u32 = 2;
const CREATE: u32 = 4;
const TRUNCATE: u32 = 8;

/// The position of a file that is read or written from where it is, such as a pipe.
const WHERE_IT_IS: f64 = -1.0;

pub use NodeFile as File;

/// Node's number of an open file, which is closed when it is dropped.
#[derive(Debug)]
struct OpenFile(u32);

/// An open file.
#[derive(Debug)]
pub struct NodeFile {
    file: Arc<OpenFile>,
    /// The next byte. Until the first seek the system keeps the position.
    position: Option<u64>,
}

impl NodeFile {
    /// Opens a file to be read.
    pub fn open(path: impl AsRef<Path>) -> io::Result<NodeFile> {
        OpenOptions::new().read(true).open(path)
    }

    /// Creates an empty file, or empties one.
    pub fn create(path: impl AsRef<Path>) -> io::Result<NodeFile> {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
    }

    /// A new temporary file that nothing else uses.
    pub fn unnamed() -> io::Result<NodeFile> {
        host::open_unnamed().map_err(error).map(NodeFile::new)
    }

    fn new(file: u32) -> NodeFile {
        NodeFile {
            file: Arc::new(OpenFile(file)),
            position: None,
        }
    }

    /// Size, kind and time of the last change.
    pub fn metadata(&self) -> io::Result<Metadata> {
        host::metadata_of(self.file.0)
            .map_err(error)
            .map(|found| Metadata::new(&found))
    }

    /// Another handle of the same open file, with a position of its own.
    pub fn try_clone(&self) -> io::Result<NodeFile> {
        Ok(NodeFile {
            file: self.file.clone(),
            position: self.position,
        })
    }

    /// Cuts or extends the file.
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        host::set_length(self.file.0, length as f64).map_err(error)
    }

    /// Waits until the bytes are on the disk.
    pub fn sync_all(&self) -> io::Result<()> {
        host::sync(self.file.0).map_err(error)
    }

    /// Waits until the bytes are on the disk.
    pub fn sync_data(&self) -> io::Result<()> {
        self.sync_all()
    }

    /// Does nothing: Node has no locks on files (`docs/unsupported.md`).
    pub fn try_lock(&self) -> Result<(), TryLockError> {
        Ok(())
    }

    fn place(&self) -> f64 {
        self.position
            .map_or(WHERE_IT_IS, |position| position as f64)
    }

    fn advance(&mut self, bytes: usize) -> usize {
        self.position = self.position.map(|position| position + bytes as u64);
        bytes
    }
}

/// The error of [`NodeFile::try_lock`]; it has the cases of `std::fs::TryLockError`.
#[derive(Debug)]
pub enum TryLockError {
    /// The lock failed.
    Error(io::Error),
    /// Another process holds the lock.
    WouldBlock,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        host::close(self.0);
    }
}

impl Read for NodeFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = host::read(self.file.0, to, self.place()).map_err(error)?;
        Ok(self.advance(count as usize))
    }
}

impl Write for NodeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = host::write(self.file.0, bytes, self.place()).map_err(error)?;
        Ok(self.advance(count as usize))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for NodeFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let moved = |from: u64, by: i64| {
            let negative = || io::Error::new(io::ErrorKind::InvalidInput, "Invalid argument");
            from.checked_add_signed(by).ok_or_else(negative)
        };
        let position = match to {
            SeekFrom::Start(position) => position,
            SeekFrom::Current(by) => moved(self.position.unwrap_or(0), by)?,
            SeekFrom::End(by) => moved(self.metadata()?.len(), by)?,
        };
        self.position = Some(position);
        Ok(position)
    }
}

/// The access to a file that is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions(u32);

impl OpenOptions {
    /// No access.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    fn with(&mut self, bit: u32, set: bool) -> &mut OpenOptions {
        self.0 = if set { self.0 | bit } else { self.0 & !bit };
        self
    }

    /// Reading.
    pub fn read(&mut self, read: bool) -> &mut OpenOptions {
        self.with(READ, read)
    }

    /// Writing.
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.with(WRITE, write)
    }

    /// Creates a file that does not exist.
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.with(CREATE, create)
    }

    /// Empties the file.
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.with(TRUNCATE, truncate)
    }

    /// Opens the file.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<NodeFile> {
        let file = host::open(&text(path.as_ref()), self.0).map_err(error)?;
        Ok(NodeFile::new(file))
    }
}

/// Size, kind and time of the last change of a file.
#[derive(Clone, Copy, Debug)]
pub struct Metadata {
    kind: f64,
    length: u64,
    changed_ms: f64,
}

impl Metadata {
    /// From kind, length and time, as `host.js` returns them.
    fn new(found: &[f64]) -> Metadata {
        let number = |index: usize| found.get(index).copied().unwrap_or_default();
        Metadata {
            kind: number(0),
            length: number(1) as u64,
            changed_ms: number(2),
        }
    }

    /// True for a file.
    pub fn is_file(&self) -> bool {
        self.kind == 1.0
    }

    /// True for a folder.
    pub fn is_dir(&self) -> bool {
        self.kind == 2.0
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// True for a file without bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Time of the last change.
    pub fn modified(&self) -> io::Result<SystemTime> {
        Ok(UNIX_EPOCH + Duration::from_secs_f64(self.changed_ms.max(0.0) / 1e3))
    }
}

/// A name in a folder.
#[derive(Debug)]
pub struct DirEntry(PathBuf);

impl DirEntry {
    /// The path of the folder with this name.
    pub fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

/// The names in a folder.
pub fn read_dir(
    folder: impl AsRef<Path>,
) -> io::Result<impl Iterator<Item = io::Result<DirEntry>>> {
    let folder = folder.as_ref().to_path_buf();
    let names = host::names(&text(&folder)).map_err(error)?;
    Ok(names
        .into_iter()
        .map(move |name| Ok(DirEntry(folder.join(name)))))
}

/// Size, kind and time of the last change of what a path leads to.
pub fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let found = host::metadata(&text(path.as_ref())).map_err(error)?;
    Ok(Metadata::new(&found))
}

/// Reads a file, into memory of its size.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut file = NodeFile::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX))
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file of UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let invalid = |_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "stream did not contain valid UTF-8",
        )
    };
    String::from_utf8(read(path)?).map_err(invalid)
}

/// The absolute path without symbolic links.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    host::canonical(&text(path))
        .map_err(error)
        .map(PathBuf::from)
}

/// The absolute path without symbolic links.
pub fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    canonical(path.as_ref())
}

/// Gives a file another name; it replaces what had that name.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    host::rename(&text(from.as_ref()), &text(to.as_ref())).map_err(error)
}

/// Removes a file.
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    host::remove(&text(path.as_ref())).map_err(error)
}

/// Creates a folder and those above it.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    host::create_folders(&text(path.as_ref())).map_err(error)
}

/// Copies a file.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    host::copy(&text(from.as_ref()), &text(to.as_ref())).map_err(error)?;
    metadata(to).map(|copied| copied.len())
}

/// The system's folder of temporary files.
pub fn temporary_folder() -> PathBuf {
    PathBuf::from(host::temporary_folder())
}

/// Bytes that this user may still write to the disk of a folder; `None` where Node does not tell.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    host::free_bytes(&text(folder))
        .ok()
        .map(|bytes| bytes as u64)
}

/// True for a file, also behind a symbolic link.
pub fn is_file(path: &Path) -> bool {
    metadata(path).is_ok_and(|found| found.is_file())
}

/// True for a folder, also behind a symbolic link.
pub fn is_dir(path: &Path) -> bool {
    metadata(path).is_ok_and(|found| found.is_dir())
}

/// True if there is something at a path.
pub fn exists(path: impl AsRef<Path>) -> io::Result<bool> {
    match metadata(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        found => found.map(|_| true),
    }
}

fn text(path: &Path) -> std::borrow::Cow<'_, str> {
    path.to_string_lossy()
}
