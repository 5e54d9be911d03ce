//! The tokenizers in Node: the page's module, which loads with the first text. So the wasm of the
//! command line stays without them.

use js_sys::{Array, Reflect, Uint8Array};
use octet::samples::TextSettings;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/tokenizer.js")]
extern "C" {
    type Tokenizer;
    #[wasm_bindgen(catch)]
    fn create(
        path: &str,
        bytes: &[u8],
        config_path: &str,
        config: Option<Vec<u8>>,
    ) -> Result<Tokenizer, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn tokenize(
        this: &Tokenizer,
        path: &str,
        bytes: &[u8],
        settings: JsValue,
        fixed: Option<u32>,
    ) -> Result<JsValue, JsValue>;
}

/// A problem of a tokenizer or of a text file.
#[derive(Debug)]
pub struct ModuleError {
    pub message: String,
    /// True if the settings of texts are wrong, not a file.
    pub is_about_settings: bool,
}

impl From<JsValue> for ModuleError {
    fn from(error: JsValue) -> ModuleError {
        let text = |key: &str| Reflect::get(&error, &key.into()).ok()?.as_string();
        ModuleError {
            message: text("message").unwrap_or_default(),
            is_about_settings: text("kind").is_some_and(|kind| kind == "settings"),
        }
    }
}

/// A tokenized file.
#[derive(Debug)]
pub struct ModuleTokens {
    /// Name and content of a file for each text.
    pub samples: Vec<(String, Vec<u8>)>,
    /// Number of texts in the file, of which `samples` may be a part.
    pub texts: usize,
    /// Number of these samples that were cut at the maximum length.
    pub cut: usize,
}

/// A file of a model: its name for messages, and its bytes.
type NamedBytes<'a> = (&'a str, &'a [u8]);

/// The tokenizer of a model.
pub struct ModuleTokenizer(Tokenizer);

impl ModuleTokenizer {
    /// Reads `tokenizer.json`, and `tokenizer_config.json` if there is one.
    pub fn new(
        file: NamedBytes<'_>,
        config: Option<NamedBytes<'_>>,
    ) -> Result<ModuleTokenizer, ModuleError> {
        let (name, bytes) = config.unzip();
        let bytes = bytes.map(<[u8]>::to_vec);
        let made = create(file.0, file.1, name.unwrap_or_default(), bytes)?;
        Ok(ModuleTokenizer(made))
    }

    /// Tokenizes the texts of a file.
    pub fn tokenize(
        &mut self,
        file: NamedBytes<'_>,
        settings: &TextSettings,
        fixed: Option<usize>,
    ) -> Result<ModuleTokens, ModuleError> {
        let settings = serde_wasm_bindgen::to_value(settings).map_err(JsValue::from)?;
        let fixed = fixed.map(|length| length as u32);
        let found = self.0.tokenize(file.0, file.1, settings, fixed)?;
        let get = |of: &JsValue, key: &str| Reflect::get(of, &key.into());
        let count = |key: &str| get(&found, key).map(|it| it.as_f64().unwrap_or(0.0) as usize);
        let sample = |one: JsValue| {
            let path = get(&one, "path")?.as_string().unwrap_or_default();
            Ok::<_, JsValue>((path, Uint8Array::new(&get(&one, "bytes")?).to_vec()))
        };
        let samples = Array::from(&get(&found, "samples")?);
        Ok(ModuleTokens {
            samples: samples.iter().map(sample).collect::<Result<_, _>>()?,
            texts: count("texts")?,
            cut: count("cut")?,
        })
    }
}
