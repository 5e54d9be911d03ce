//! Values of the frontier at rest: integers as they are, floats as halves where that is allowed.

use std::fs::File;
use std::io::{Error, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use octet_onnx::half::{narrow_half, widen_half};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{DataType, TensorProto};

use crate::TuneError;

/// The largest magnitude that a half represents.
const LARGEST_HALF: f32 = 65504.0;

/// Place of the bytes of a value.
enum StoredPlace {
    Memory(Vec<u8>),
    File { at: u64, length: usize },
}

/// A value at rest.
pub(crate) struct StoredValue {
    shape: Vec<usize>,
    element: DataType,
    /// The floats are stored as halves.
    half: bool,
    place: StoredPlace,
}

impl StoredValue {
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn element(&self) -> DataType {
        self.element
    }

    /// Bytes of the value at rest.
    pub(crate) fn bytes(&self) -> usize {
        match &self.place {
            StoredPlace::Memory(bytes) => bytes.len(),
            StoredPlace::File { length, .. } => *length,
        }
    }
}

/// The place of values: in memory, or in a file that is as large as the most bytes held at once.
pub(crate) enum Store {
    Memory,
    File(Mutex<Pages>),
}

/// A file, and its free stretches.
pub(crate) struct Pages {
    file: File,
    end: u64,
    /// Start and length.
    free: Vec<(u64, usize)>,
}

impl Store {
    /// A store in a new file. The file has no name where the system permits that, so it disappears
    /// with the process.
    pub(crate) fn in_file(folder: &Path) -> Result<Store, TuneError> {
        let path = folder.join(format!("octet-frontier-{}", std::process::id()));
        let failed = |error: Error| TuneError::File {
            path: path.display().to_string(),
            error: error.to_string(),
        };
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&path).map_err(failed)?;
        // Unix keeps an open file without a name; elsewhere it stays until the system removes it.
        drop(std::fs::remove_file(&path));
        Ok(Store::File(Mutex::new(Pages {
            file,
            end: 0,
            free: Vec::new(),
        })))
    }

    /// Stores a value. With `half`, floats become halves if none is too large for that.
    pub(crate) fn put(&self, tensor: &Tensor, half: bool) -> Result<StoredValue, TuneError> {
        let (shape, element) = (tensor.shape().to_vec(), tensor.element_type());
        let fits = |values: &[f32]| values.iter().all(|value| value.abs() <= LARGEST_HALF);
        let floats = tensor.as_f32().filter(|values| half && fits(values));
        let bytes = match floats {
            Some(values) => {
                let halves = values.iter().map(|&value| narrow_half(value).to_le_bytes());
                halves.flatten().collect()
            }
            None => {
                let raw = TensorProto::from_tensor("", tensor).raw_data;
                raw.map_or(Vec::new(), |raw| raw.to_vec())
            }
        };
        Ok(StoredValue {
            shape,
            element,
            half: floats.is_some(),
            place: self.keep(bytes)?,
        })
    }

    fn keep(&self, bytes: Vec<u8>) -> Result<StoredPlace, TuneError> {
        let Store::File(pages) = self else {
            return Ok(StoredPlace::Memory(bytes));
        };
        let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        let length = bytes.len();
        // Values of one name have one length in most models, so a stretch of that length is free.
        let found = pages.free.iter().position(|&(_, free)| free == length);
        let at = match found {
            Some(place) => pages.free.swap_remove(place).0,
            None => {
                let at = pages.end;
                pages.end += length as u64;
                at
            }
        };
        let written = pages.file.seek(SeekFrom::Start(at));
        written
            .and_then(|_| pages.file.write_all(&bytes))
            .map_err(|error| failed(&error))?;
        Ok(StoredPlace::File { at, length })
    }

    /// Reads a value back.
    pub(crate) fn get(&self, stored: &StoredValue) -> Result<Tensor, TuneError> {
        let read;
        let bytes = match (&stored.place, self) {
            (StoredPlace::Memory(bytes), _) => bytes,
            (StoredPlace::File { at, length }, Store::File(pages)) => {
                let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
                let mut bytes = vec![0; *length];
                let place = pages.file.seek(SeekFrom::Start(*at));
                place
                    .and_then(|_| pages.file.read_exact(&mut bytes))
                    .map_err(|error| failed(&error))?;
                read = bytes;
                &read
            }
            (StoredPlace::File { .. }, Store::Memory) => {
                return Err(TuneError::Broken("a value's file"));
            }
        };
        if stored.half {
            let (halves, _) = bytes.as_chunks::<2>();
            let values = halves
                .iter()
                .map(|half| widen_half(u16::from_le_bytes(*half)));
            let values = Values::F32(values.collect());
            return Tensor::new(stored.shape.clone(), values)
                .ok_or(TuneError::Broken("the shape of a stored value"));
        }
        let raw = bytes.to_vec().into();
        Ok(TensorProto::from_raw("", stored.element, &stored.shape, raw).to_tensor()?)
    }

    /// Frees a value.
    pub(crate) fn free(&self, stored: StoredValue) {
        if let (StoredPlace::File { at, length }, Store::File(pages)) = (stored.place, self) {
            let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
            pages.free.push((at, length));
        }
    }
}

fn failed(error: &Error) -> TuneError {
    TuneError::File {
        path: "the file of intermediate values".into(),
        error: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: Values) -> Tensor {
        Tensor::new(vec![values.len()], values).unwrap()
    }

    #[test]
    fn integers_come_back_exactly_and_floats_as_halves() {
        let stores = [
            Store::Memory,
            Store::in_file(&std::env::temp_dir()).unwrap(),
        ];
        for store in stores {
            for exact in [
                tensor(Values::U8(vec![0, 7, 255])),
                tensor(Values::I8(vec![-128, 127])),
                tensor(Values::U16(vec![65535])),
                tensor(Values::I64(vec![-1 << 40])),
                tensor(Values::F32(vec![1e6, 0.1])),
                tensor(Values::F32(vec![])),
            ] {
                let stored = store.put(&exact, true).unwrap();
                assert_eq!(store.get(&stored).unwrap(), exact);
                store.free(stored);
            }
            let floats = tensor(Values::F32(vec![0.1, -3.0]));
            let [half, whole] = [true, false].map(|half| store.put(&floats, half).unwrap());
            assert_eq!((half.bytes(), whole.bytes()), (4, 8));
            assert_eq!(store.get(&whole).unwrap(), floats);
            let back = store.get(&half).unwrap();
            let back = back.as_f32().unwrap();
            assert!((back[0] - 0.1).abs() < 1e-4 && back[1] == -3.0);
        }
    }

    #[test]
    fn a_file_uses_the_bytes_of_freed_values_again() {
        let store = Store::in_file(&std::env::temp_dir()).unwrap();
        let value = tensor(Values::U8(vec![3; 100]));
        for _ in 0..10 {
            let stored = store.put(&value, true).unwrap();
            assert_eq!(store.get(&stored).unwrap(), value);
            store.free(stored);
        }
        let Store::File(pages) = store else {
            panic!("the store is a file")
        };
        assert_eq!(pages.into_inner().unwrap().end, 100);
    }
}
