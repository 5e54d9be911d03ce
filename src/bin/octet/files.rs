//! Reading of input files and writing of results. A failed write never loses an existing file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use octet_host::fs::{self, File, OpenOptions};

use super::Failure;

/// Reads a file.
pub fn read(path: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let next = match error.kind() {
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::PermissionDenied => "make it readable",
            _ => "check the file",
        };
        Failure::input(format!(
            "can't read the {what} {}: {}; {next}",
            path.display(),
            system_message(&error)
        ))
    })
}

/// A document argument inline, which begins with a brace, or as a path. Returns the name to use in
/// errors and the bytes.
pub fn inline_or_read(option: &str, argument: &str) -> Result<(String, Vec<u8>), Failure> {
    match argument.trim_start().starts_with('{') {
        true => Ok((option.into(), argument.as_bytes().to_vec())),
        false => Ok((argument.into(), read(Path::new(argument), "settings")?)),
    }
}

/// Extensions of files beside samples that are no samples: labels, descriptions, licences.
const NOT_SAMPLES: [&str; 6] = ["csv", "txt", "md", "json", "yaml", "html"];

/// Expands folders into the files below them, in a fixed order. Hidden files and files that only
/// accompany samples are left out.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let unreadable = |error: io::Error| {
            Failure::input(format!(
                "can't read the samples {}: {}; check the path",
                path.display(),
                system_message(&error)
            ))
        };
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            collect_files(path, &mut files).map_err(unreadable)?;
        } else {
            files.push(path.to_string_lossy().into_owned());
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn collect_files(folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        if fs::is_dir(&path) {
            collect_files(&path, files)?;
        } else if !NOT_SAMPLES.iter().any(|beside| ending == *beside) {
            files.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// Checks before the work begins that a path can be written.
pub fn check_target(path: &Path, option: &str) -> Result<(), Failure> {
    let refuse = |why: &str| {
        Err(Failure::usage(format!(
            "can't write {}: {why}; choose another {option}",
            path.display()
        )))
    };
    if fs::is_dir(path) {
        return refuse("it is a folder");
    }
    if !fs::is_dir(folder_of(path)) {
        return refuse("its folder does not exist");
    }
    Ok(())
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes a file from consecutive pieces, completely or not at all. The data goes to a temporary
/// file in the same folder, which is then renamed. So an existing file survives an error.
pub fn write<P: AsRef<[u8]>>(path: &Path, pieces: &[P], option: &str) -> Result<(), Failure> {
    // Write to the target of a symbolic link, not over the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
        let written = write_to_device(&target, pieces);
        return written.map_err(|error| unwritable(path, length(pieces), option, &error));
    }
    prepare(path, pieces, option)?.finish()
}

/// A complete file under a temporary name, which is removed unless it gets its own.
pub struct PreparedFile {
    path: PathBuf,
    beside: PathBuf,
    bytes: usize,
    option: String,
}

/// Writes a file under a temporary name.
pub fn prepare<P: AsRef<[u8]>>(
    path: &Path,
    pieces: &[P],
    option: &str,
) -> Result<PreparedFile, Failure> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let prepared = PreparedFile {
        beside: folder_of(&target).join(format!(".{name}.{}.part", octet_host::process::id())),
        path: target,
        bytes: length(pieces),
        option: option.to_owned(),
    };
    let written = File::create(&prepared.beside).and_then(|mut out| {
        write_all(&mut out, pieces)?;
        // Some file systems report a full disk only here.
        out.sync_all()
    });
    match written {
        Ok(()) => Ok(prepared),
        Err(error) => Err(unwritable(path, length(pieces), option, &error)),
    }
}

impl PreparedFile {
    /// Gives the file its name.
    pub fn finish(self) -> Result<(), Failure> {
        let moved = fs::rename(&self.beside, &self.path);
        moved.map_err(|error| unwritable(&self.path, self.bytes, &self.option, &error))
    }
}

impl Drop for PreparedFile {
    fn drop(&mut self) {
        // Fails if the file has its name.
        let _ = fs::remove_file(&self.beside);
    }
}

fn length<P: AsRef<[u8]>>(pieces: &[P]) -> usize {
    pieces.iter().map(|piece| piece.as_ref().len()).sum()
}

fn unwritable(path: &Path, bytes: usize, option: &str, error: &io::Error) -> Failure {
    let next = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            format!("free some space or choose another {option}")
        }
        _ => format!("choose another {option}"),
    };
    Failure::unfinished(format!(
        "can't write {} ({bytes} bytes): {}; {next} (nothing was left behind, and no file was replaced)",
        path.display(),
        system_message(error)
    ))
}

/// Writes to something other than a file, such as `/dev/stdout`, which can't be renamed over.
fn write_to_device(target: &Path, pieces: &[impl AsRef<[u8]>]) -> io::Result<()> {
    let mut out = OpenOptions::new().write(true).open(target)?;
    write_all(&mut out, pieces)?;
    out.flush()
}

fn write_all(out: &mut File, pieces: &[impl AsRef<[u8]>]) -> io::Result<()> {
    pieces
        .iter()
        .try_for_each(|piece| out.write_all(piece.as_ref()))
}

/// Prints a result.
pub fn print(text: &str) -> Result<(), Failure> {
    match octet_host::process::stdout().write_all(text.as_bytes()) {
        // The reader of a pipe may close it early.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| {
            let why = system_message(&error);
            Failure::unfinished(format!(
                "can't print the result to standard output: {why}; make room, or send it elsewhere"
            ))
        }),
    }
}

/// The system's message without its error number.
pub fn system_message(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text[..1].to_lowercase() + &text[1..]
}
