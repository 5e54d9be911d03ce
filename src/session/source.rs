//! A model file and its checksum, which is computed while the file is read.

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// A complete file.
#[derive(Clone, Debug)]
pub struct ModelFile {
    /// Name of the file.
    pub name: String,
    /// Contents.
    pub bytes: Bytes,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// SHA-256 of a file that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub struct Checksum(Sha256);

impl Checksum {
    /// Starts with no bytes.
    pub fn new() -> Checksum {
        Checksum::default()
    }

    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        // In portions: a browser optimizes a function only after it was called a few times. One
        // call for all bytes took four times as long.
        for portion in bytes.chunks(1 << 16) {
            self.0.update(portion);
        }
    }

    /// The checksum in hexadecimal.
    pub fn finish(self) -> String {
        hexadecimal(&self.bytes())
    }

    /// The checksum as bytes.
    pub fn bytes(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// Formats bytes with two digits each.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ModelFile {
    /// Wraps a file that is in memory and computes its checksum.
    pub fn new(name: &str, bytes: Bytes) -> ModelFile {
        let mut checksum = Checksum::new();
        checksum.add(&bytes);
        ModelFile {
            name: name.to_string(),
            bytes,
            sha256: checksum.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_does_not_depend_on_the_pieces() {
        let bytes: Vec<u8> = (0..200_000u32).map(|at| at as u8).collect();
        let whole = ModelFile::new("a", bytes.clone().into()).sha256;
        let mut pieces = Checksum::new();
        for piece in bytes.chunks(77_777) {
            pieces.add(piece);
        }
        assert_eq!(pieces.finish(), whole);
        let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Checksum::new().finish(), of_nothing);
    }
}
