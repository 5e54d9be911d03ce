//! Text files to tokenized texts, by the `tokenizer.json` of a model.
//!
//! Each text of a file becomes a small file of its own that ends in `.tokens`, which
//! [`octet_samples`] reads as a sample. The tokens are those of Hugging Face's tokenizers, since
//! these do the work. The same files give the same tokens natively and in wasm.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod texts;
#[cfg(target_family = "wasm")]
mod web;

use octet_samples::{LONGEST_TEXT, TextPadding, TextSettings, TextTokens};
use serde_json::Value;
use tokenizers::{Encoding, PaddingDirection, Tokenizer, TruncationParams};

/// Problem of a tokenizer or of a text file. The message states what, where and the next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum TextError {
    #[error("{file} is not a tokenizer: {why}; give the tokenizer.json of the model")]
    Tokenizer { file: String, why: String },
    #[error("{file} is not valid JSON: {why}; give the tokenizer_config.json of the model")]
    Config { file: String, why: String },
    #[error("{file} {place}: {why}; {next}")]
    File {
        file: String,
        place: String,
        why: String,
        next: String,
    },
    #[error(
        "texts of at most {length} tokens have no room: the tokenizer adds {added} special tokens; choose a larger maximum length"
    )]
    NoRoom { length: usize, added: usize },
    #[error("{text} can't be tokenized: {why}; leave it out, or check tokenizer.json")]
    Text { text: String, why: String },
}

/// A file of a model: its name for messages, and its bytes.
pub type File<'a> = (&'a str, &'a [u8]);

/// A tokenized file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenizedFile {
    /// Name and content of a `.tokens` file for each text, in the order of the texts.
    pub samples: Vec<(String, Vec<u8>)>,
    /// Number of texts in the file, of which `samples` may be a part.
    pub texts: usize,
    /// Number of these samples that were cut at the maximum length.
    pub cut: usize,
}

/// The tokenizer of a model.
pub struct TextTokenizer {
    inner: Tokenizer,
    padding: TextPadding,
    /// Maximum length by the tokenizer's configuration.
    longest: usize,
}

/// Names of padding tokens, for tokenizers that don't declare theirs.
const PADDING_TOKENS: [&str; 4] = ["<pad>", "[PAD]", "<|padding|>", "<|endoftext|>"];

impl TextTokenizer {
    /// Reads `tokenizer.json`, and `tokenizer_config.json` if there is one.
    pub fn new(file: File<'_>, config: Option<File<'_>>) -> Result<TextTokenizer, TextError> {
        let mut inner = Tokenizer::from_bytes(file.1).map_err(|error| TextError::Tokenizer {
            file: file.0.into(),
            why: error.to_string(),
        })?;
        let config: Value = match config {
            Some((name, bytes)) => {
                serde_json::from_slice(bytes).map_err(|error| TextError::Config {
                    file: name.into(),
                    why: error.to_string(),
                })?
            }
            None => Value::Null,
        };
        let padding = padding(&inner, &config);
        let longest = config["model_max_length"].as_f64();
        let longest = longest.filter(|length| *length >= 1.0);
        inner.with_padding(None);
        Ok(TextTokenizer {
            inner,
            padding,
            // A cast of a large number gives the largest integer.
            longest: longest.map_or(LONGEST_TEXT, |length| (length as usize).min(LONGEST_TEXT)),
        })
    }

