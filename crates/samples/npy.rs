//! numpy's `.npy` files, versions 1 to 3: both byte orders, C and Fortran order; booleans,
//! integers, and floats of 2, 4 and 8 bytes. Values are returned in row-major order.

use super::npy_values::{ArrayLayout, little_endian_rows, values};
use super::{Array, LARGEST_ARRAY, SampleProblem};
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::DataType;

const CUT: &str = "copy or save it again";

/// Header of the file.
struct Header {
    descr: String,
    layout: ArrayLayout,
    /// Offset of the values in the file.
    start: usize,
}

/// Shape and type of an array, read from the beginning of its file.
pub(super) struct HeaderInfo {
    pub(super) shape: Vec<usize>,
    /// Array of the same element type without values.
    pub(super) empty: Array,
}

/// Reads the header; `size` is that of the whole file.
pub(super) fn read_header(
    file: &str,
    beginning: &[u8],
    size: u64,
) -> Result<HeaderInfo, SampleProblem> {
    let (header, stored) = announced(file, beginning, size)?;
    let tensor = values(stored, &[]).and_then(|values| Tensor::new(vec![0], values));
    let empty = tensor.map(|tensor| array(file, stored, tensor));
    Ok(HeaderInfo {
        shape: header.layout.shape,
        empty: empty
            .ok_or_else(|| SampleProblem::broken(file, "its element type is not supported", CUT))?,
    })
}

/// Reads a `.npy` file.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Array, SampleProblem> {
    let (header, stored) = announced(file, bytes, bytes.len() as u64)?;
    let data = bytes.get(header.start..).unwrap_or_default();
    let little = little_endian_rows(data, byte_size(stored), &header.layout);
    values(stored, &little)
        .and_then(|values| Tensor::new(header.layout.shape, values))
        .map(|tensor| array(file, stored, tensor))
        .ok_or_else(|| SampleProblem::broken(file, "its shape and values disagree", CUT))
}

fn array(file: &str, stored: DataType, tensor: Tensor) -> Array {
    Array {
        name: file.into(),
        named: false,
        position: None,
        stored,
        tensor,
    }
}

/// Reads the header and the element type. The file's size must match.
fn announced(file: &str, beginning: &[u8], size: u64) -> Result<(Header, DataType), SampleProblem> {
    let header = header(file, beginning)?;
    let stored = element(&header.descr).ok_or_else(|| {
        let why = format!("its element type {:?} is not supported", header.descr);
        SampleProblem::broken(file, why, "save it as float32, an integer type or bool")
    })?;
    let count = header
        .layout
        .shape
        .iter()
        .try_fold(1u64, |n, &d| n.checked_mul(d as u64));
    let expected = count
        .and_then(|n| n.checked_mul(byte_size(stored) as u64))
        .unwrap_or(u64::MAX);
    if expected > LARGEST_ARRAY {
        return Err(SampleProblem::TooLarge {
            array: file.into(),
            bytes: expected,
            limit: LARGEST_ARRAY,
        });
    }
    let follow = size.saturating_sub(header.start as u64);
    if follow != expected {
        let why = format!("its header states {expected} bytes of values, but {follow} follow");
        return Err(SampleProblem::broken(file, why, CUT));
    }
    Ok((header, stored))
}

fn header(file: &str, bytes: &[u8]) -> Result<Header, SampleProblem> {
    let broken = |why: &str| SampleProblem::broken(file, why, CUT);
    let magic = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(|| {
        SampleProblem::broken(file, "it is not a .npy file", "save it with numpy.save")
    })?;
    let (length, text) = match *magic {
        [1, _, a, b, ref rest @ ..] => (usize::from(u16::from_le_bytes([a, b])), rest),
        [2 | 3, _, a, b, c, d, ref rest @ ..] => (u32::from_le_bytes([a, b, c, d]) as usize, rest),
        [] | [1..=3, ..] => return Err(broken("it ends inside its header")),
        [version, ..] => return Err(broken(&format!("its version {version} is not supported"))),
    };
    let start = bytes.len() - text.len() + length;
    let text = text
        .get(..length)
        .ok_or_else(|| broken("it ends inside its header"))?;
    let text = String::from_utf8_lossy(text);
    let parsed = || {
        let descr = after(&text, "descr")?;
        let fortran = after(&text, "fortran_order")?;
        let shape = after(&text, "shape")?.strip_prefix('(')?.split_once(')')?.0;
        let descr = match descr.strip_prefix(['\'', '"']) {
            Some(quoted) => quoted.split(['\'', '"']).next()?.to_string(),
            // A structured type is a list.
            None => descr.split(']').next()?.to_string(),
        };
        let shape = shape.split(',').map(str::trim).filter(|d| !d.is_empty());
        let shape = shape
            .map(|d| d.trim_end_matches('L').parse().ok())
            .collect::<Option<Vec<_>>>()?;
        let fortran = if fortran.starts_with("True") {
            true
        } else {
            fortran.starts_with("False").then_some(false)?
        };
        let layout = ArrayLayout {
            big_endian: descr.starts_with('>'),
            fortran,
            shape,
        };
        Some(Header {
            descr,
            layout,
            start,
        })
    };
    parsed().ok_or_else(|| broken("its header is invalid"))
}

/// Text after a key in the header's dictionary.
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let at = text
        .find(&format!("'{key}'"))
        .or_else(|| text.find(&format!("\"{key}\"")))?;
    Some(
        text[at + key.len() + 2..]
            .trim_start()
            .strip_prefix(':')?
            .trim_start(),
    )
}

/// Bytes of an element, at least one.
fn byte_size(element: DataType) -> usize {
    element.bits().unwrap_or(8) / 8
}

