//! Where results go: by default beside the model, under a name by scheme, and never in the place of what was given.

use std::path::{Path, PathBuf};

use super::{Failure, files};

/// The path of the result where none is named: beside the model. What is there already is kept.
pub fn beside(model: &Path, name: &str) -> Result<PathBuf, Failure> {
    let out = model.with_file_name(name);
    if out.exists() {
        return Err(Failure::usage(format!(
            "{} is there already and would be replaced: move it away, or name it with --out to replace it",
            out.display()
        )));
    }
    Ok(out)
}

/// That each can be written, and that none is a file of the model, found out before the work begins. `data` are the files
/// beside the model that hold its weights.
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
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
