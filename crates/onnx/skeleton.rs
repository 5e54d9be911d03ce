//! The skeleton of a model file: everything but the bytes of its large tensors.
//!
//! A file of any size is read through a window. The data of a large tensor is skipped, and the
//! tensor becomes an external one whose location is the model's own file. So the skeleton is a valid
//! model, and a model of gigabytes takes kilobytes.

use super::file_format;
use super::read::{ReadError, decoded};
use super::scan::{FieldKind, LIMITS, ScanError};
use super::schema::ModelProto;

/// Tensors with at least this many bytes are left in the file.
pub const LARGE: u64 = 64 << 10;

/// The greatest number of bytes that one call of [`SkeletonReader::feed`] takes.
pub const WINDOW: usize = 1 << 20;

/// The greatest size of a skeleton.
const MAX_SKELETON: u64 = 512 << 20;

/// Reads the skeleton of a file. It does no input itself: the caller reads the bytes that
/// [`SkeletonReader::next`] asks for, and passes them to [`SkeletonReader::feed`].
pub struct SkeletonReader {
    /// Name of the file, for the locations of the tensors in it.
    file: String,
    /// Size of the file.
    length: u64,
    /// Offset of the next byte to parse.
    position: u64,
    /// Bytes of the file; the first `parsed` of them lie before `position`.
    window: Vec<u8>,
    parsed: usize,
    /// The messages around `position`, the outermost first.
    frames: Vec<Frame>,
    /// Bytes of the current field that are yet to be copied.
    uncopied: u64,
    messages: usize,
    /// Bytes of the skeleton so far.
    copied: u64,
    skeleton: Option<Vec<u8>>,
}

/// A message that is being read.
struct Frame {
    kind: FieldKind,
    /// Key of the field in the message around it.
    key: u64,
    /// Offset of its end in the file.
    end: u64,
    /// Its contents in the skeleton.
    contents: Vec<u8>,
    /// Offset and length of a tensor's skipped data.
    skipped: Option<(u64, u64)>,
}

impl SkeletonReader {
    /// Starts to read a file of this name and size.
    pub fn new(file: &str, length: u64) -> SkeletonReader {
        let model = Frame {
            kind: FieldKind::Model,
            key: 0,
            end: length,
            contents: Vec::new(),
            skipped: None,
        };
        SkeletonReader {
            file: file.to_owned(),
            length,
            position: 0,
            window: Vec::new(),
            parsed: 0,
            frames: vec![model],
            uncopied: 0,
            messages: 0,
            copied: 0,
            skeleton: None,
        }
    }

    /// Offset and number of the bytes that [`Self::feed`] needs next; `None` at the end.
    pub fn next(&self) -> Option<(u64, usize)> {
        if self.skeleton.is_some() {
            return None;
        }
        let offset = self.position + self.unparsed().len() as u64;
        let length = (self.length - offset).min(WINDOW as u64) as usize;
        (length > 0).then_some((offset, length))
    }

