//! Output paths: by default beside the model, named by scheme, and never over an input file.

use std::path::{Path, PathBuf};

use octet_host::fs;

use super::{Failure, files};

/// The default path of the result: beside the model. An existing file is an error.
pub fn default_path(model: &Path, name: &str) -> Result<PathBuf, Failure> {
    let out = model.with_file_name(name);
    if fs::exists(&out).unwrap_or(false) {
        return Err(Failure::usage(format!(
            "{} exists already: move it away, or name it with --out to replace it",
            out.display()
        )));
    }
    Ok(out)
}

/// Checks before the work begins that each target can be written and is no file of the model.
/// `data` are the external data files of the model.
pub fn check(
    targets: &[(&Path, &'static str)],
    model: &Path,
    data: &[PathBuf],
) -> Result<(), Failure> {
    for &(target, option) in targets {
        files::check_target(target, option)?;
        let lost = if same_file(target, model) {
            "the model itself"
        } else if data.iter().any(|file| same_file(target, file)) {
            "a file that holds the model's weights"
        } else {
            continue;
        };
        return Err(Failure::usage(format!(
            "{option} {} is {lost}, which would be lost: choose another name",
            target.display()
        )));
    }
    Ok(())
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonical(a), fs::canonical(b)), (Ok(a), Ok(b)) if a == b)
}
