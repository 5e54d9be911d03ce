//! Tensors of a tokenized text.

use octet_graph::Dim;
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::DataType;

use super::text_inputs::{TextInputs, TextRole, unknown, within_limit};
use super::{Array, InputSpec, SampleProblem, TextTokens, TokenPreview};

/// A text of the model's length.
pub(super) struct PaddedText {
    ids: Vec<u32>,
    types: Vec<u32>,
    /// False for padding.
    attended: Vec<bool>,
}

/// Pads a text to a fixed length, if there is one.
pub(super) fn pad(
    file: &str,
    text: &TextTokens,
    length: Option<usize>,
) -> Result<PaddedText, SampleProblem> {
    let count = text.ids.len();
    let length = length.unwrap_or(count);
    let Some(missing) = length.checked_sub(count) else {
        return Err(SampleProblem::broken(
            file,
            format!("it has {count} tokens, but the model takes {length}"),
            "make it again from the text for this model",
        ));
    };
    let fill = |values: &[u32], padding: u32| {
        let mut all = vec![padding; length];
        let start = if text.padding.left { missing } else { 0 };
        all[start..start + values.len()].copy_from_slice(values);
        all
    };
    Ok(PaddedText {
        ids: fill(&text.ids, text.padding.id),
        types: fill(&text.type_ids, 0),
        attended: fill(&vec![1; count], 0).iter().map(|&x| x == 1).collect(),
    })
}

impl PaddedText {
    /// The place of each token among those that are no padding. Padding before the text has place
    /// 0, and padding behind it the last place, which every position table holds.
    fn positions(&self) -> Vec<i64> {
        let places = self.attended.iter().scan(0i64, |seen, &attended| {
            *seen += i64::from(attended);
            Some((*seen - 1).max(0))
        });
        places.collect()
    }

    /// The tokens as the model receives them. `spellings` are those of the text without padding.
    pub(super) fn previews(&self, spellings: &[String]) -> Vec<TokenPreview> {
        let mut spellings = spellings.iter();
        let each = self.ids.iter().zip(&self.types).zip(&self.attended);
        each.map(|((&id, &type_id), &attended)| TokenPreview {
            token: match attended {
                true => spellings.next().cloned().unwrap_or_default(),
                false => String::new(),
            },
            id,
            type_id,
            attended,
        })
        .collect()
    }
}

/// An array for each input.
pub(super) fn arrays(
    known: &TextInputs,
    inputs: &[InputSpec],
    text: &PaddedText,
) -> Result<Vec<Array>, SampleProblem> {
    let caches: Vec<(&InputSpec, Vec<usize>)> = each(known, inputs, TextRole::Cache)
        .map(|input| Ok((input, cache_shape(known, input)?)))
        .collect::<Result<_, SampleProblem>>()?;
    let past = past_length(&caches);
    let mut caches = caches.into_iter();
    let rows = |values: Vec<i64>| {
        let length = values.len();
        Some((vec![known.batch, length], values.repeat(known.batch)))
    };
    let numbers = |values: &[u32]| values.iter().map(|&x| i64::from(x)).collect();
    let make = |(role, input): (&TextRole, &InputSpec)| {
        let integers = match role {
            TextRole::Ids => rows(numbers(&text.ids)),
            TextRole::Types => rows(numbers(&text.types)),
            TextRole::Positions => rows(text.positions()),
            // The mask also covers the caches, whose content counts as padding.
            TextRole::Mask => rows(
                std::iter::repeat_n(0, past)
                    .chain(text.attended.iter().map(|&attended| i64::from(attended)))
                    .collect(),
            ),
            TextRole::CacheSwitch | TextRole::LogitsToKeep => {
                let shape: Vec<usize> = input.shape.iter().map(|_| 1).collect();
                Some((shape, vec![0]))
            }
            TextRole::Cache => None,
        };
        let (shape, values) = match integers {
            Some((shape, values)) if input.element.is_float() => {
                let floats = values.iter().map(|&x| x as f32).collect();
                (shape, Values::F32(floats))
            }
            Some((shape, values)) => (shape, Values::I64(values)),
            None => {
                let (_, shape) = caches.next().unwrap_or((input, Vec::new()));
                let count = shape.iter().product();
                (shape, Values::F32(vec![0.0; count]))
            }
        };
        let tensor = Tensor::new(shape, values)
            .ok_or_else(|| unknown(input, "its values don't fit its shape"))?;
        Ok(Array::of_input(input, tensor))
    };
    known.roles.iter().zip(inputs).map(make).collect()
}

fn each<'a>(
    known: &'a TextInputs,
    inputs: &'a [InputSpec],
    wanted: TextRole,
) -> impl Iterator<Item = &'a InputSpec> {
    let all = known.roles.iter().zip(inputs);
    all.filter(move |(role, _)| **role == wanted)
        .map(|(_, input)| input)
}

/// Shape of an empty cache: the axis that is neither known nor the batch counts earlier tokens.
fn cache_shape(known: &TextInputs, input: &InputSpec) -> Result<Vec<usize>, SampleProblem> {
    if input.element != DataType::Float && !input.element.is_half() {
        return Err(unknown(input, "octet fills only float caches"));
    }
    let mut free = 0;
    let axis = |(place, dim): (usize, &Dim)| match dim {
        Dim::Known(size) => *size,
        Dim::Named(name) if known.batch_name.as_ref() == Some(name) => known.batch,
        _ if place == 0 => known.batch,
        _ => {
            free += 1;
            0
        }
    };
    let shape: Vec<usize> = input.shape.iter().enumerate().map(axis).collect();
    match free {
        0 | 1 if !shape.is_empty() => {
            within_limit(input, &shape)?;
            Ok(shape)
        }
        _ => Err(unknown(
            input,
            "more than one of its axes may count earlier tokens",
        )),
    }
}

/// Number of earlier tokens in the caches: more than 0 only if the model fixes it. In all exported
/// caches of fixed size it is the last axis but one.
fn past_length(caches: &[(&InputSpec, Vec<usize>)]) -> usize {
    let full = caches
        .iter()
        .find(|(_, shape)| shape.len() > 1 && !shape.contains(&0));
    full.map_or(0, |(_, shape)| shape[shape.len() - 2])
}
