//! The wasm interface.

use js_sys::{Array, Error, Object, Reflect, Uint8Array};
use octet_samples::TextSettings;
use wasm_bindgen::prelude::*;

use super::{TextError, TextTokenizer};

/// The tokenizer of a model.
#[wasm_bindgen(js_name = Tokenizer)]
pub struct WebTokenizer {
    inner: TextTokenizer,
}

#[wasm_bindgen(js_class = Tokenizer)]
impl WebTokenizer {
    /// Reads `tokenizer.json`, and `tokenizer_config.json` if there is one.
    #[wasm_bindgen(constructor)]
    pub fn new(
        path: String,
        bytes: Vec<u8>,
        config_path: String,
        config: Option<Vec<u8>>,
    ) -> Result<WebTokenizer, JsValue> {
        let config = config.as_deref().map(|bytes| (config_path.as_str(), bytes));
        let inner = TextTokenizer::new((&path, &bytes), config).map_err(error)?;
        Ok(WebTokenizer { inner })
    }

    /// Tokenizes the texts of a file: `{ texts, cut, samples }`, the samples as `{ path, bytes }`s.
    pub fn tokenize(
        &mut self,
        path: String,
        bytes: Vec<u8>,
        settings: JsValue,
        fixed: Option<u32>,
    ) -> Result<JsValue, JsValue> {
        let settings: TextSettings = serde_wasm_bindgen::from_value(settings)?;
        let fixed = fixed.map(|length| length as usize);
        let file = self.inner.tokenize((&path, &bytes), &settings, fixed);
        let file = file.map_err(error)?;
        let samples = Array::new();
        for (path, bytes) in &file.samples {
            let bytes = Uint8Array::from(bytes.as_slice());
            samples.push(&object(&[("path", path.into()), ("bytes", bytes.into())])?);
        }
        object(&[
            ("texts", (file.texts as f64).into()),
            ("cut", (file.cut as f64).into()),
            ("samples", samples.into()),
        ])
    }
}

fn object(entries: &[(&str, JsValue)]) -> Result<JsValue, JsValue> {
    let object = Object::new();
    for (key, value) in entries {
        Reflect::set(&object, &(*key).into(), value)?;
    }
    Ok(object.into())
}

/// An error with its kind: that of samples, or of settings if they leave no room.
fn error(error: TextError) -> JsValue {
    let kind = match error {
        TextError::NoRoom { .. } => "settings",
        _ => "sample",
    };
    let thrown = Error::new(&error.to_string());
    let _ = Reflect::set(&thrown, &"kind".into(), &kind.into());
    thrown.into()
}
