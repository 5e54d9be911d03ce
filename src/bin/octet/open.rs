//! Opening of a model with its external data files.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use octet::session::{ModelFile, Session};
use octet_host::fs;

use super::{Failure, files};

/// The external data files of the model at a path.
pub fn data(path: &Path, session: &Session) -> Vec<PathBuf> {
    let files = session.summary().data_files.iter();
    files
        .map(|file| path.parent().unwrap_or(Path::new("")).join(&file.name))
        .collect()
}

/// Opens the model at a path and attaches its external data.
pub fn open(path: &Path) -> Result<Session, Failure> {
    let named = |error: octet::session::Error| Failure::from(error).about(path.display());
    let file = files::read(path, "model")?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut session = Session::open(ModelFile::new(&name, Bytes::from(file))).map_err(named)?;
    let wanted = session.wanted_files().to_vec();
    if !wanted.is_empty() {
        let mut files = BTreeMap::new();
        for location in wanted {
            // Files outside the model's folder are not read; attaching refuses them with a message.
            let inside = Path::new(&location)
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            let beside = path.parent().unwrap_or(Path::new("")).join(&location);
            if inside && fs::is_file(&beside) {
                files.insert(
                    location,
                    Bytes::from(files::read(&beside, "model's weights")?),
                );
            }
        }
        session.attach(&files).map_err(named)?;
    }
    Ok(session)
}
