//! Proposed preprocessing of images for a model: size, way of resizing and values.
//!
//! ONNX files need not state any of these, so the proposal combines hints: shapes, metadata of some
//! exporters, names of file and input, and the graph's first arithmetic on its input. Each part
//! states its hint and its certainty. The user can change all of them.

mod families;
mod hints;
mod shape_trials;

use serde::Serialize;

use shape_trials::Trial;

use super::InputSpec;
use super::certainty::Certainty;
use super::image_placement::axes;
use super::image_settings::{ChannelOrder, ImageLayout, ImageSettings, ResizeMode};
use families::{KnownFamily, ModelKind};
use hints::Hints;
use octet_graph::{Dim, Model};

/// Proposed preprocessing of images for a model, with reasons.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The settings.
    pub image: ImageSettings,
    /// Preset that their values come from.
    pub preset: &'static str,
    /// True if the model leaves height or width open.
    pub open: bool,
    /// Height and width must be multiples of this number; 1 for any size.
    pub multiple: u32,
    /// Reasons for each part.
    pub reasons: Vec<Reason>,
}

/// Reason for a part of a proposal.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Reason {
    /// The part.
    pub of: ProposalPart,
    /// Certainty of the part.
    pub certainty: Certainty,
    /// The hint, as the end of a sentence.
    pub why: String,
}

/// A part of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ProposalPart {
    Size,
    Resize,
    Values,
    Layout,
}

/// One part with its certainty and reason.
type WithReason<T> = (T, Certainty, String);

impl Proposal {
    /// Proposal for a model with these inputs; `None` if it takes no images.
    pub fn new(file: &str, model: &Model, inputs: &[InputSpec]) -> Option<Proposal> {
        let [input] = inputs else { return None };
        let place = axes(input)?;
        let hints = Hints::new(file, model, input);
        let family = hints.family();
        let family = family.as_ref();
        let detector = hints.is_detector() || hints.has_pyramid();
        let mut reasons = Vec::new();
        let mut note = |of, certainty, why: String| reasons.push(Reason { of, certainty, why });

        let (preset, certainty, why) = values(&hints, family, detector, place.layout, input);
        let mut image = ImageSettings::preset(preset).unwrap_or_default();
        note(ProposalPart::Values, certainty, why);
        if let Some(family) = family.filter(|family| family.preset == preset && family.bgr) {
            image.order = ChannelOrder::Bgr;
            note(
                ProposalPart::Values,
                Certainty::Likely,
                family.usually_have("BGR channels"),
            );
        }
        if !place.explicit {
            image.layout = Some(place.layout);
            let why = "the shape does not show the channel axis".to_string();
            note(ProposalPart::Layout, Certainty::Guess, why);
        }

        let trial = Trial::new(model, input, place.clone());
        let known = |dim: &Dim| match dim {
            Dim::Known(size) if *size > 0 => u32::try_from(*size).ok(),
            _ => None,
        };
        let fixed = (known(place.height), known(place.width));
        let open = fixed.0.is_none() || fixed.1.is_none();
        let multiple = match open {
            true => hints.stride().or_else(|| trial.multiple()).unwrap_or(1),
            false => 1,
        };
        let ((height, width), certainty, why) = match fixed {
            (Some(height), Some(width)) => {
                let why = "the model's input has this size and no other".to_string();
                ((height, width), Certainty::Sure, why)
            }
            sides => size(&hints, family, detector, sides, &trial, multiple),
        };
        if open {
            (image.height, image.width) = (Some(height), Some(width));
        }
        note(ProposalPart::Size, certainty, why);

        let (resize, certainty, why) = fit(&hints, family, detector, (height, width));
        image.resize = resize;
        if resize == ResizeMode::Shorter && hints.crops_nothing(family) {
            image.shorter_side = Some(height.min(width));
        }
        note(ProposalPart::Resize, certainty, why);
        Some(Proposal {
            image,
            preset,
            open,
            multiple,
            reasons,
        })
    }
}

impl Proposal {
    /// Describes preprocessing with these settings. Parts that match the proposal state their
    /// reasons.
    pub fn describe(&self, image: &ImageSettings) -> String {
        let why = |of: ProposalPart, kept: bool| {
            let found = self.reasons.iter().find(|reason| kept && reason.of == of);
            found.map_or(String::new(), |reason| format!(" ({})", reason.why))
        };
        let mine = &self.image;
        let size = match (image.height, image.width) {
            _ if image.resize == ResizeMode::None => "stay as large as they are".to_string(),
            (Some(height), Some(width)) => format!("become {height} high and {width} wide"),
            _ => "get the input's size".to_string(),
        };
        let sized = (image.height, image.width) == (mine.height, mine.width);
        let way = match image.resize {
            ResizeMode::Shorter => "cropped".to_string(),
            ResizeMode::Exact => "stretched".to_string(),
            ResizeMode::Letterbox => format!("with grey {} around them", image.pad),
            ResizeMode::None => "uncropped".to_string(),
        };
        let values = ImageSettings::PRESETS.iter().find(|name| {
            let mut with = image.clone();
            with.take_values(&ImageSettings::preset(name).unwrap_or_default());
            with == *image
        });
        let of_values = (image.scale, image.mean, image.std) == (mine.scale, mine.mean, mine.std);
        format!(
            "images {size}{}, {way}{}, with the values of {}{}",
            why(
                ProposalPart::Size,
                sized && self.open && image.resize != ResizeMode::None
            ),
            why(ProposalPart::Resize, image.resize == mine.resize),
            values.map_or("your own".into(), |name| format!("{name:?}")),
            why(ProposalPart::Values, of_values),
        )
    }
}

