//! Values that stand in for an input, until users have their own: sizes of open axes, and the kind
//! of values by name, type and use of the input.

use std::collections::BTreeMap;

use octet_graph::Dim;
use octet_onnx::schema::DataType;

use super::image_placement::axes;
use super::image_settings::{ImageLayout, ImageSettings};
use super::text_inputs::{TextRole, role};
use super::{InputSpec, ids_input};

/// The kind of values that stand in for an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderValues {
    /// Pixels from 0 to 255, which are then preprocessed.
    Pixels {
        /// Number of channels.
        channels: usize,
        /// Order of the axes.
        layout: ImageLayout,
    },
    /// Whole numbers from 0 up to this one, which is left out.
    Below(u64),
    /// Places along the last axis.
    Positions,
    /// Ones, such as a mask without padding.
    Ones,
    /// Zeros, such as a switch that is off.
    Zeros,
    /// Numbers with mean 0 and deviation 1.
    Normal,
}

/// The stand-in for an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Placeholder {
    /// Size of each axis.
    pub sizes: Vec<usize>,
    /// The values.
    pub values: PlaceholderValues,
}

/// Size of an open axis: batch, channels, height and width of an image, or a length.
fn open_size(axis: usize, rank: usize) -> usize {
    match (axis, rank) {
        (0, _) => 1,
        (1, 4) => 3,
        (_, 4) => 224,
        _ => 16,
    }
}

/// Size of an open axis of an input: that of a picture whose channels are known, of sound, or of its
/// rank.
pub(super) fn open_size_of(input: &InputSpec, axis: usize) -> usize {
    let rank = input.shape.len();
    let picture = axes(input).filter(|axes| axes.explicit && rank == 4);
    if let Some(picture) = picture {
        let side = open_size(2, rank);
        return picture.shape(side, side)[axis];
    }
    let sound =
        input.element.is_float() && axis + 1 == rank && matches!((axis, rank), (1, 2) | (0, 1));
    match sound {
        true => SOUND,
        false => open_size(axis, rank),
    }
}

/// Length of a row of floats if the model leaves it open: such a row is sound, and models of sound
/// refuse a few values.
const SOUND: usize = 512;

/// Number of tokens if nothing tells the size of the vocabulary; every vocabulary has as many.
const COMMON_VOCABULARY: u64 = 100;

/// The stand-in for each input. A named axis has the same size in all of them. `tables` has the
/// number of rows of the table that an input indexes. `picture` is the preprocessing, if the inputs
/// are an image.
pub fn placeholders(
    inputs: &[InputSpec],
    tables: &BTreeMap<String, u64>,
    picture: Option<&ImageSettings>,
) -> Vec<Placeholder> {
    let mut named = BTreeMap::new();
    // The other inputs say the size of an axis that caches share with them.
    for caches in [false, true] {
        for input in inputs {
            let cache = role(input) == Some(TextRole::Cache);
            if cache == caches {
                name_sizes(input, cache, picture, &mut named);
            }
        }
    }
    let ids = ids_input(inputs);
    let one = |(place, input): (usize, &InputSpec)| {
        let cache = role(input) == Some(TextRole::Cache);
        let size = |(axis, dim): (usize, &Dim)| match dim {
            Dim::Known(size) => *size,
            Dim::Named(name) => named.get(name.as_str()).copied().unwrap_or(1),
            Dim::Unknown => free(input, axis, cache, picture),
        };
        Placeholder {
            sizes: input.shape.iter().enumerate().map(size).collect(),
            values: values(input, tables, picture, ids == Some(place)),
        }
    };
    inputs.iter().enumerate().map(one).collect()
}

fn name_sizes<'a>(
    input: &'a InputSpec,
    cache: bool,
    picture: Option<&ImageSettings>,
    named: &mut BTreeMap<&'a str, usize>,
) {
    for (axis, dim) in input.shape.iter().enumerate() {
        if let Dim::Named(name) = dim {
            let size = free(input, axis, cache, picture);
            named.entry(name).or_insert(size);
        }
    }
}

/// Size of an axis that the model leaves open.
fn free(input: &InputSpec, axis: usize, cache: bool, picture: Option<&ImageSettings>) -> usize {
    if cache && axis != 0 {
        // There are no earlier tokens.
        return 0;
    }
    let of_image = || {
        let settings = picture?;
        let side = |set: Option<u32>| set.map_or(open_size(2, 4), |side| side as usize);
        let shape = axes(input)?.shape(side(settings.height), side(settings.width));
        shape.get(axis).copied()
    };
    of_image().unwrap_or_else(|| open_size_of(input, axis))
}

