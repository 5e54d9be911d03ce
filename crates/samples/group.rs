//! Grouping of files into samples, and the order of samples.
//!
//! Only names matter. Numbers in names compare by value (`img2` before `img10`), so the order does
//! not depend on the file system or the browser.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;

use super::error::{NotASample, SampleError};

/// A sample: its name and the paths of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SampleRef {
    /// Path of its only file, or of the folder that forms the sample.
    pub name: String,
    /// Paths of its files, in order.
    pub parts: Vec<String>,
}

impl SampleRef {
    /// True if the sample is an image.
    pub fn is_picture(&self) -> bool {
        self.parts
            .iter()
            .any(|path| kind(path) == Some(FileKind::Image))
    }
}

/// Type of a file by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Npz,
    Npy,
    Image,
    /// `input_K.pb`, with its K.
    TensorFile(usize),
    /// A tokenized text.
    Tokens,
    /// A row of a table.
    Row,
    /// A WAV file.
    Sound,
}

/// True for files that hold texts, which become samples with a tokenizer.
pub fn is_text(path: &str) -> bool {
    let (_, file) = split(path);
    let ending = file.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| {
        ["txt", "jsonl", "csv"]
            .iter()
            .any(|text| ending.eq_ignore_ascii_case(text))
    })
}

/// Type of a sample's file; `None` if the file is not a sample.
pub(super) fn kind(path: &str) -> Option<FileKind> {
    let (_, file) = split(path);
    let (stem, ending) = file.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "npz" => Some(FileKind::Npz),
        "npy" => Some(FileKind::Npy),
        "tokens" => Some(FileKind::Tokens),
        "row" => Some(FileKind::Row),
        "wav" => Some(FileKind::Sound),
        "png" | "jpg" | "jpeg" | "webp" | "bmp" | "gif" | "avif" => Some(FileKind::Image),
        "pb" => stem
            .strip_prefix("input_")?
            .parse()
            .ok()
            .map(FileKind::TensorFile),
        _ => None,
    }
}

/// Splits a path into folder and file name. Both kinds of slash separate.
fn split(path: &str) -> (&str, &str) {
    match path.rfind(['/', '\\']) {
        Some(at) => path.split_at(at + 1),
        None => ("", path),
    }
}

/// Groups files into samples, in natural order. Hidden files and the outputs of a `test_data_set_N`
/// are ignored; any other unsupported file is an error.
pub fn group(paths: &[String]) -> Result<Vec<SampleRef>, SampleError> {
    let mut single = Vec::new();
    let mut sets: BTreeMap<&str, Vec<(usize, &String)>> = BTreeMap::new();
    for path in paths {
        let (folder, file) = split(path);
        match kind(path) {
            Some(FileKind::TensorFile(position)) => {
                sets.entry(folder).or_default().push((position, path))
            }
            Some(kind) => single.push(SampleRef {
                // A tokenized text is called after the text, and a row after its table.
                name: match kind {
                    FileKind::Tokens => path[..path.len() - ".tokens".len()].into(),
                    FileKind::Row => path[..path.len() - ".row".len()].into(),
                    _ => path.clone(),
                },
                parts: vec![path.clone()],
            }),
            None if is_ignored(file) => {}
            None => {
                let why = if file.to_ascii_lowercase().ends_with(".pb") {
                    NotASample::OtherTensorFile
                } else if is_text(file) {
                    NotASample::Text
                } else {
                    NotASample::FileType
                };
                return Err(SampleError::Kind {
                    path: path.clone(),
                    why,
                });
            }
        }
    }
    let mut samples = single;
    for (folder, mut parts) in sets {
        parts.sort();
        let name = folder.trim_end_matches(['/', '\\']);
        samples.push(SampleRef {
            name: if name.is_empty() {
                "input_*.pb".into()
            } else {
                name.into()
            },
            parts: parts.into_iter().map(|(_, path)| path.clone()).collect(),
        });
    }
    if samples.is_empty() {
        return Err(SampleError::None);
    }
    samples.sort_by(|a, b| natural(&a.name, &b.name));
    Ok(samples)
}

fn is_ignored(file: &str) -> bool {
    file.starts_with('.')
        || file == "Thumbs.db"
        || file == "desktop.ini"
        || (file.starts_with("output_") && file.ends_with(".pb"))
}

/// Compares runs of digits by value and other text by character. Different names are never equal.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a, b);
    loop {
        let (Some(c), Some(d)) = (x.chars().next(), y.chars().next()) else {
            return x.len().cmp(&y.len()).then_with(|| a.cmp(b));
        };
        let order = if c.is_ascii_digit() && d.is_ascii_digit() {
            let ((m, rest_x), (n, rest_y)) = (digits(x), digits(y));
            (x, y) = (rest_x, rest_y);
            m.len().cmp(&n.len()).then_with(|| m.cmp(n))
        } else {
            (x, y) = (&x[c.len_utf8()..], &y[d.len_utf8()..]);
            c.cmp(&d)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Splits off the leading digits, without their leading zeros.
fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (run, rest) = text.split_at(end);
    (run.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let paths: Vec<String> = paths.iter().map(|p| p.to_string()).collect();
        group(&paths).unwrap().into_iter().map(|s| s.name).collect()
    }

    #[test]
    fn numbers_in_names_sort_by_value() {
        let paths = [
            "d/img10.png",
            "d/img9.JPG",
            "d/img009.JPG",
            "c/x.npy",
            "img2.npz",
        ];
        assert_eq!(
            names(&paths),
            [
                "c/x.npy",
                "d/img009.JPG",
                "d/img9.JPG",
                "d/img10.png",
                "img2.npz"
            ]
        );
        let mut turned = paths;
        turned.reverse();
        assert_eq!(names(&turned), names(&paths));
    }

    #[test]
    fn the_inputs_of_a_test_data_set_are_one_sample() {
        let paths: Vec<String> = [
            "t/test_data_set_10/input_0.pb",
            "t/test_data_set_2/input_10.pb",
            "t/test_data_set_2/input_9.pb",
            "t/test_data_set_2/output_0.pb",
            "t/.DS_Store",
        ]
        .map(String::from)
        .to_vec();
        let samples = group(&paths).unwrap();
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].name, "t/test_data_set_2");
        assert_eq!(
            samples[0].parts,
            [
                "t/test_data_set_2/input_9.pb",
                "t/test_data_set_2/input_10.pb"
            ]
        );
    }

    #[test]
    fn a_tokenized_text_is_called_after_its_text() {
        assert_eq!(
            names(&["a.txt:10.tokens", "a.txt:9.tokens"]),
            ["a.txt:9", "a.txt:10"]
        );
    }

    #[test]
    fn other_files_are_refused_by_name() {
        for (paths, word) in [
            (vec!["a/labels.txt"], "a/labels.txt"),
            (vec!["a/texts.JSONL"], "tokenizer.json"),
            (vec!["a.npy", "weights.pb"], "weights.pb"),
            (vec![], "no samples"),
            (vec!["t/output_0.pb"], "no samples"),
        ] {
            let paths: Vec<String> = paths.into_iter().map(String::from).collect();
            let message = group(&paths).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
