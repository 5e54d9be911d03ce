//! Channel factors in the metadata of a model.

use std::collections::BTreeMap;

use super::{ChannelFactors, EqualizeError};
use crate::Model;
use octet_onnx::schema::StringStringEntryProto;

/// Metadata key of the factors. Its value is JSON: by value name, two hexadecimal digits for each
/// channel.
const KEY: &str = "octet.equalized";

impl ChannelFactors {
    /// Reads the factors from a model's metadata; empty if it has none.
    pub fn from_metadata(model: &Model) -> Result<ChannelFactors, EqualizeError> {
        let mut entries = model.header().metadata_props.iter();
        let Some(entry) = entries.find(|entry| entry.key.as_deref() == Some(KEY)) else {
            return Ok(ChannelFactors::default());
        };
        let damaged = |reason: String| EqualizeError::Damaged { reason };
        let text = entry.value.as_deref().unwrap_or_default();
        let read: BTreeMap<String, String> =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        let of = |(value, digits): (String, String)| match powers(&digits) {
            Some(powers) => Ok((value, powers)),
            None => Err(damaged(format!(
                "`{value}` has digits that are not hexadecimal"
            ))),
        };
        Ok(ChannelFactors(
            read.into_iter().map(of).collect::<Result<_, _>>()?,
        ))
    }

    /// Adds these factors to the metadata of a model that has none.
    pub(super) fn write_metadata(&self, model: &mut Model) {
        let digits = |powers: &Vec<i8>| -> String {
            powers
                .iter()
                .map(|&power| format!("{:02x}", power as u8))
                .collect()
        };
        let text: BTreeMap<&String, String> = self
            .0
            .iter()
            .map(|(value, powers)| (value, digits(powers)))
            .collect();
        model
            .header_mut()
            .metadata_props
            .push(StringStringEntryProto {
                key: Some(KEY.into()),
                value: Some(serde_json::json!(text).to_string()),
            });
    }
}

fn powers(digits: &str) -> Option<Vec<i8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| Some(char::from(byte).to_digit(16)? as u8);
    let power = |&[high, low]: &[u8; 2]| Some((digit(high)? << 4 | digit(low)?) as i8);
    rest.is_empty().then(|| pairs.iter().map(power).collect())?
}
