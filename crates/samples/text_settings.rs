//! Settings for reading texts.

use serde::{Deserialize, Serialize};

/// Number of tokens at which a text is cut if neither the model nor a setting says less.
pub const LONGEST_TEXT: usize = 512;

/// Settings for turning text files into samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TextSettings {
    /// Fields of .jsonl or columns of .csv that hold the text; two make pairs of texts. Empty for
    /// the field "text", or else the only one that holds text.
    pub fields: Vec<String>,
    /// Parts of a .txt file that are texts of their own.
    pub unit: TextUnit,
    /// Largest number of tokens of a text; longer texts are cut. The default is that of the
    /// tokenizer, at most 512. A model of fixed length has the last word.
    pub max_length: Option<u32>,
    /// Largest number of texts of a file; they are spread evenly over it.
    pub count: u32,
}

impl Default for TextSettings {
    fn default() -> Self {
        TextSettings {
            fields: Vec::new(),
            unit: TextUnit::Lines,
            max_length: None,
            count: 100,
        }
    }
}

/// Parts of a .txt file that are texts of their own.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TextUnit {
    /// Each line that is not blank.
    #[default]
    Lines,
    /// Each group of lines between blank ones.
    Paragraphs,
}