/// Preset of the values.
fn values(
    hints: &Hints<'_>,
    family: Option<&KnownFamily>,
    detector: bool,
    layout: ImageLayout,
    input: &InputSpec,
) -> WithReason<&'static str> {
    if !input.element.is_float() {
        let why = format!("the input takes {}", input.element.name());
        return ("raw", Certainty::Sure, why);
    }
    if hints.is_ultralytics() {
        let why = "the file was exported by Ultralytics, whose models take 0 to 1".to_string();
        return ("unit", Certainty::Sure, why);
    }
    if let Some((preset, why)) = hints.own_arithmetic() {
        return (preset, Certainty::Likely, why);
    }
    if let Some(family) = family {
        return (
            family.preset,
            Certainty::Likely,
            family.usually_have("these values"),
        );
    }
    if hints.has_pyramid() {
        let why = "its outputs are those of PicoDet, which takes these values".to_string();
        return ("imagenet", Certainty::Likely, why);
    }
    if detector {
        let why = "its output has the shape of YOLO's, whose models take 0 to 1".to_string();
        return ("unit", Certainty::Likely, why);
    }
    if layout == ImageLayout::Nhwc && hints.is_from_tensorflow() {
        let why = "most models from TensorFlow take -1 to 1".to_string();
        return ("signed", Certainty::Guess, why);
    }
    let why = "most models trained on photos take these values".to_string();
    ("imagenet", Certainty::Guess, why)
}

/// Height and width, where the model leaves one of them open.
fn size(
    hints: &Hints<'_>,
    family: Option<&KnownFamily>,
    detector: bool,
    fixed: (Option<u32>, Option<u32>),
    trial: &Trial<'_>,
    multiple: u32,
) -> WithReason<(u32, u32)> {
    let whole = |size: u32| size.div_ceil(multiple) * multiple;
    let both = |(height, width): (u32, u32)| {
        let sides = (fixed.0.unwrap_or(height), fixed.1.unwrap_or(width));
        (
            fixed.0.unwrap_or_else(|| whole(sides.0)),
            fixed.1.unwrap_or_else(|| whole(sides.1)),
        )
    };
    let fits = |size: &(u32, u32)| trial.refusal(both(*size)).is_none();
    if let Some(size) = hints.imgsz().filter(fits) {
        return (
            both(size),
            Certainty::Sure,
            "the file's metadata state it: imgsz".into(),
        );
    }
    let none = fixed == (None, None);
    if let Some(only) = none.then(|| trial.only_size()).flatten() {
        let why = "of the usual sizes the model accepts only this one".to_string();
        return (both((only, only)), Certainty::Sure, why);
    }
    if let Some((size, name)) = hints.size_in_names().filter(|(size, _)| fits(size)) {
        return (
            both(size),
            Certainty::Likely,
            format!("{name:?} contains it"),
        );
    }
    let one = fixed.0.or(fixed.1).filter(|_| family.is_none());
    if let Some(side) = one {
        // A line of text is about seven times as wide as it is high.
        let other = if side <= 64 { side * 20 / 3 } else { side };
        let why = "one side is fixed, the other open".to_string();
        return (both((other, other)), Certainty::Guess, why);
    }
    let kind = family.map_or_else(|| hints.kind(detector), |family| family.kind);
    let usual = kind.usual_size();
    let usual = family
        .and_then(|family| family.size)
        .unwrap_or((usual, usual));
    let (certainty, why) = match family {
        Some(family) => (Certainty::Likely, family.usually_have("this size")),
        None if detector => (Certainty::Likely, "it is usual for detectors".into()),
        None => (Certainty::Guess, format!("it is usual for {}", kind.name())),
    };
    (both(usual), certainty, why)
}

/// Way of resizing.
fn fit(
    hints: &Hints<'_>,
    family: Option<&KnownFamily>,
    detector: bool,
    (height, width): (u32, u32),
) -> WithReason<ResizeMode> {
    if hints.is_ultralytics() {
        return match hints.task() {
            Some("classify") => (
                ResizeMode::Shorter,
                Certainty::Sure,
                "Ultralytics crops for classifiers".into(),
            ),
            _ => (
                ResizeMode::Letterbox,
                Certainty::Sure,
                "Ultralytics letterboxes photos for detectors".into(),
            ),
        };
    }
    if let Some(family) = family {
        return (
            family.resize,
            Certainty::Likely,
            family.usually_have("this way of resizing"),
        );
    }
    if hints.has_pyramid() {
        let why = "PicoDet is trained on photos that are stretched to its size".to_string();
        return (ResizeMode::Exact, Certainty::Likely, why);
    }
    match hints.kind(detector) {
        ModelKind::Detector => (
            ResizeMode::Letterbox,
            Certainty::Likely,
            "detectors of this kind are trained on letterboxed photos".into(),
        ),
        ModelKind::Classifier => (
            ResizeMode::Shorter,
            Certainty::Likely,
            "classifiers are usually trained on crops".into(),
        ),
        _ if height != width => (
            ResizeMode::Exact,
            Certainty::Guess,
            "the input is not square".into(),
        ),
        _ => (ResizeMode::Shorter, Certainty::Guess, "it is common".into()),
    }
}

#[cfg(test)]
mod tests;
