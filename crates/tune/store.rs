//! Values of the frontier at rest: integers as they are, floats as halves where that is allowed.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;

use octet_onnx::half::{narrow_half, widen_half};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{DataType, TensorProto};

use crate::TuneError;
use crate::value_file::ValueFile;

/// The largest magnitude that a half represents.
const LARGEST_HALF: f32 = 65504.0;

/// Place of the bytes of a value.
enum StoredPlace {
    Memory(Vec<u8>),
    File { at: u64, length: usize },
}

/// A value at rest. Threads encode and decode; only the thread of the run uses the store.
pub(crate) struct StoredValue {
    shape: Vec<usize>,
    element: DataType,
    /// The floats are stored as halves.
    half: bool,
    place: StoredPlace,
}

impl StoredValue {
    /// A value in memory. With `half`, floats become halves if none is too large for that.
    pub(crate) fn new(tensor: &Tensor, half: bool) -> StoredValue {
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
        StoredValue {
            shape: tensor.shape().to_vec(),
            element: tensor.element_type(),
            half: floats.is_some(),
            place: StoredPlace::Memory(bytes),
        }
    }

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

/// A value whose bytes are in memory.
pub(crate) struct LoadedValue<'a> {
    value: &'a StoredValue,
    bytes: Cow<'a, [u8]>,
}

impl LoadedValue<'_> {
    pub(crate) fn tensor(self) -> Result<Tensor, TuneError> {
        let StoredValue { shape, element, .. } = self.value;
        if self.value.half {
            let (halves, _) = self.bytes.as_chunks::<2>();
            let values = halves
                .iter()
                .map(|half| widen_half(u16::from_le_bytes(*half)));
            let values = Values::F32(values.collect());
            return Tensor::new(shape.clone(), values)
                .ok_or(TuneError::Broken("the shape of a stored value"));
        }
        let raw = self.bytes.into_owned().into();
        Ok(TensorProto::from_raw("", *element, shape, raw).to_tensor()?)
    }
}

/// The place of values: in memory, or in a file that is as large as the most bytes held at once.
pub(crate) enum Store {
    Memory,
    File(RefCell<Pages>),
}

/// A file, and its free stretches.
pub(crate) struct Pages {
    file: Box<dyn ValueFile>,
    end: u64,
    /// Start and length.
    free: Vec<(u64, usize)>,
}

impl Store {
    /// A store in an empty file.
    pub(crate) fn in_file(file: Box<dyn ValueFile>) -> Store {
        Store::File(RefCell::new(Pages {
            file,
            end: 0,
            free: Vec::new(),
        }))
    }

    /// Moves a value from memory to the place of this store.
    pub(crate) fn keep(&self, mut value: StoredValue) -> Result<StoredValue, TuneError> {
        if let (Store::File(pages), StoredPlace::Memory(bytes)) = (self, &value.place) {
            value.place = pages.borrow_mut().write(bytes)?;
        }
        Ok(value)
    }

    /// Reads a value back.
    pub(crate) fn load<'a>(&self, value: &'a StoredValue) -> Result<LoadedValue<'a>, TuneError> {
        let bytes = match (&value.place, self) {
            (StoredPlace::Memory(bytes), _) => Cow::Borrowed(bytes.as_slice()),
            (StoredPlace::File { at, length }, Store::File(pages)) => {
                let mut bytes = vec![0; *length];
                let read = pages.borrow_mut().file.read_at(*at, &mut bytes);
                read.map_err(failed)?;
                Cow::Owned(bytes)
            }
            (StoredPlace::File { .. }, Store::Memory) => {
                return Err(TuneError::Broken("a value's file"));
            }
        };
        Ok(LoadedValue { value, bytes })
    }

    /// Frees a value.
    pub(crate) fn free(&self, stored: StoredValue) {
        if let (StoredPlace::File { at, length }, Store::File(pages)) = (stored.place, self) {
            pages.borrow_mut().free.push((at, length));
        }
    }
}

impl Pages {
    fn write(&mut self, bytes: &[u8]) -> Result<StoredPlace, TuneError> {
        let length = bytes.len();
        // Values of one name have one length in most models, so a stretch of that length is free.
        let found = self.free.iter().position(|&(_, free)| free == length);
        let at = match found {
            Some(place) => self.free.swap_remove(place).0,
            None => {
                let at = self.end;
                self.end += length as u64;
                at
            }
        };
        self.file.write_at(at, bytes).map_err(failed)?;
        Ok(StoredPlace::File { at, length })
    }
}

/// The error of a file of values.
pub(crate) fn failed(error: io::Error) -> TuneError {
    TuneError::File {
        error: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: Values) -> Tensor {
        Tensor::new(vec![values.len()], values).unwrap()
    }

    fn in_file() -> Store {
        Store::in_file(crate::unnamed_file().unwrap())
    }

    fn put(store: &Store, tensor: &Tensor, half: bool) -> StoredValue {
        store.keep(StoredValue::new(tensor, half)).unwrap()
    }

    fn get(store: &Store, stored: &StoredValue) -> Tensor {
        store.load(stored).unwrap().tensor().unwrap()
    }

    #[test]
    fn integers_come_back_exactly_and_floats_as_halves() {
        for store in [Store::Memory, in_file()] {
            for exact in [
                tensor(Values::U8(vec![0, 7, 255])),
                tensor(Values::I8(vec![-128, 127])),
                tensor(Values::U16(vec![65535])),
                tensor(Values::I64(vec![-1 << 40])),
                tensor(Values::F32(vec![1e6, 0.1])),
                tensor(Values::F32(vec![])),
            ] {
                let stored = put(&store, &exact, true);
                assert_eq!(get(&store, &stored), exact);
                store.free(stored);
            }
            let floats = tensor(Values::F32(vec![0.1, -3.0]));
            let [half, whole] = [true, false].map(|half| put(&store, &floats, half));
            assert_eq!((half.bytes(), whole.bytes()), (4, 8));
            assert_eq!(get(&store, &whole), floats);
            let back = get(&store, &half);
            let back = back.as_f32().unwrap();
            assert!((back[0] - 0.1).abs() < 1e-4 && back[1] == -3.0);
        }
    }

    #[test]
    fn a_file_uses_the_bytes_of_freed_values_again() {
        let store = in_file();
        let value = tensor(Values::U8(vec![3; 100]));
        for _ in 0..10 {
            let stored = put(&store, &value, true);
            assert_eq!(get(&store, &stored), value);
            store.free(stored);
        }
        let Store::File(pages) = store else {
            panic!("the store is a file")
        };
        assert_eq!(pages.into_inner().end, 100);
    }
}
