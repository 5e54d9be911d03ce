//! Detection of other file formats that users may mistake for a model, by their first bytes, with
//! advice.

/// A file format other than ONNX, and advice on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileFormat {
    pub name: &'static str,
    pub advice: &'static str,
}

const SAMPLE: &str = "it can be a sample: add it under Data on the page, or name it with --samples";
const EXPORT: &str = "export it to ONNX from the framework that wrote it";
const TORCH: &str = "export it with torch.onnx, from the code that defines the model";
const KERAS: &str = "convert it with tf2onnx";
const UNPACK: &str = "unpack it, and choose the .onnx file inside";

/// A format with these bytes at this offset.
struct Magic {
    offset: usize,
    bytes: &'static [u8],
    name: &'static str,
    advice: &'static str,
}

const fn magic(bytes: &'static [u8], name: &'static str, advice: &'static str) -> Magic {
    magic_at(0, bytes, name, advice)
}

const fn magic_at(
    offset: usize,
    bytes: &'static [u8],
    name: &'static str,
    advice: &'static str,
) -> Magic {
    Magic {
        offset,
        bytes,
        name,
        advice,
    }
}

/// The first match counts. No ONNX model begins like any of these.
const FORMATS: [Magic; 28] = [
    magic(b"\x89PNG", "a PNG picture", SAMPLE),
    magic(b"\xff\xd8\xff", "a JPEG picture", SAMPLE),
    magic(b"GIF8", "a GIF picture", SAMPLE),
    magic_at(8, b"WEBP", "a WebP picture", SAMPLE),
    magic_at(
        8,
        b"WAVE",
        "a WAV sound",
        "choose the .onnx file; as a sample save its values as .npy",
    ),
    magic(b"%PDF", "a PDF document", "choose the .onnx file"),
    magic(b"\x93NUMPY", "a NumPy array (.npy)", SAMPLE),
    magic(
        b"version https://git-lfs",
        "a Git LFS pointer",
        "fetch the file itself with `git lfs pull`, or download it",
    ),
    magic(b"\x1f\x8b", "a gzip archive", UNPACK),
    magic(b"BZh", "a bzip2 archive", UNPACK),
    magic(b"\xfd7zXZ", "an xz archive", UNPACK),
    magic(b"7z\xbc\xaf", "a 7z archive", UNPACK),
    magic(b"\x28\xb5\x2f\xfd", "a Zstandard archive", UNPACK),
    magic(b"Rar!", "a RAR archive", UNPACK),
    magic_at(257, b"ustar", "a tar archive", UNPACK),
    magic(
        b"\x80\x02",
        "a Python pickle (perhaps a PyTorch checkpoint)",
        TORCH,
    ),
    magic(
        b"\x80\x03",
        "a Python pickle (perhaps a PyTorch checkpoint)",
        TORCH,
    ),
    magic(
        b"\x80\x04",
        "a Python pickle (perhaps a PyTorch checkpoint)",
        TORCH,
    ),
    magic(
        b"\x80\x05",
        "a Python pickle (perhaps a PyTorch checkpoint)",
        TORCH,
    ),
    magic_at(
        4,
        b"TFL3",
        "a TensorFlow Lite model",
        "convert it with tf2onnx",
    ),
    magic_at(
        4,
        b"ORTM",
        "a model in ONNX Runtime's own format",
        "use the .onnx file it was made from",
    ),
    magic(b"\x89HDF", "an HDF5 file (perhaps a Keras model)", KERAS),
    magic(b"GGUF", "a GGUF model", EXPORT),
    magic(b"ggml", "a GGML model", EXPORT),
    magic(b"\x7fELF", "a program or library", "choose the .onnx file"),
    magic(b"MZ", "a program or library", "choose the .onnx file"),
    magic(
        b"ftrt",
        "a TensorRT engine",
        "use the .onnx file it was built from",
    ),
    magic(
        b"ptrt",
        "a TensorRT engine",
        "use the .onnx file it was built from",
    ),
];

/// Number of bytes that decide whether a file is text.
const TEXT_BYTES: usize = 1024;

/// Detects the format of a file that is not an ONNX model, by its first bytes.
pub(super) fn detect(bytes: &[u8]) -> Option<FileFormat> {
    let known = |name, advice| Some(FileFormat { name, advice });
    let at = |offset: usize, magic: &[u8]| {
        bytes
            .get(offset..)
            .is_some_and(|rest| rest.starts_with(magic))
    };
    if at(0, b"PK\x03\x04") {
        return Some(zip(bytes));
    }
    if let Some(format) = FORMATS.iter().find(|one| at(one.offset, one.bytes)) {
        return known(format.name, format.advice);
    }
    // The header's length precedes it, in eight bytes.
    if at(8, b"{\"") {
        return known("a safetensors file", EXPORT);
    }
    text(bytes)
}

/// Zip archives, by the name of their first file.
fn zip(bytes: &[u8]) -> FileFormat {
    let length = bytes
        .get(26..28)
        .map_or(0, |two| usize::from(u16::from_le_bytes([two[0], two[1]])));
    let inside = bytes.get(30..30 + length).unwrap_or_default();
    let (name, advice) = if inside.ends_with(b".npy") {
        ("an archive of NumPy arrays (.npz)", SAMPLE)
    } else if inside.ends_with(b"/data.pkl") || inside.ends_with(b"/byteorder") {
        ("a PyTorch checkpoint (.pt, .pth)", TORCH)
    } else if [&b"metadata.json"[..], b"config.json"].contains(&inside) {
        ("a Keras model", KERAS)
    } else {
        ("a zip archive", UNPACK)
    };
    FileFormat { name, advice }
}

