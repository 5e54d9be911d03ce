//! Texts as samples: a tokenized text becomes one tensor for each input of a text model.
//!
//! The tokenizer is in the crate `octet-tokenizer`, which loads when it is first needed. It turns
//! each text into a file that ends in `.tokens` ([`TextTokens`]), and these files are samples.

use serde::{Deserialize, Serialize};

use super::text_inputs::TextInputs;
use super::text_tensors::{arrays, pad};
use super::{Array, InputSpec, SampleProblem};

/// Content of a `.tokens` file, as JSON: a text as a tokenizer gives it to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TextTokens {
    /// Number of each token, special tokens included.
    pub ids: Vec<u32>,
    /// Type of each token: 1 for those of the second text of a pair. Empty if all are 0.
    #[serde(default)]
    pub type_ids: Vec<u32>,
    /// The tokens as the vocabulary spells them, for display; may be empty.
    #[serde(default)]
    pub tokens: Vec<String>,
    /// Padding for a model of fixed length.
    #[serde(default)]
    pub padding: TextPadding,
}

/// Padding of a text for a model of fixed length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextPadding {
    /// Number of the padding token.
    pub id: u32,
    /// True if the padding comes before the text.
    pub left: bool,
}

/// A token as the model receives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenPreview {
    /// The token as the vocabulary spells it; empty for padding, or if it is not known.
    pub token: String,
    /// Its number.
    pub id: u32,
    /// Its type: 1 in the second text of a pair.
    pub type_id: u32,
    /// False for padding, which the attention mask hides.
    pub attended: bool,
}

/// The arrays of a text for all inputs, and its tokens with the place of the input that holds their
/// numbers.
pub(super) fn read(
    file: &str,
    bytes: &[u8],
    inputs: &[InputSpec],
) -> Result<(Vec<Array>, usize, Vec<TokenPreview>), SampleProblem> {
    let broken = |why: String| {
        let next = "make it again from the text and the model's tokenizer.json";
        SampleProblem::broken(file, why, next)
    };
    let text: TextTokens =
        serde_json::from_slice(bytes).map_err(|error| broken(error.to_string()))?;
    let unlike = |other: usize| other != 0 && other != text.ids.len();
    if text.ids.is_empty() {
        return Err(broken("it has no tokens".into()));
    }
    if unlike(text.type_ids.len()) || unlike(text.tokens.len()) {
        return Err(broken("its lists have different lengths".into()));
    }
    let known = TextInputs::new(inputs)?;
    let padded = pad(file, &text, known.length)?;
    let arrays = arrays(&known, inputs, &padded)?;
    Ok((arrays, known.ids, padded.previews(&text.tokens)))
}