    /// Parses the bytes that [`Self::next`] asked for.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        if self.position == 0
            && self.unparsed().is_empty()
            && let Some(format) = file_format::detect(bytes)
        {
            return Err(ReadError::OtherFormat {
                format: format.name,
                advice: format.advice,
            });
        }
        self.window.drain(..self.parsed);
        self.parsed = 0;
        self.window.extend_from_slice(bytes);
        while self.step()? {}
        Ok(())
    }

    /// The model. All bytes must have been fed.
    pub fn finish(mut self) -> Result<ModelProto, ReadError> {
        if self.length == 0 {
            return Err(ReadError::Empty);
        }
        while self.step()? {}
        match self.skeleton {
            Some(skeleton) => decoded(skeleton.into()),
            None => Err(ReadError::Scan(ScanError::Truncated {
                missing: 1,
                bytes: self.position + self.unparsed().len() as u64,
            })),
        }
    }

    /// Parses one field, or a part of one. False if more bytes are needed, or at the end.
    fn step(&mut self) -> Result<bool, ReadError> {
        if self.uncopied > 0 {
            return self.copy();
        }
        let Some(frame) = self.frames.last() else {
            return Ok(false);
        };
        let (kind, end) = (frame.kind, frame.end);
        if self.position == end {
            self.close();
            return Ok(true);
        }
        let field = self.position;
        let mut at = 0;
        let Some(key) = self.varint(&mut at, end)? else {
            return Ok(false);
        };
        if key >> 3 == 0 {
            return Err(ScanError::Malformed { at: field }.into());
        }
        let length = match key & 7 {
            0 => {
                let Some(_) = self.varint(&mut at, end)? else {
                    return Ok(false);
                };
                self.uncopied = at as u64;
                return Ok(true);
            }
            1 => 8,
            2 => match self.varint(&mut at, end)? {
                Some(length) => length,
                None => return Ok(false),
            },
            5 => 4,
            _ => return Err(ScanError::Malformed { at: field }.into()),
        };
        let start = field + at as u64;
        let over = length.saturating_sub(end - start);
        if over > 0 {
            return Err(self.too_long(kind, over, field).into());
        }
        let inner = match key & 7 {
            2 => kind.field(key >> 3),
            _ => FieldKind::Bytes,
        };
        if inner != FieldKind::Bytes {
            self.messages += 1;
            if self.messages > LIMITS.messages {
                let limit = LIMITS.messages;
                return Err(ScanError::TooMany { limit }.into());
            }
        }
        // Packed float_data and double_data have the bytes of raw_data.
        let holds_data = kind == FieldKind::Tensor && matches!(key >> 3, 4 | 9 | 10);
        if holds_data && key & 7 == 2 && length >= LARGE {
            self.skip(start, length, field)?;
        } else if matches!(inner, FieldKind::Bytes | FieldKind::Text) {
            self.uncopied = at as u64 + length;
        } else {
            self.open(inner, key, start + length)?;
            self.advance(at as u64);
        }
        Ok(true)
    }

    fn unparsed(&self) -> &[u8] {
        &self.window[self.parsed..]
    }

    /// Copies bytes of the current field; false if more are needed.
    fn copy(&mut self) -> Result<bool, ReadError> {
        let count = self.uncopied.min(self.unparsed().len() as u64) as usize;
        self.copied += count as u64;
        if self.copied > MAX_SKELETON {
            return Err(ReadError::Skeleton {
                limit: MAX_SKELETON,
            });
        }
        if let Some(frame) = self.frames.last_mut() {
            let bytes = &self.window[self.parsed..][..count];
            frame.contents.extend_from_slice(bytes);
        }
        self.advance(count as u64);
        self.uncopied -= count as u64;
        Ok(self.uncopied == 0)
    }

    /// Moves the position forward.
    fn advance(&mut self, count: u64) {
        self.position += count;
        let left = self.unparsed().len();
        self.parsed += usize::try_from(count).map_or(left, |count| count.min(left));
    }

    /// Begins a message inside the current one.
    fn open(&mut self, kind: FieldKind, key: u64, end: u64) -> Result<(), ScanError> {
        if self.frames.len() > LIMITS.depth {
            return Err(ScanError::TooDeep {
                at: self.position,
                limit: LIMITS.depth,
            });
        }
        self.frames.push(Frame {
            kind,
            key,
            end,
            contents: Vec::new(),
            skipped: None,
        });
        Ok(())
    }

    /// Ends the current message and writes it into the one around it.
    fn close(&mut self) {
        let Some(mut frame) = self.frames.pop() else {
            return;
        };
        if let Some((offset, length)) = frame.skipped {
            for (key, value) in [
                ("location", self.file.clone()),
                ("offset", offset.to_string()),
                ("length", length.to_string()),
            ] {
                let mut entry = Vec::new();
                put_field(&mut entry, 1 << 3 | 2, key.as_bytes());
                put_field(&mut entry, 2 << 3 | 2, value.as_bytes());
                put_field(&mut frame.contents, 13 << 3 | 2, &entry);
            }
            // data_location = EXTERNAL.
            frame.contents.extend([14 << 3, 1]);
        }
        match self.frames.last_mut() {
            Some(outer) => put_field(&mut outer.contents, frame.key, &frame.contents),
            None => self.skeleton = Some(frame.contents),
        }
    }

    /// Leaves the data of a tensor in the file.
    fn skip(&mut self, start: u64, length: u64, field: u64) -> Result<(), ScanError> {
        let malformed = ScanError::Malformed { at: field };
        let frame = self.frames.last_mut().ok_or(malformed.clone())?;
        // The data of a tensor is in one place.
        if frame.skipped.replace((start, length)).is_some() {
            return Err(malformed);
        }
        self.advance(start + length - self.position);
        Ok(())
    }

    /// The error for a field that is longer than the message around it.
    fn too_long(&self, kind: FieldKind, over: u64, field: u64) -> ScanError {
        let outermost = kind == FieldKind::Model && self.frames.len() == 1;
        match outermost && over < 1 << 40 {
            true => ScanError::Truncated {
                missing: over,
                bytes: self.length,
            },
            false => ScanError::Malformed { at: field },
        }
    }

    /// Reads a number at `at` in the window; `None` if the window ends inside of it.
    fn varint(&self, at: &mut usize, end: u64) -> Result<Option<u64>, ScanError> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let here = self.position + *at as u64;
            if here >= end {
                return Err(match end == self.length {
                    true => ScanError::Truncated {
                        missing: 1,
                        bytes: end,
                    },
                    false => ScanError::Malformed { at: self.position },
                });
            }
            let Some(&byte) = self.unparsed().get(*at) else {
                return Ok(None);
            };
            *at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(Some(value));
            }
        }
        Err(ScanError::Malformed { at: self.position })
    }
}

/// Appends a field of a message: key, length, contents.
fn put_field(to: &mut Vec<u8>, key: u64, contents: &[u8]) {
    for mut number in [key, contents.len() as u64] {
        while number >= 0x80 {
            to.push(number as u8 | 0x80);
            number >>= 7;
        }
        to.push(number as u8);
    }
    to.extend_from_slice(contents);
}
