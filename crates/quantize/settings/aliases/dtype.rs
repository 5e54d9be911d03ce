//! The types of files of transformers.js.

use serde_json::{Map, Value, json};

use super::words::Tool::TransformersJs;
use super::{AliasError, set, set_all, wrong};

/// Takes a `dtype` of transformers.js: the settings that `octet quantize --for transformers.js` has
/// for this file.
pub(super) fn take_dtype(
    document: &mut Map<String, Value>,
    value: &Value,
) -> Result<(), AliasError> {
    let dynamic = |element: Option<&str>| {
        let mut weights = json!({ "per_channel": false });
        if let Some(element) = element {
            weights["type"] = json!(element);
        }
        json!({ "scheme": "dynamic", "weights": weights })
    };
    let blocks = |bits: u8, half: bool| {
        let mut blocks = json!({ "bits": bits });
        if half {
            blocks["activations"] = json!("float16");
        }
        json!({ "scheme": "blocks", "blocks": blocks })
    };
    let meaning = match value.as_str() {
        Some("fp16") => json!({ "scheme": "float16" }),
        Some("q8") => dynamic(None),
        Some("int8") => dynamic(Some("i8")),
        Some("uint8") => dynamic(Some("u8")),
        Some("q4") => blocks(4, false),
        Some("q4f16") => blocks(4, true),
        Some("q2") => blocks(2, false),
        Some("q2f16") => blocks(2, true),
        Some("bnb4") => json!({ "scheme": "blocks", "blocks": { "form": "matmul_bnb4" } }),
        _ => {
            let names = "fp16, q8, int8, uint8, q4, q4f16, q2, q2f16 or bnb4";
            return Err(wrong("dtype", TransformersJs, value, names));
        }
    };
    let mut set = |path: &[&str], value: Value| set(document, path, value, "dtype", TransformersJs);
    set_all(&meaning, &mut Vec::new(), &mut set)?;
    let target = document.entry("target");
    target.or_insert_with(|| json!("transformers.js"));
    Ok(())
}
