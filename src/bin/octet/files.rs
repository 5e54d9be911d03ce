//! Reading what was named and writing what was asked for, so that no file that was there before is
//! lost to an error.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Failure;

/// A file's bytes.
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
            plain(&error)
        ))
    })
}

/// A document that was given as text, which begins with a brace, or as a file that holds it; with the place to name in an error.
pub fn inline_or_read(option: &str, given: &str) -> Result<(String, Vec<u8>), Failure> {
    match given.trim_start().starts_with('{') {
        true => Ok((option.into(), given.as_bytes().to_vec())),
        false => Ok((given.into(), read(Path::new(given), "settings")?)),
    }
}

/// What stands beside samples in a folder and is none: labels, descriptions, licences.
const BESIDE: [&str; 6] = ["csv", "txt", "md", "json", "yaml", "html"];

/// The files named, and in place of a folder all files below it that are not hidden and not only beside samples, in a
/// fixed order.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let unreadable = |error: io::Error| {
            Failure::input(format!(
                "can't read the samples {}: {}; check the path",
                path.display(),
                plain(&error)
            ))
        };
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            below(path, &mut files).map_err(unreadable)?;
        } else {
            files.push(path.to_string_lossy().into_owned());
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn below(folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        if path.is_dir() {
            below(&path, files)?;
        } else if !BESIDE.iter().any(|beside| ending == *beside) {
            files.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// That something can be written to a path, found out before the work begins.
pub fn check_target(path: &Path, option: &str) -> Result<(), Failure> {
    let refuse = |why: &str| {
        Err(Failure::usage(format!(
            "can't write {}: {why}; choose another {option}",
            path.display()
        )))
    };
    if path.is_dir() {
        return refuse("it is a folder");
    }
    if !folder_of(path).is_dir() {
        return refuse("its folder does not exist");
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes a file, whose bytes follow each other in these pieces: whole, or not at all. It is written beside its place and then moved there, so
/// that a file of that name is kept when something goes wrong.
pub fn write<P: AsRef<[u8]>>(path: &Path, pieces: &[P], option: &str) -> Result<(), Failure> {
    // The file a link points to, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let device = fs::metadata(&target).is_ok_and(|found| !found.is_file());
    let written = if device {
        write_through(&target, pieces)
    } else {
        write_beside(&target, pieces)
    };
    written.map_err(|error| {
        let next = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                format!("free some space or choose another {option}")
            }
            _ => format!("choose another {option}"),
        };
        Failure::unfinished(format!(
            "can't write {} ({} bytes): {}; {next} (nothing was left behind, and no file was replaced)",
            path.display(),
            pieces.iter().map(|piece| piece.as_ref().len()).sum::<usize>(),
            plain(&error)
        ))
    })
}

/// Into something that is no file, such as `/dev/stdout`, which can't be moved over.
fn write_through(target: &Path, pieces: &[impl AsRef<[u8]>]) -> io::Result<()> {
    let mut out = OpenOptions::new().write(true).open(target)?;
    write_all(&mut out, pieces)?;
    out.flush()
}

fn write_all(out: &mut File, pieces: &[impl AsRef<[u8]>]) -> io::Result<()> {
    pieces
        .iter()
        .try_for_each(|piece| out.write_all(piece.as_ref()))
}

fn write_beside(target: &Path, pieces: &[impl AsRef<[u8]>]) -> io::Result<()> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder_of(target).join(format!(".{name}.{}.part", std::process::id()));
    let written = File::create(&beside).and_then(|mut out| {
        write_all(&mut out, pieces)?;
        // Some file systems tell only now that there is no room.
        out.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, target));
    if moved.is_err() {
        let _ = fs::remove_file(&beside);
    }
    moved
}

/// Prints what was asked for.
pub fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader of a pipe may leave early.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| {
            let why = plain(&error);
            Failure::unfinished(format!(
                "can't print the answer to standard output: {why}; make room, or send it elsewhere"
            ))
        }),
    }
}

/// The system's words without its error number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text[..1].to_lowercase() + &text[1..]
}
