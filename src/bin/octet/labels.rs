//! Class labels of samples, from a file.

use std::collections::HashMap;
use std::path::Path;

use super::{Failure, files};

/// Labels by sample. A line without a pair is an error, except for a heading in the first line.
pub fn read(path: &Path) -> Result<HashMap<String, usize>, Failure> {
    let text = String::from_utf8_lossy(&files::read(path, "labels")?).into_owned();
    let mut labels = HashMap::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty())
    {
        let pair = line
            .rsplit_once(',')
            .map(|(name, class)| (name.trim(), class.trim().parse()));
        match pair {
            Some((name, Ok(class))) => {
                labels.insert(name.to_string(), class);
            }
            _ if number == 0 => {}
            _ => {
                return Err(Failure::input(format!(
                    "{} line {}: it is not `SAMPLE,CLASS` with a class number; correct the line",
                    path.display(),
                    number + 1
                )));
            }
        }
    }
    Ok(labels)
}

/// The label is found by the sample's path, its file name, or the file name without extension.
pub fn of(labels: &HashMap<String, usize>, sample: &str) -> Option<usize> {
    let path = Path::new(sample);
    let name = path.file_name()?.to_str()?;
    let stem = path.file_stem()?.to_str()?;
    [sample, name, stem]
        .into_iter()
        .find_map(|key| labels.get(key).copied())
}
