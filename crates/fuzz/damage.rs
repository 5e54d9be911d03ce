//! Damage to the bytes of a file, and to a model with knowledge of its grammar.

use bytes::Bytes;
use octet_test_models::RandomChoice;
use octet_test_models::hostile_models::damaged;

/// Numbers at the ends of integer types, and lengths that a file can't have.
const NUMBERS: [u64; 10] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Applies one to four changes to bytes.
pub fn damaged_bytes(mut file: Vec<u8>, random: &mut RandomChoice) -> Vec<u8> {
    for _ in 0..1 + random.below(4) {
        if file.is_empty() {
            return vec![random.below(256) as u8];
        }
        let at = random.below(file.len());
        match random.below(7) {
            0 => file[at] ^= 1 << random.below(8),
            1 => file[at] = random.below(256) as u8,
            2 => file.truncate(at),
            3 => drop(file.drain(at..(at + 1 + random.below(16)).min(file.len()))),
            4 => {
                let from = random.below(file.len());
                let piece = file[from..(from + 1 + random.below(32)).min(file.len())].to_vec();
                file.splice(at..at, piece);
            }
            5 => {
                let bytes = random.one(&NUMBERS).to_le_bytes();
                let width = 1 << random.below(4);
                let end = (at + width).min(file.len());
                file[at..end].copy_from_slice(&bytes[..end - at]);
            }
            _ => {
                let digits = random.one(&NUMBERS).to_string();
                file.splice(at..at, digits.into_bytes());
            }
        }
    }
    file
}

/// Damages a model: attributes, wiring, types, shapes and constants. Bytes that are no model are
/// damaged as bytes.
pub fn damaged_model(file: &[u8], random: &mut RandomChoice) -> Vec<u8> {
    let model = octet_onnx::read(Bytes::copy_from_slice(file)).ok();
    let model = model.filter(|model| model.graph.is_some() && !model.opset_import.is_empty());
    match model {
        Some(model) if random.below(8) > 0 => damaged(model, random).0,
        _ => damaged_bytes(file.to_vec(), random),
    }
}
