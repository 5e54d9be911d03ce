//! numpy's `.npz` files: a zip of `.npy` arrays, stored or deflated. Each array bears the name of
//! an input.

use std::io::{Cursor, Read};

use super::{Array, LARGEST_ARRAY, SampleProblem, npy};

const AGAIN: &str = "save it again with numpy.savez or numpy.savez_compressed";

/// Maximum size of an entry: the values and a header.
const LARGEST_ENTRY: u64 = LARGEST_ARRAY + (1 << 20);

/// Reads all arrays of a `.npz` file, in the order of the file.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Vec<Array>, SampleProblem> {
    let broken = |why: String| SampleProblem::broken(file, why, AGAIN);
    if bytes.is_empty() {
        return Err(broken("it is empty".into()));
    }
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))
        .map_err(|e| broken(format!("it is not a zip archive ({e})")))?;
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive
            .by_index(index)
            .map_err(|e| broken(format!("entry {index}: {e}")))?;
        let name = entry
            .name()
            .map_err(|e| broken(format!("entry {index}: {e}")))?
            .into_owned();
        let Some(name) = name.strip_suffix(".npy").map(String::from) else {
            return Err(broken(format!(
                "it contains {name:?}, which is not an array"
            )));
        };
        if entry.size() > LARGEST_ENTRY {
            return Err(SampleProblem::TooLarge {
                array: name,
                bytes: entry.size(),
                limit: LARGEST_ARRAY,
            });
        }
        // The size in the file is only a claim. Memory therefore grows with the values that are
        // read.
        let mut content = Vec::new();
        let mut limited = (&mut entry).take(LARGEST_ENTRY);
        limited
            .read_to_end(&mut content)
            .map_err(|e| broken(format!("array {name:?}: {e}")))?;
        let array = npy::read(&format!("{file}, array {name:?}"), &content)?;
        arrays.push(Array {
            name,
            named: true,
            ..array
        });
    }
    if arrays.is_empty() {
        return Err(broken("it contains no array".into()));
    }
    Ok(arrays)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Write;
    use zip::write::SimpleFileOptions;

    /// Writes a `.npz` file with these arrays.
    pub(crate) fn file(arrays: &[(&str, Vec<u8>)], method: zip::CompressionMethod) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in arrays {
            let options = SimpleFileOptions::default().compression_method(method);
            writer.start_file(format!("{name}.npy"), options).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn two() -> Vec<(&'static str, Vec<u8>)> {
        vec![
            (
                "image",
                npy::tests::file("<f4", false, "(1,)", &2f32.to_le_bytes()),
            ),
            ("mask/0", npy::tests::file("|b1", false, "(2,)", &[0, 1])),
        ]
    }

    #[test]
    fn stored_and_deflated_arrays_keep_their_names() {
        for method in [
            zip::CompressionMethod::Stored,
            zip::CompressionMethod::Deflated,
        ] {
            let arrays = read("a.npz", &file(&two(), method)).unwrap();
            assert_eq!(
                arrays.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(),
                ["image", "mask/0"]
            );
            assert_eq!(arrays[0].tensor.as_f32(), Some(&[2f32][..]));
        }
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let good = file(&two(), zip::CompressionMethod::Deflated);
        for end in 0..good.len() {
            assert!(read("a.npz", &good[..end]).is_err(), "cut at {end}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            let _ = read("a.npz", &bad);
        }
        let html = read("a.npz", b"<html></html>").unwrap_err().to_string();
        assert!(
            html.contains("a.npz") && html.contains("not a zip"),
            "{html}"
        );
    }
}