    /// Tokenizes the texts of a file. `fixed` is the length that the model declares, if any.
    pub fn tokenize(
        &mut self,
        (path, bytes): File<'_>,
        settings: &TextSettings,
        fixed: Option<usize>,
    ) -> Result<TokenizedFile, TextError> {
        let texts = texts::read(path, bytes, settings)?;
        let wanted = settings
            .max_length
            .map_or(self.longest, |length| length as usize);
        self.cut_at(fixed.map_or(wanted, |fixed| match settings.max_length {
            Some(_) => fixed.min(wanted),
            None => fixed,
        }))?;
        let count = texts.len().min(settings.count as usize);
        let mut samples = Vec::with_capacity(count);
        let mut cut = 0;
        for index in 0..count {
            let text = &texts[index * texts.len() / count];
            let name = format!("{path}:{}", text.line);
            let (tokens, shortened) = self.encode(&name, &text.parts)?;
            cut += usize::from(shortened);
            let file = serde_json::to_vec(&tokens).map_err(|error| TextError::Text {
                text: name.clone(),
                why: error.to_string(),
            })?;
            samples.push((format!("{name}.tokens"), file));
        }
        Ok(TokenizedFile {
            samples,
            texts: texts.len(),
            cut,
        })
    }

    fn cut_at(&mut self, length: usize) -> Result<(), TextError> {
        let added = |pair| {
            self.inner
                .get_post_processor()
                .map_or(0, |p| tokens_added(p, pair))
        };
        let added = added(false).max(added(true));
        if length <= added {
            return Err(TextError::NoRoom { length, added });
        }
        let known = self.inner.get_truncation().cloned().unwrap_or_default();
        self.set_limit(Some(TruncationParams {
            max_length: length,
            stride: 0,
            ..known
        }))
    }

    /// The tokens of one text or a pair, and true if it was cut.
    fn encode(&mut self, name: &str, parts: &[String]) -> Result<(TextTokens, bool), TextError> {
        let encoded = self.encoding(name, parts)?;
        let limit = self.inner.get_truncation().cloned();
        let mut cut = false;
        if let Some(limit) = limit.filter(|limit| encoded.len() >= limit.max_length) {
            // Not every tokenizer keeps what it cuts off, so the whole text is tokenized, too.
            self.set_limit(None)?;
            cut = self.encoding(name, parts)?.len() > encoded.len();
            self.set_limit(Some(limit))?;
        }
        let types = encoded.get_type_ids();
        let tokens = TextTokens {
            ids: encoded.get_ids().to_vec(),
            type_ids: match types.iter().any(|&kind| kind != 0) {
                true => types.to_vec(),
                false => Vec::new(),
            },
            tokens: encoded.get_tokens().to_vec(),
            padding: self.padding,
        };
        Ok((tokens, cut))
    }

    fn encoding(&self, name: &str, parts: &[String]) -> Result<Encoding, TextError> {
        let encoded = match parts {
            [first, second] => self.inner.encode((first.as_str(), second.as_str()), true),
            _ => self.inner.encode(parts.concat(), true),
        };
        encoded.map_err(|error| TextError::Text {
            text: name.into(),
            why: error.to_string(),
        })
    }

    fn set_limit(&mut self, limit: Option<TruncationParams>) -> Result<(), TextError> {
        let length = limit.as_ref().map_or(0, |limit| limit.max_length);
        match self.inner.with_truncation(limit) {
            Ok(_) => Ok(()),
            Err(_) => Err(TextError::NoRoom {
                length,
                added: length,
            }),
        }
    }
}

fn tokens_added(processor: &impl tokenizers::PostProcessor, pair: bool) -> usize {
    processor.added_tokens(pair)
}

/// The padding that `tokenizer.json` declares, or else its configuration, or else a usual name.
fn padding(tokenizer: &Tokenizer, config: &Value) -> TextPadding {
    if let Some(declared) = tokenizer.get_padding() {
        return TextPadding {
            id: declared.pad_id,
            left: matches!(declared.direction, PaddingDirection::Left),
        };
    }
    let named = &config["pad_token"];
    let named = named.as_str().or_else(|| named["content"].as_str());
    let mut names = named.into_iter().chain(PADDING_TOKENS);
    TextPadding {
        // Without any, 0: the mask hides it.
        id: names
            .find_map(|name| tokenizer.token_to_id(name))
            .unwrap_or(0),
        left: config["padding_side"] == "left",
    }
}

#[cfg(test)]
mod tests;
