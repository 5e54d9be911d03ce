//! The place of each large constant in the files of the result.

use serde::{Deserialize, Serialize};

/// The greatest tensor with the small alignment.
const SMALL_ALIGNMENT_UP_TO: u64 = 1 << 20;
/// Alignment of tensors up to a mebibyte: a page.
const SMALL_ALIGNMENT: u64 = 4 << 10;
/// Alignment of larger tensors, so that a system maps them at once.
const LARGE_ALIGNMENT: u64 = 64 << 10;

/// Names and sizes of the result's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFiles {
    /// Name of the model file, such as `model_q4.onnx`.
    pub model: String,
    /// The greatest size of a file of constants.
    pub limit: u64,
}

/// A file of constants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightsFile {
    /// Its name, which the model contains.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// Places constants one after the other, in as many files as they need.
pub(crate) struct DataPlacement {
    output: OutputFiles,
    pub(crate) files: Vec<WeightsFile>,
}

impl DataPlacement {
    pub(crate) fn new(output: OutputFiles) -> DataPlacement {
        DataPlacement {
            output,
            files: Vec::new(),
        }
    }

    /// Places a constant; returns the index of its file and its offset. A constant is never divided.
    pub(crate) fn place(&mut self, bytes: u64) -> (usize, u64) {
        let alignment = match bytes > SMALL_ALIGNMENT_UP_TO {
            true => LARGE_ALIGNMENT,
            false => SMALL_ALIGNMENT,
        };
        let offset = self
            .files
            .last()
            .map(|file| file.bytes.next_multiple_of(alignment));
        let offset = offset.filter(|&offset| offset + bytes <= self.output.limit);
        let offset = offset.unwrap_or_else(|| {
            // transformers.js names the files so.
            let name = match self.files.len() {
                0 => format!("{}_data", self.output.model),
                number => format!("{}_data_{number}", self.output.model),
            };
            self.files.push(WeightsFile { name, bytes: 0 });
            0
        });
        let index = self.files.len() - 1;
        self.files[index].bytes = offset + bytes;
        (index, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_aligned_and_files_stay_below_their_limit() {
        let mut layout = DataPlacement::new(OutputFiles {
            model: "m.onnx".into(),
            limit: 10 << 20,
        });
        assert_eq!(layout.place(100), (0, 0));
        assert_eq!(layout.place(1 << 20), (0, 4096));
        assert_eq!(layout.place(3 << 20), (0, 17 << 16));
        assert_eq!(layout.place(6 << 20), (1, 0));
        // One constant may be larger than the limit.
        assert_eq!(layout.place(11 << 20), (2, 0));
        assert_eq!(layout.place(1), (3, 0));
        let names: Vec<&str> = layout.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "m.onnx_data",
                "m.onnx_data_1",
                "m.onnx_data_2",
                "m.onnx_data_3"
            ]
        );
        assert_eq!(layout.files[1].bytes, 6 << 20);
    }
}
