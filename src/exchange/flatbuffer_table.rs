//! ONNX Runtime's calibration table as FlatBuffers: a vector of tables with a name and a number, both
//! strings.
//!
//! A FlatBuffer is made of little-endian offsets. The first four bytes lead to the root table. A
//! table begins with the distance back to its vtable, which lists the places of its fields. Vectors
//! and strings begin with their length; offsets in them count from their own place.

use std::collections::BTreeMap;

use super::{RangeFile, RangeFileError, RangeFormat, symmetric};

/// Reads the table.
pub(super) fn read(bytes: &[u8]) -> Result<RangeFile, RangeFileError> {
    let buffer = TableBytes(bytes);
    let root = buffer.target(0).map_err(|_| RangeFileError::Unknown)?;
    let entries = buffer
        .field(root, 0)
        .map_err(|_| RangeFileError::Unknown)?
        .ok_or(RangeFileError::Unknown)?;
    let mut magnitudes = BTreeMap::new();
    for index in 0..buffer.number(entries)? {
        let place = entries
            .checked_add(4 + 4 * index)
            .ok_or(RangeFileError::Damaged(entries))?;
        let entry = buffer.target(place)?;
        let text = |field| match buffer.field(entry, field)? {
            Some(place) => buffer.text(place),
            None => Err(RangeFileError::Damaged(entry)),
        };
        let (name, number) = (text(0)?, text(1)?);
        let magnitude: f32 = number.parse().map_err(|_| RangeFileError::Entry {
            tensor: name.to_string(),
            why: format!("{number:?} is no number; write the table again"),
        })?;
        magnitudes.insert(name.to_string(), magnitude);
    }
    Ok(symmetric(RangeFormat::OnnxRuntimeFlatbuffers, magnitudes))
}

/// Bytes that are read with checked places.
struct TableBytes<'a>(&'a [u8]);

impl<'a> TableBytes<'a> {
    fn slice(&self, at: usize, length: usize) -> Result<&'a [u8], RangeFileError> {
        let end = at.checked_add(length);
        let found = end.and_then(|end| self.0.get(at..end));
        found.ok_or(RangeFileError::Damaged(at))
    }

    fn number(&self, at: usize) -> Result<usize, RangeFileError> {
        let bytes = self.slice(at, 4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    }

    fn short(&self, at: usize) -> Result<usize, RangeFileError> {
        let bytes = self.slice(at, 2)?;
        Ok(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    /// The place that the offset at `at` leads to.
    fn target(&self, at: usize) -> Result<usize, RangeFileError> {
        let target = at.checked_add(self.number(at)?);
        target.ok_or(RangeFileError::Damaged(at))
    }

    /// The target of a field of a table; `None` if the table lacks it.
    fn field(&self, table: usize, field: usize) -> Result<Option<usize>, RangeFileError> {
        let back = i64::from(self.number(table)? as u32 as i32);
        let vtable = usize::try_from(table as i64 - back);
        let vtable = vtable.map_err(|_| RangeFileError::Damaged(table))?;
        let entry = 4 + 2 * field;
        if entry + 2 > self.short(vtable)? {
            return Ok(None);
        }
        match self.short(vtable + entry)? {
            0 => Ok(None),
            within => self.target(table + within).map(Some),
        }
    }

    fn text(&self, at: usize) -> Result<&'a str, RangeFileError> {
        let bytes = self.slice(at + 4, self.number(at)?)?;
        std::str::from_utf8(bytes).map_err(|_| RangeFileError::Damaged(at))
    }
}

/// Writes the table: the root, the vector, the entries with a common vtable, then the strings.
pub(super) fn write(magnitudes: &BTreeMap<&str, f32>) -> Vec<u8> {
    const ENTRY: usize = 12;
    let vector = 20;
    let entry_vtable = vector + 4 + 4 * magnitudes.len();
    let entries = entry_vtable + 8;
    let strings = entries + ENTRY * magnitudes.len();
    let mut bytes = Vec::new();
    let mut numbers = |words: &[usize]| {
        for word in words {
            bytes.extend_from_slice(&(*word as u32).to_le_bytes());
        }
    };
    // Two lengths of a vtable share a word: its own and that of its table. Then the fields' places.
    let pair = |low: usize, high: usize| low | high << 16;
    numbers(&[12, pair(6, 8), pair(4, 0), 8, 4, magnitudes.len()]);
    for index in 0..magnitudes.len() {
        numbers(&[entries + ENTRY * index - (vector + 4 + 4 * index)]);
    }
    numbers(&[pair(8, 12), pair(4, 8)]);
    let mut texts = Vec::new();
    for (index, (name, magnitude)) in magnitudes.iter().enumerate() {
        let entry = entries + ENTRY * index;
        let name_at = strings + texts.len();
        add_text(&mut texts, name);
        let number_at = strings + texts.len();
        add_text(&mut texts, &format!("{magnitude:?}"));
        numbers(&[
            entry - entry_vtable,
            name_at - (entry + 4),
            number_at - (entry + 8),
        ]);
    }
    bytes.extend(texts);
    bytes
}

/// Adds a string: its length, its bytes, a zero, and zeros up to a multiple of four.
fn add_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}