/// Any text: the first bytes of a model always include some that no text has.
fn text(bytes: &[u8]) -> Option<FileFormat> {
    let known = |name, advice| Some(FileFormat { name, advice });
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let start = start.trim_ascii_start();
    if start.starts_with(b"<") {
        return known(
            "a web page (HTML or XML)",
            "download the model itself, not the page that shows it",
        );
    }
    if start.starts_with(b"{") {
        return known("a JSON text", "choose the .onnx file");
    }
    let first = &bytes[..bytes.len().min(TEXT_BYTES)];
    let printed = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    // The last character may be cut off.
    let letters = match std::str::from_utf8(first) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && first.len() == TEXT_BYTES,
    };
    match letters && first.iter().all(printed) {
        true => known("a text", "choose the .onnx file"),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a zip archive whose first file has this name.
    fn archive(inside: &str) -> Vec<u8> {
        let mut head = b"PK\x03\x04".to_vec();
        head.resize(26, 0);
        head.extend((inside.len() as u16).to_le_bytes());
        head.extend([0; 2]);
        head.extend(inside.as_bytes());
        head
    }

    #[test]
    fn other_formats_are_detected_with_advice() {
        let mut tar = vec![0; 257];
        tar.extend(b"ustar\x0000");
        let riff = |kind: &[u8]| [b"RIFF\x10\0\0\0", kind].concat();
        let cases: Vec<(Vec<u8>, &str, &str)> = vec![
            (
                b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(),
                "a PNG picture",
                "under Data",
            ),
            (
                b"\xff\xd8\xff\xe0\0\x10JFIF".to_vec(),
                "a JPEG picture",
                "--samples",
            ),
            (b"GIF89a".to_vec(), "a GIF picture", "--samples"),
            (riff(b"WEBPVP8 "), "a WebP picture", "under Data"),
            (riff(b"WAVEfmt "), "a WAV sound", ".npy"),
            (b"%PDF-1.7".to_vec(), "a PDF document", ".onnx"),
            (b"\x93NUMPY\x01\0".to_vec(), "a NumPy array", "--samples"),
            (archive("x.npy"), "NumPy arrays (.npz)", "--samples"),
            (archive("yolo/data.pkl"), "PyTorch checkpoint", "torch.onnx"),
            (archive("metadata.json"), "a Keras model", "tf2onnx"),
            (archive("model.onnx"), "a zip archive", "unpack"),
            (b"\x1f\x8b\x08".to_vec(), "a gzip archive", "unpack"),
            (b"BZh91AY".to_vec(), "a bzip2 archive", "unpack"),
            (tar, "a tar archive", "unpack"),
            (b"\x80\x02}q\0".to_vec(), "a Python pickle", "torch.onnx"),
            (b"\x1c\0\0\0TFL3\x14".to_vec(), "TensorFlow Lite", "tf2onnx"),
            (b"\x18\0\0\0ORTM".to_vec(), "ONNX Runtime's own", ".onnx"),
            (b"\x89HDF\r\n\x1a\n".to_vec(), "an HDF5 file", "tf2onnx"),
            (b"GGUF\x03\0\0\0".to_vec(), "a GGUF model", "export"),
            (
                b"\x60\0\0\0\0\0\0\0{\"w\":{}}".to_vec(),
                "a safetensors file",
                "export",
            ),
            (b"\n<!DOCTYPE html>".to_vec(), "a web page", "download"),
            (b"\xef\xbb\xbf<html>".to_vec(), "a web page", "download"),
            (
                b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n".to_vec(),
                "a Git LFS pointer",
                "git lfs pull",
            ),
            (b"{\"format\": 1}".to_vec(), "a JSON text", ".onnx"),
            ("naïve,1\ncafé,2\n".as_bytes().to_vec(), "a text", ".onnx"),
            ("é".repeat(600).into_bytes(), "a text", ".onnx"),
            (
                format!("a{}", "é".repeat(600)).into_bytes(),
                "a text",
                ".onnx",
            ),
        ];
        for (bytes, name, advice) in cases {
            let format = detect(&bytes).unwrap_or_else(|| panic!("{name} is not detected"));
            assert!(format.name.contains(name), "{name}: {format:?}");
            assert!(format.advice.contains(advice), "{name}: {format:?}");
        }
    }

    #[test]
    fn models_and_noise_are_not_detected_as_other_formats() {
        // Usually the version comes first. Protobuf also allows the tool's name, a graph or an
        // operator set.
        for bytes in [
            &b"\x08\x0a\x12\x07pytorch"[..],
            b"\x12\x07pytorch\x08\x0a",
            b":\x04\x12\x02ab",
        ] {
            assert_eq!(detect(bytes), None, "{bytes:?}");
        }
        assert_eq!(detect(&[0xff; 300]), None);
        assert_eq!(detect(b"B\x02\x10\x0d"), None);
    }
}
