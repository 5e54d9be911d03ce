//! The journal of a run that learns constants: one record for each part that has learned.
//!
//! A run that was stopped reads it and continues after its last record, with the same result. The
//! journal begins with a key: the checksum of model, ranges, settings, samples and version. A record
//! is added whole or not at all; one that was cut short is dropped.

use prost::Message;

use super::source::Checksum;
use crate::onnx::schema::TensorProto;
use crate::tune::LearnedPart;

const MAGIC: &[u8] = b"octet learned parts 1\n";
/// Bytes of a record's checksum.
const CHECKED: usize = 8;

/// Checksum of everything that the learned constants depend on.
pub(super) type JournalKey = [u8; 32];

/// The beginning of a journal.
pub(super) fn header(key: &JournalKey) -> Vec<u8> {
    [MAGIC, key].concat()
}

/// True if a file begins as a journal does.
pub(super) fn is_journal(file: &[u8]) -> bool {
    file.starts_with(MAGIC)
}

fn checksum(body: &[u8]) -> [u8; CHECKED] {
    let mut checksum = Checksum::new();
    checksum.add(body);
    let mut short = [0; CHECKED];
    short.copy_from_slice(&checksum.bytes()[..CHECKED]);
    short
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

/// Splits off the bytes that [`put`] wrote.
fn take<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = from.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (taken, rest) = rest.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

/// The record of a part.
pub(super) fn record(part: &LearnedPart) -> Vec<u8> {
    let mut body = Vec::new();
    // A report has a form in JSON always.
    put(
        &mut body,
        &serde_json::to_vec(&part.report).unwrap_or_default(),
    );
    for constant in &part.constants {
        put(&mut body, &constant.encode_to_vec());
    }
    let mut out = Vec::with_capacity(body.len() + 16);
    put(&mut out, &body);
    out.extend(checksum(&body));
    out
}

fn part(mut body: &[u8]) -> Option<LearnedPart> {
    let report = serde_json::from_slice(take(&mut body)?).ok()?;
    let mut constants = Vec::new();
    while !body.is_empty() {
        constants.push(TensorProto::decode(take(&mut body)?).ok()?);
    }
    Some(LearnedPart { report, constants })
}

/// The parts of a journal with this key, and its bytes up to the last whole record. A journal with
/// another key has none.
pub(super) fn parts(file: &[u8], key: &JournalKey) -> (Vec<LearnedPart>, usize) {
    let Some(mut rest) = file.strip_prefix(header(key).as_slice()) else {
        return (Vec::new(), 0);
    };
    let mut parts = Vec::new();
    let mut whole = rest;
    while let Some(body) = take(&mut rest) {
        let Some((sum, behind)) = rest.split_first_chunk() else {
            break;
        };
        let Some(read) = part(body).filter(|_| checksum(body) == *sum) else {
            break;
        };
        parts.push(read);
        rest = behind;
        whole = rest;
    }
    (parts, file.len() - whole.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{LayerReport, TunedPart};

    fn learned(name: &str) -> LearnedPart {
        let report = LayerReport {
            part: TunedPart::Layer,
            layer: name.into(),
            operator: "Conv".into(),
            taken: "learned".into(),
            before: 0.1,
            after: 1.0 / 3.0,
            curve: vec![2e-300, 0.5],
        };
        let constants = vec![
            TensorProto::from_f32("w", &[2], &[1.5, -0.25]),
            TensorProto::from_i8("z", &[], &[-3]),
        ];
        LearnedPart { report, constants }
    }

    #[test]
    fn a_journal_gives_back_its_whole_records() {
        let key = [7; 32];
        let mut file = header(&key);
        let mut ends = vec![file.len()];
        for name in ["a", "b"] {
            file.extend(record(&learned(name)));
            ends.push(file.len());
        }
        for length in 0..=file.len() {
            let (read, whole) = parts(&file[..length], &key);
            let expected = ends.iter().filter(|&&end| end <= length).count();
            assert_eq!(read.len(), expected.saturating_sub(1), "{length}");
            let end = ends.iter().rev().find(|&&end| end <= length);
            assert_eq!(whole, end.copied().unwrap_or(0), "{length}");
        }
        let (read, _) = parts(&file, &key);
        for (part, name) in read.iter().zip(["a", "b"]) {
            let wanted = learned(name);
            assert_eq!(part.constants, wanted.constants);
            assert_eq!(part.report.layer, name);
            assert_eq!(part.report.after.to_bits(), wanted.report.after.to_bits());
            assert_eq!(part.report.curve, wanted.report.curve);
        }
    }

    #[test]
    fn another_key_or_a_changed_byte_gives_no_part() {
        let mut file = header(&[7; 32]);
        file.extend(record(&learned("a")));
        assert_eq!(parts(&file, &[8; 32]).0.len(), 0);
        let begin = header(&[7; 32]).len();
        for at in begin..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 1;
            assert_eq!(parts(&changed, &[7; 32]).0.len(), 0, "{at}");
        }
    }
}
