//! A token of a text, for people.

use serde::Serialize;

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
