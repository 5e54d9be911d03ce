//! Files of ranges: `{"tensor": [min, max]}`.

use std::collections::BTreeMap;
use std::path::Path;

use octet::stats::Range;

use super::{Failure, files};

/// Reads ranges from a file.
pub fn read(path: &Path) -> Result<BTreeMap<String, Range>, Failure> {
    let bytes = files::read(path, "ranges")?;
    let ranges: BTreeMap<String, Range> = serde_json::from_slice(&bytes).map_err(|error| {
        Failure::input(format!(
            "the ranges {} are not understood: {error}; give JSON like {{\"tensor\": [min, max]}}",
            path.display()
        ))
    })?;
    for (tensor, range) in &ranges {
        if !(range.min.is_finite() && range.max.is_finite() && range.min <= range.max) {
            return Err(Failure::input(format!(
                "the ranges {}: {tensor:?} is from {} to {}, which is not a range; give finite numbers, \
                 the smaller first",
                path.display(),
                range.min,
                range.max
            )));
        }
    }
    Ok(ranges)
}
