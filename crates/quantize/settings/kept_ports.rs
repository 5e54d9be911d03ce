//! The key `keep_io`: all inputs and outputs, none, or some.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::matches;

/// Inputs and outputs that stay float32: all, none, or those of these names or patterns with `*`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum KeptPorts {
    /// All or none.
    Switch(bool),
    /// Names, scopes, or patterns with `*`.
    Names(Vec<String>),
}

impl Default for KeptPorts {
    fn default() -> KeptPorts {
        KeptPorts::Switch(true)
    }
}

impl KeptPorts {
    /// True if an input or output stays float32.
    pub(crate) fn contains(&self, name: &str) -> bool {
        match self {
            KeptPorts::Switch(all) => *all,
            KeptPorts::Names(patterns) => patterns.iter().any(|pattern| matches(pattern, name)),
        }
    }
}