fn values(
    input: &InputSpec,
    tables: &BTreeMap<String, u64>,
    picture: Option<&ImageSettings>,
    ids: bool,
) -> PlaceholderValues {
    let rows = tables.get(&input.name).copied();
    if let Some((settings, axes)) = picture.zip(axes(input)) {
        let layout = settings.layout.unwrap_or(axes.layout);
        let channels = axes.channels();
        return PlaceholderValues::Pixels { channels, layout };
    }
    match role(input) {
        Some(
            TextRole::Cache | TextRole::CacheSwitch | TextRole::LogitsToKeep | TextRole::Types,
        ) => PlaceholderValues::Zeros,
        Some(TextRole::Mask) => PlaceholderValues::Ones,
        Some(TextRole::Positions) => PlaceholderValues::Positions,
        _ if input.name.to_ascii_lowercase().contains("mask") => PlaceholderValues::Ones,
        _ if input.element.is_float() => PlaceholderValues::Normal,
        Some(TextRole::Ids) => PlaceholderValues::Below(rows.unwrap_or(COMMON_VOCABULARY)),
        None if ids => PlaceholderValues::Below(rows.unwrap_or(COMMON_VOCABULARY)),
        None => PlaceholderValues::Below(rows.unwrap_or(match input.element {
            DataType::Bool => 2,
            DataType::Uint8 => 256,
            _ => COMMON_VOCABULARY,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, element: DataType, shape: &[&str]) -> InputSpec {
        let dim = |text: &&str| match text.parse() {
            Ok(size) => Dim::Known(size),
            Err(_) if *text == "?" => Dim::Unknown,
            Err(_) => Dim::Named((*text).to_string()),
        };
        InputSpec {
            name: name.into(),
            element,
            shape: shape.iter().map(dim).collect(),
        }
    }

    #[test]
    fn a_language_model_gets_tokens_and_an_empty_cache() {
        use DataType::{Float, Int64};
        use PlaceholderValues::{Below, Ones, Positions, Zeros};
        let inputs = [
            input("past_key_values.0.key", Float, &["batch", "2", "past", "8"]),
            input("input_ids", Int64, &["batch", "length"]),
            input("attention_mask", Int64, &["batch", "past + length"]),
            input("position_ids", Int64, &["batch", "length"]),
        ];
        let tables = BTreeMap::from([("input_ids".to_string(), 500)]);
        let found = placeholders(&inputs, &tables, None);
        let found: Vec<_> = found
            .iter()
            .map(|one| (&one.sizes[..], one.values))
            .collect();
        let wanted: [(&[usize], _); 4] = [
            (&[1, 2, 0, 8], Zeros),
            (&[1, 16], Below(500)),
            (&[1, 16], Ones),
            (&[1, 16], Positions),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_picture_has_sides_wherever_its_channels_are() {
        for (shape, wanted) in [
            (["n", "h", "w", "3"], [1, 224, 224, 3]),
            (["n", "1", "h", "w"], [1, 1, 224, 224]),
            (["n", "?", "?", "?"], [1, 3, 224, 224]),
        ] {
            let found = placeholders(
                &[input("x", DataType::Float, &shape)],
                &BTreeMap::new(),
                None,
            );
            assert_eq!(found[0].sizes, wanted, "{shape:?}");
        }
    }

    #[test]
    fn a_picture_has_the_proposed_size_where_the_model_leaves_it_open() {
        let inputs = [input("x", DataType::Float, &["n", "h", "?", "3"])];
        let settings = ImageSettings {
            height: Some(64),
            width: Some(96),
            ..ImageSettings::default()
        };
        let found = placeholders(&inputs, &BTreeMap::new(), Some(&settings));
        assert_eq!(found[0].sizes, [1, 64, 96, 3]);
        let values = PlaceholderValues::Pixels {
            channels: 3,
            layout: ImageLayout::Nhwc,
        };
        assert_eq!(found[0].values, values);
    }

    #[test]
    fn a_row_of_floats_of_open_length_is_long_enough_for_sound() {
        let inputs = [
            input("input", DataType::Float, &["?", "?"]),
            input("state", DataType::Float, &["2", "?", "128"]),
            input("ids", DataType::Int64, &["?", "?"]),
        ];
        let found = placeholders(&inputs, &BTreeMap::new(), None);
        let sizes: Vec<_> = found.into_iter().map(|one| one.sizes).collect();
        assert_eq!(sizes, [vec![1, 512], vec![2, 16, 128], vec![1, 16]]);
    }

    #[test]
    fn other_inputs_get_values_of_their_type() {
        let values = |name: &str, element| {
            placeholders(
                &[input(name, element, &["4", "5", "6"])],
                &BTreeMap::new(),
                None,
            )[0]
            .values
        };
        assert_eq!(values("x", DataType::Float16), PlaceholderValues::Normal);
        assert_eq!(values("x", DataType::Uint8), PlaceholderValues::Below(256));
        assert_eq!(values("x", DataType::Bool), PlaceholderValues::Below(2));
        assert_eq!(values("pad_mask", DataType::Bool), PlaceholderValues::Ones);
    }
}
