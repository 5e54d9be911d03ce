//! Inputs of a text model, known by their names as exporters give them.

use octet_graph::Dim;
use octet_onnx::schema::DataType;

use super::error::shape_text;
use super::{InputSpec, LARGEST_ARRAY, SampleProblem};

/// Content of an input of a text model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextRole {
    /// Numbers of the tokens.
    Ids,
    /// 1 for each token, 0 for padding.
    Mask,
    /// Text of a pair that a token belongs to.
    Types,
    /// Place of each token in the text.
    Positions,
    /// Keys or values of earlier tokens: there are none.
    Cache,
    /// True if the caches are used.
    CacheSwitch,
    /// Number of tokens whose logits are wanted; 0 for all.
    LogitsToKeep,
}

/// The inputs of a text model.
#[derive(Clone, Debug)]
pub struct TextInputs {
    /// Role of each input.
    pub(super) roles: Vec<TextRole>,
    /// Place of the input for the numbers of the tokens.
    pub(super) ids: usize,
    /// Number of tokens, if the model declares it.
    pub length: Option<usize>,
    /// Number of texts that the model takes at once.
    pub(super) batch: usize,
    /// Name of the batch axis, if it has one.
    pub(super) batch_name: Option<String>,
}

/// A name without the suffix of TensorFlow's exporter.
fn base(name: &str) -> &str {
    name.strip_suffix(":0").unwrap_or(name)
}

/// The use of an input in a text model, by its name.
pub(super) fn role(input: &InputSpec) -> Option<TextRole> {
    let whole = matches!(input.element, DataType::Int64 | DataType::Int32);
    Some(match base(&input.name) {
        "input_ids" if whole => TextRole::Ids,
        "attention_mask" | "input_mask" => TextRole::Mask,
        "token_type_ids" | "segment_ids" if whole => TextRole::Types,
        "position_ids" if whole => TextRole::Positions,
        "use_cache_branch" if input.element == DataType::Bool => TextRole::CacheSwitch,
        "num_logits_to_keep" | "logits_to_keep" if whole => TextRole::LogitsToKeep,
        name if name.starts_with("past") && input.element.is_float() => TextRole::Cache,
        _ => return None,
    })
}

/// The place of the input that holds the numbers of tokens: `input_ids`, or the only input if that
/// is a matrix of integers.
pub fn ids_input(inputs: &[InputSpec]) -> Option<usize> {
    let named = inputs
        .iter()
        .position(|input| role(input) == Some(TextRole::Ids));
    let only = |input: &InputSpec| {
        matches!(input.element, DataType::Int64 | DataType::Int32) && input.shape.len() == 2
    };
    named.or_else(|| matches!(inputs, [input] if only(input)).then_some(0))
}

/// The place of the attention mask.
pub fn mask_input(inputs: &[InputSpec]) -> Option<usize> {
    let mut roles = inputs.iter().map(role);
    roles.position(|role| role == Some(TextRole::Mask))
}

impl TextInputs {
    /// The roles of all inputs, or the reason why texts can't feed this model.
    pub fn new(inputs: &[InputSpec]) -> Result<TextInputs, SampleProblem> {
        let Some(ids) = ids_input(inputs) else {
            let names: Vec<String> = inputs.iter().map(|i| format!("{:?}", i.name)).collect();
            return Err(SampleProblem::NoText {
                inputs: names.join(", "),
            });
        };
        let mut roles = Vec::with_capacity(inputs.len());
        for (place, input) in inputs.iter().enumerate() {
            let role = if place == ids {
                Some(TextRole::Ids)
            } else {
                role(input)
            };
            roles.push(role.ok_or_else(|| unknown(input, "no text gives its values"))?);
        }
        let (batch, length) = match inputs[ids].shape.as_slice() {
            [batch, length] => (batch, length),
            _ => {
                let why = "octet fills only the shape [batch, length]";
                return Err(unknown(&inputs[ids], why));
            }
        };
        let size = |dim: &Dim| match dim {
            Dim::Known(size) => *size,
            _ => 1,
        };
        within_limit(&inputs[ids], &[size(batch), size(length)])?;
        Ok(TextInputs {
            roles,
            ids,
            length: match length {
                Dim::Known(length) => Some(*length),
                _ => None,
            },
            batch: match batch {
                Dim::Known(batch) => *batch,
                _ => 1,
            },
            batch_name: match batch {
                Dim::Named(name) => Some(name.clone()),
                _ => None,
            },
        })
    }
}

/// Refuses shapes whose values would take too much memory. Each takes at most 8 bytes.
pub(super) fn within_limit(input: &InputSpec, shape: &[usize]) -> Result<(), SampleProblem> {
    let sizes = shape.iter().map(|&size| size as u64);
    let bytes = sizes.fold(8u64, u64::saturating_mul);
    match bytes <= LARGEST_ARRAY {
        true => Ok(()),
        false => Err(SampleProblem::TooLarge {
            array: input.name.clone(),
            bytes,
            limit: LARGEST_ARRAY,
        }),
    }
}

/// The problem of an input that can't be filled from a text.
pub(super) fn unknown(input: &InputSpec, why: &str) -> SampleProblem {
    SampleProblem::TextInput {
        input: input.name.clone(),
        expected: format!("{} {}", input.element, shape_text(&input.shape)),
        why: why.into(),
    }
}
