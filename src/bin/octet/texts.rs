//! Options for samples that are texts, and their tokenization.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use octet::samples::{InputSpec, SampleError, TextInputs, TextSettings, TextUnit};
use octet_host::fs;
#[cfg(not(target_family = "wasm"))]
use octet_tokenizer::{TextError, TextTokenizer, TokenizedFile};

#[cfg(target_family = "wasm")]
use super::tokenizer_module::{
    ModuleError as TextError, ModuleTokenizer as TextTokenizer, ModuleTokens as TokenizedFile,
};
use super::{Failure, files, messages};

/// Options for texts as samples.
#[derive(Args)]
#[command(next_help_heading = "Texts as samples")]
pub struct TextOptions {
    /// The model's tokenizer [default: tokenizer.json beside the model or in the folder above]
    #[arg(long, value_name = "tokenizer.json")]
    tokenizer: Option<PathBuf>,
    /// Field of .jsonl or column of .csv that holds the text; two make pairs of texts [default:
    /// text, or the only one that holds text]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    text_field: Vec<String>,
    /// Largest number of tokens of a text; longer texts are cut [default: the model's own, or that
    /// of the tokenizer, at most 512]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_length: Option<u32>,
    /// Largest number of texts of a file; they are spread evenly over it
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    texts: u32,
    /// Take the paragraphs of .txt files instead of their lines
    #[arg(long)]
    paragraphs: bool,
}

#[cfg(not(target_family = "wasm"))]
impl From<TextError> for Failure {
    fn from(error: TextError) -> Failure {
        match error {
            TextError::NoRoom { .. } => Failure::usage(format!("--max-length: {error}")),
            _ => Failure::input(error.to_string()),
        }
    }
}

/// The tokenizers are a module of their own, so only text and kind of an error cross.
#[cfg(target_family = "wasm")]
impl From<TextError> for Failure {
    fn from(error: TextError) -> Failure {
        match error.is_about_settings {
            true => Failure::usage(format!("--max-length: {}", error.message)),
            false => Failure::input(error.message),
        }
    }
}

impl TextOptions {
    fn settings(&self) -> TextSettings {
        TextSettings {
            fields: self.text_field.clone(),
            unit: match self.paragraphs {
                true => TextUnit::Paragraphs,
                false => TextUnit::Lines,
            },
            max_length: self.max_length,
            count: self.texts,
        }
    }

    /// The tokenized texts of the files, by the names of their own files. Prints notes on texts
    /// that were left out or cut.
    pub fn tokenize(
        &self,
        model: &Path,
        inputs: &[InputSpec],
        paths: &[String],
    ) -> Result<BTreeMap<String, Bytes>, Failure> {
        let known = TextInputs::new(inputs).map_err(|problem| {
            Failure::from(SampleError::Sample {
                sample: paths.join(", "),
                problem,
            })
        })?;
        let mut tokenizer = self.read_tokenizer(model)?;
        let settings = self.settings();
        let mut all = BTreeMap::new();
        for path in paths {
            let bytes = files::read(Path::new(path), "texts")?;
            let file = tokenizer.tokenize((path, &bytes), &settings, known.length)?;
            note(path, &file);
            let named = file.samples.into_iter();
            all.extend(named.map(|(name, bytes)| (name, Bytes::from(bytes))));
        }
        Ok(all)
    }

    fn read_tokenizer(&self, model: &Path) -> Result<TextTokenizer, Failure> {
        let folder = files::folder_of(model);
        let path = match &self.tokenizer {
            Some(path) => path.clone(),
            None => [folder.join("tokenizer.json"), folder.join("../tokenizer.json")]
                .into_iter()
                .find(|path| fs::is_file(path))
                .ok_or_else(|| {
                    Failure::usage(format!(
                        "the texts need the model's tokenizer, but there is no tokenizer.json in {} or the folder above; name it with --tokenizer",
                        folder.display()
                    ))
                })?,
        };
        let json = files::read(&path, "tokenizer")?;
        let config = path.with_file_name("tokenizer_config.json");
        let read = fs::is_file(&config).then(|| files::read(&config, "tokenizer's configuration"));
        let read = read.transpose()?;
        let [path, config] = [path, config].map(|path| path.display().to_string());
        let config = read.as_deref().map(|bytes| (config.as_str(), bytes));
        Ok(TextTokenizer::new((&path, &json), config)?)
    }
}

fn note(path: &str, file: &TokenizedFile) {
    let used = file.samples.len();
    if used < file.texts {
        messages::note(&format!(
            "{path}: {used} of {} texts are used, spread evenly over the file; --texts changes the number",
            file.texts
        ));
    }
    if file.cut > 0 {
        messages::note(&format!(
            "{path}: {} of {used} texts were cut at the maximum length; --max-length changes it",
            file.cut
        ));
    }
}
