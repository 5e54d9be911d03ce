//! The conversion piece by piece: the same bytes, wherever the files of constants end.

use octet_quantize::Settings;
use octet_stream::{Conversion, ConversionStep, OutputFiles, SmallTensors, StreamError};
use serde_json::json;

/// Converts a file in memory with a scheme that its first byte chooses.
pub fn run(bytes: &[u8]) {
    let scheme = match bytes.len() % 3 {
        0 => json!({ "scheme": "blocks" }),
        1 => json!({ "scheme": "float16" }),
        _ => json!({ "scheme": "weights" }),
    };
    let settings = Settings::from_value(scheme).unwrap();
    let _ = convert(bytes, &settings);
}

fn convert(source: &[u8], settings: &Settings) -> Result<(), StreamError> {
    let Ok(skeleton) = crate::model::skeleton(source) else {
        return Ok(());
    };
    let stretch_of = |offset: u64, end: u64| {
        let length = source.len() as u64;
        &source[offset.min(length) as usize..end.min(length) as usize]
    };
    let mut small = SmallTensors::new(skeleton)?;
    while let Some(stretch) = small.next().cloned() {
        small.feed(stretch_of(stretch.offset, stretch.end()))?;
    }
    let output = OutputFiles {
        model: "model_q4.onnx".into(),
        limit: 1 << 16,
    };
    let mut conversion = Conversion::new(small.finish()?, settings, output)?;
    let sizes = |conversion: &Conversion| -> Vec<u64> {
        conversion.files().iter().map(|file| file.bytes).collect()
    };
    let mut files = sizes(&conversion);
    loop {
        match conversion.next_step()? {
            ConversionStep::Read(stretch) => {
                conversion.feed(stretch_of(stretch.offset, stretch.end()))?;
            }
            ConversionStep::Copy {
                from, file, offset, ..
            } => {
                // The caller checks what it copies.
                if from.end() > source.len() as u64 {
                    return Ok(());
                }
                assert!(offset + from.length <= files[file], "copied beyond");
            }
            ConversionStep::Write {
                file,
                offset,
                bytes,
            } => assert!(offset + bytes.len() as u64 <= files[file], "written beyond"),
            ConversionStep::Restart => files = sizes(&conversion),
            ConversionStep::Finished => break,
        }
    }
    let model = conversion.finish()?.model.as_slice().concat();
    octet_onnx::read(model.into()).unwrap();
    Ok(())
}
