//! The file of the values at rest, which the caller opens: wasm has no file system of its own.

use std::io::{self, Read, Seek, SeekFrom, Write};

/// A file of values. Only the thread that runs the learning calls it, as a worker of a browser can't
/// share its files with others.
pub trait ValueFile: Send {
    /// Writes all bytes.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Reads as many bytes as there are places.
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

impl<T: Read + Write + Seek + Send> ValueFile for T {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(at))?;
        self.write_all(bytes)
    }

    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(at))?;
        self.read_exact(into)
    }
}

/// Opens the file of values, if the options ask for one.
pub type OpenValueFile<'a> = &'a dyn Fn() -> io::Result<Box<dyn ValueFile>>;

/// A new file in the system's folder of temporary files that nothing else uses. It has no name where
/// the system permits that, so it disappears with the process.
pub fn unnamed_file() -> io::Result<Box<dyn ValueFile>> {
    // The standard library has no files there, and knows no folder.
    if cfg!(target_family = "wasm") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (file, path) = new_file(&std::env::temp_dir())?;
    // Unix keeps an open file without a name; elsewhere it stays until the system removes it.
    drop(std::fs::remove_file(path));
    Ok(Box::new(file))
}

/// A file that was not there before.
fn new_file(folder: &std::path::Path) -> io::Result<(std::fs::File, std::path::PathBuf)> {
    let mut options = std::fs::File::options();
    options.read(true).write(true).create_new(true);
    for number in 0_u64.. {
        let path = folder.join(format!("octet-values-{number}"));
        match options.open(&path) {
            // Another run has it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return Ok((opened?, path)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_begin_together_share_no_file() {
        std::thread::scope(|scope| {
            for thread in 0..8_u8 {
                scope.spawn(move || {
                    for _ in 0..100 {
                        let mut file = unnamed_file().unwrap();
                        file.write_at(10, &[thread; 100]).unwrap();
                        std::thread::yield_now();
                        let mut read = [0; 100];
                        file.read_at(10, &mut read).unwrap();
                        assert_eq!(read, [thread; 100]);
                    }
                });
            }
        });
    }

    #[test]
    fn a_file_that_is_there_stays() {
        let folder = std::env::temp_dir().join(format!("octet-stores-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let taken = folder.join("octet-values-0");
        std::fs::write(&taken, "another run").unwrap();
        let (mut file, path) = new_file(&folder).unwrap();
        file.write_at(0, &[3; 100]).unwrap();
        assert_eq!(path, folder.join("octet-values-1"));
        assert_eq!(std::fs::read_to_string(taken).unwrap(), "another run");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