/// Element type of an array; `None` for unsupported types.
fn element(descr: &str) -> Option<DataType> {
    Some(match descr.trim_start_matches(['<', '>', '|', '=']) {
        "b1" | "?" => DataType::Bool,
        "i1" => DataType::Int8,
        "i2" => DataType::Int16,
        "i4" => DataType::Int32,
        "i8" => DataType::Int64,
        "u1" => DataType::Uint8,
        "u2" => DataType::Uint16,
        "u4" => DataType::Uint32,
        "u8" => DataType::Uint64,
        "f2" => DataType::Float16,
        "f4" => DataType::Float,
        "f8" => DataType::Double,
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use octet_onnx::half::widen_half;
    use octet_onnx::in_memory::Values;

    /// Writes a `.npy` file as numpy does.
    pub(crate) fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let order = if fortran { "True" } else { "False" };
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
        while (10 + text.len() + 1) % 64 != 0 {
            text.push(' ');
        }
        text.push('\n');
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((text.len() as u16).to_le_bytes());
        out.extend(text.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn every_element_type_is_read_in_both_byte_orders() {
        let cases: Vec<(&str, Vec<u8>, Values)> = vec![
            ("f4", 1.5f32.to_le_bytes().into(), Values::F32(vec![1.5])),
            (
                "f8",
                (-2.5f64).to_le_bytes().into(),
                Values::F64(vec![-2.5]),
            ),
            (
                "f2",
                0xc100u16.to_le_bytes().into(),
                Values::F32(vec![-2.5]),
            ),
            ("i1", vec![0xff], Values::I8(vec![-1])),
            (
                "i2",
                (-300i16).to_le_bytes().into(),
                Values::I16(vec![-300]),
            ),
            (
                "i4",
                (-70000i32).to_le_bytes().into(),
                Values::I32(vec![-70000]),
            ),
            (
                "i8",
                (-5_000_000_000i64).to_le_bytes().into(),
                Values::I64(vec![-5_000_000_000]),
            ),
            ("u1", vec![200], Values::U8(vec![200])),
            (
                "u2",
                60000u16.to_le_bytes().into(),
                Values::U16(vec![60000]),
            ),
            (
                "u4",
                4_000_000_000u32.to_le_bytes().into(),
                Values::U32(vec![4_000_000_000]),
            ),
            (
                "u8",
                u64::MAX.to_le_bytes().into(),
                Values::U64(vec![u64::MAX]),
            ),
            ("b1", vec![1], Values::Bool(vec![true])),
        ];
        for (descr, little, expected) in cases {
            let mut big = little.clone();
            big.reverse();
            for (order, data) in [('<', &little), ('>', &big)] {
                let bytes = file(&format!("{order}{descr}"), false, "(1,)", data);
                assert_eq!(
                    read("x.npy", &bytes).unwrap().tensor.values(),
                    &expected,
                    "{order}{descr}"
                );
            }
        }
    }

    #[test]
    fn fortran_order_becomes_row_major() {
        // numpy.asfortranarray(numpy.arange(24).reshape(2, 3, 4)) as uint8.
        let stored: Vec<u8> = (0..4)
            .flat_map(|k| (0..3).flat_map(move |j| (0..2).map(move |i| 12 * i + 4 * j + k)))
            .collect();
        let array = read("x.npy", &file("|u1", true, "(2, 3, 4)", &stored)).unwrap();
        assert_eq!(array.tensor.values(), &Values::U8((0..24).collect()));
        assert_eq!(array.tensor.shape(), [2, 3, 4]);
    }

    #[test]
    fn versions_2_and_3_scalars_and_empty_arrays_are_read() {
        let one = file("<f4", false, "()", &7f32.to_le_bytes());
        assert_eq!(
            read("x.npy", &one).unwrap().tensor.as_f32(),
            Some(&[7f32][..])
        );
        assert_eq!(
            read("x.npy", &file("<i8", false, "(2, 0)", &[]))
                .unwrap()
                .tensor
                .shape(),
            [2, 0]
        );
        for version in [2, 3] {
            let mut longer = b"\x93NUMPY".to_vec();
            longer.extend([version, 0]);
            longer.extend(u32::from(u16::from_le_bytes([one[8], one[9]])).to_le_bytes());
            longer.extend(&one[10..]);
            assert_eq!(
                read("x.npy", &longer).unwrap().tensor.as_f32(),
                Some(&[7f32][..])
            );
        }
    }

    #[test]
    fn half_precision_values_are_exact() {
        for (half, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x7bff, 65504.0),
            (0xfbff, -65504.0),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(widen_half(half), value, "{half:04x}");
        }
        assert!(widen_half(0x7e00).is_nan());
        assert_eq!(widen_half(0x8000).to_bits(), (-0.0f32).to_bits());
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let good = file("<f4", false, "(2, 2)", &[0; 16]);
        for end in 0..good.len() {
            assert!(read("x.npy", &good[..end]).is_err(), "cut at {end}");
        }
        for (bytes, word) in [
            (file("|O", false, "(1,)", &[0; 8]), "|O"),
            (file("<U5", false, "(1,)", &[0; 20]), "<U5"),
            (
                file("<f4", false, "(1000000, 1000000, 1000000, 1000000)", &[]),
                "bytes",
            ),
            (file("<f4", false, "(-1,)", &[]), "header"),
            (b"<!DOCTYPE html>".to_vec(), "not a .npy"),
        ] {
            let message = read("x.npy", &bytes).unwrap_err().to_string();
            assert!(
                message.contains(word) && message.contains("x.npy"),
                "{message}"
            );
        }
    }
}
