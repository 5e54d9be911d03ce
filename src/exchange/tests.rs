//! Files of ranges: read, written and damaged ones.

use super::*;
use crate::quantize::ElementType;

fn ranges() -> ValueRanges {
    BTreeMap::from([
        ("input".into(), Range::new(-1.0, 2.5)),
        ("/layer/Relu_output_0".into(), Range::new(0.0, 6.0)),
        ("symmetric".into(), Range::new(-0.3, 0.3)),
    ])
}

fn encodings() -> Vec<Encoding> {
    let one = |tensor: &str, is_constant, bits, is_signed, scales: &[f32], zero_points: &[i64]| {
        Encoding {
            tensor: tensor.into(),
            is_constant,
            bits,
            is_signed,
            block: None,
            scales: scales.to_vec(),
            zero_points: zero_points.to_vec(),
        }
    };
    vec![
        one("input", false, 8, false, &[0.5], &[3]),
        one("wide", false, 16, false, &[0.001], &[32768]),
        one("bias", true, 32, true, &[0.01], &[0]),
        one("weight", true, 8, true, &[0.25], &[0]),
        one("weights", true, 4, true, &[0.25, 0.5], &[0, 0]),
    ]
}

/// The ranges of the activations.
fn ranges_of(encodings: &[Encoding]) -> ValueRanges {
    let activations = encodings.iter().filter(|one| !one.is_constant);
    let range = |one: &Encoding| {
        let [min, max] = *one.ends().first()?;
        Some((one.tensor.clone(), Range::new(min as f32, max as f32)))
    };
    activations.filter_map(range).collect()
}

fn written(format: RangeFormat) -> WrittenRanges {
    write(format, &ranges(), &encodings()).unwrap()
}

#[test]
fn formats_with_both_ends_return_what_was_written() {
    for format in [RangeFormat::Octet, RangeFormat::OnnxRuntime] {
        let file = read(&written(format).bytes).unwrap();
        assert_eq!(file.format, format);
        assert_eq!(file.ranges, ranges());
        assert!(file.notes.is_empty());
    }
}

#[test]
fn formats_with_one_number_return_symmetric_ranges_and_say_so() {
    for format in [
        RangeFormat::OnnxRuntimeFlatbuffers,
        RangeFormat::OnnxRuntimeText,
        RangeFormat::TensorRt,
    ] {
        let written = written(format);
        assert!(written.notes[0].contains("2 of 3 ranges are not symmetric"));
        let file = read(&written.bytes).unwrap();
        assert_eq!(file.format, format);
        for (name, range) in &ranges() {
            let expected = range.max.max(-range.min);
            let found = file.ranges[name];
            assert_eq!(found.min, -found.max);
            // TensorRT's scale is rounded, a 127th of the magnitude.
            assert!((found.max / expected - 1.0).abs() < 1e-6, "{name}");
        }
        assert!(file.notes[0].contains("no minimum"));
    }
}

#[test]
fn tensorrts_lines_hold_the_bits_of_the_scale() {
    let file = read(b"TRT-8601-EntropyCalibration2\na: b: 3c010a14\n\n").unwrap();
    assert_eq!(file.ranges["a: b"].max, f32::from_bits(0x3c01_0a14) * 127.0);
    let error = read(b"TRT-8601-EntropyCalibration2\na: 3c010a14\nb 12\n").unwrap_err();
    assert!(error.to_string().starts_with("line 3 "), "{error}");
}

#[test]
fn encodings_return_ranges_types_and_what_is_missing() {
    for format in [RangeFormat::Aimet, RangeFormat::Aimet061] {
        let file = read(&written(format).bytes).unwrap();
        assert_eq!(file.format, format);
        assert_eq!(file.ranges, ranges_of(&encodings()));
        assert_eq!(file.ranges["input"], Range::new(-1.5, 126.0));
        let tensors = &file.tensors;
        assert_eq!(tensors["wide"].element, Some(ElementType::U16));
        assert_eq!(tensors["weight"].scale, Some(0.25));
        assert_eq!(tensors["weight"].zero_point, Some(0));
        assert_eq!(tensors["weights"].element, Some(ElementType::I4));
        assert_eq!(tensors["weights"].scale, None);
        assert!(!tensors.contains_key("bias") && !tensors.contains_key("input"));
        assert!(
            file.notes[0].starts_with("`weights` has a scale for each channel"),
            "{:?}",
            file.notes
        );
    }
}

#[test]
fn float_encodings_keep_tensors_float() {
    let text = br#"{ "version": "0.6.1", "activation_encodings": { "x": [{ "bitwidth": 16, "dtype": "float" }] },
        "param_encodings": {} }"#;
    assert_eq!(read(text).unwrap().tensors["x"].float, Some(true));
}

#[test]
fn files_that_are_no_ranges_are_refused_with_the_reason() {
    let cases: [(&[u8], &str); 9] = [
        (b"", "this is no file of ranges"),
        (b"hello", "this is no file of ranges"),
        (b"\x00\x01\x02", "this is no file of ranges"),
        (b"{", "no valid JSON"),
        (b"{}", "holds no range"),
        (br#"{ "a": 1 }"#, "give [min, max]"),
        (br#"{ "a": [2, 1] }"#, "not a range"),
        (
            br#"{ "CLS": "TensorsData", "data": { "a": { "lowest": 1 } } }"#,
            "`highest` is missing",
        ),
        (
            br#"{ "version": "2.0.0", "encodings": [] }"#,
            "Octet reads 0.6.1 and 1.0.0",
        ),
    ];
    for (bytes, words) in cases {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn channels_of_onnxruntimes_cache_become_the_widest_range() {
    let text = br#"{ "CLS": "TensorsData", "data": { "a": { "CLS": "TensorData",
        "lowest": { "data": [[-1.0], [-3.0]], "dtype": "float32", "CLS": "numpy.array" },
        "highest": { "data": [[2.0], [1.0]], "dtype": "float32", "CLS": "numpy.array" } } } }"#;
    let file = read(text).unwrap();
    assert_eq!(file.ranges["a"], Range::new(-3.0, 2.0));
    assert!(file.notes[0].contains("for each channel"));
}

/// Damaged files give ranges or an error; they never end the program.
#[test]
fn damaged_files_end_in_ranges_or_an_error() {
    for format in RangeFormat::ALL {
        let whole = written(format).bytes;
        for place in 0..whole.len() {
            let _ = read(&whole[..place]);
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[place] ^= flip;
                let _ = read(&damaged);
            }
        }
    }
}
