//! Model families known by name, with the preprocessing of their authors.

use std::ops::Deref;

use super::super::image_settings::ResizeMode;

/// Kind of a model, as far as sizes depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelKind {
    Detector,
    Classifier,
    /// The output is an image.
    Dense,
    Other,
}

impl ModelKind {
    pub(super) fn usual_size(self) -> u32 {
        match self {
            ModelKind::Detector => 640,
            ModelKind::Classifier => 224,
            ModelKind::Dense => 512,
            ModelKind::Other => 224,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            ModelKind::Detector => "detectors",
            ModelKind::Classifier => "classifiers",
            ModelKind::Dense => "models that output an image",
            ModelKind::Other => "models for images",
        }
    }
}

/// Models that share a word in their names.
#[derive(Debug)]
pub(super) struct Family {
    /// Words of six or more letters match anywhere in a name without its separators. Shorter ones
    /// must match a part of it. A `+` requires both parts.
    words: &'static [&'static str],
    pub(super) kind: ModelKind,
    pub(super) preset: &'static str,
    pub(super) bgr: bool,
    pub(super) resize: ResizeMode,
    /// Height and width.
    pub(super) size: Option<(u32, u32)>,
    /// True if the shorter side is resized to the input's, so that only the longer side is cropped.
    pub(super) whole: bool,
}

/// A family and the word that matched.
pub(super) struct KnownFamily {
    family: &'static Family,
    word: &'static str,
}

impl Deref for KnownFamily {
    type Target = Family;

    fn deref(&self) -> &Family {
        self.family
    }
}

impl KnownFamily {
    /// States that models of this name usually have a property.
    pub(super) fn usually_have(&self, what: &str) -> String {
        format!("models named {:?} usually have {what}", self.word)
    }
}

const fn family(
    words: &'static [&'static str],
    kind: ModelKind,
    preset: &'static str,
    resize: ResizeMode,
    size: u32,
) -> Family {
    let (bgr, whole) = (false, false);
    let size = if size == 0 { None } else { Some((size, size)) };
    Family {
        words,
        kind,
        preset,
        bgr,
        resize,
        size,
        whole,
    }
}

use ModelKind::{Classifier, Dense, Detector, Other};
use ResizeMode::{Exact, Letterbox, Shorter};

/// The first match counts, so derived names precede the names they contain.
const FAMILIES: &[Family] = &[
    Family {
        bgr: true,
        ..family(&["yolox"], Detector, "raw", Letterbox, 640)
    },
    Family {
        size: Some((48, 192)),
        ..family(&["ppocr+cls", "ppocrcls"], Other, "signed", Exact, 0)
    },
    Family {
        size: Some((48, 320)),
        ..family(&["ppocr+rec", "ppocrrec"], Other, "signed", Exact, 0)
    },
    family(&["ppocr+det", "ppocrdet"], Dense, "imagenet", Exact, 960),
    family(&["ppyolo", "picodet"], Detector, "imagenet", Exact, 640),
    family(&["yolos"], Detector, "imagenet", Exact, 640),
    family(&["rtdetr", "dfine"], Detector, "unit", Exact, 640),
    family(&["yolo"], Detector, "unit", Letterbox, 640),
    family(&["ultraface", "rfb"], Detector, "lite", Exact, 320),
    family(&["centerface"], Detector, "raw", Exact, 640),
    family(&["detr"], Detector, "imagenet", Exact, 800),
    family(&["efficientnetlite"], Classifier, "lite", Shorter, 224),
    family(&["siglip"], Other, "signed", Exact, 224),
    Family {
        whole: true,
        ..family(&["clip"], Other, "clip", Shorter, 224)
    },
    family(&["blip"], Other, "clip", Exact, 384),
    family(&["depthanything"], Dense, "imagenet", Exact, 518),
    family(&["midas", "dpt"], Dense, "imagenet", Exact, 384),
    family(
        &["segformer", "deeplab", "lraspp", "bisenet", "pspnet"],
        Dense,
        "imagenet",
        Exact,
        512,
    ),
    family(&["u2net"], Dense, "imagenet", Exact, 320),
    family(&["modnet"], Dense, "signed", Exact, 512),
    family(
        &["esrgan", "superres", "swinir"],
        Dense,
        "unit",
        Shorter,
        256,
    ),
    family(&["sam"], Dense, "imagenet", Exact, 1024),
    family(
        &["inception", "xception", "nasnet"],
        Classifier,
        "signed",
        Shorter,
        299,
    ),
    Family {
        bgr: true,
        ..family(&["mobilevit"], Classifier, "unit", Shorter, 256)
    },
    family(&["beit"], Classifier, "signed", Exact, 224),
    family(
        &[
            "resnet",
            "mobilenet",
            "efficientnet",
            "densenet",
            "convnext",
            "regnet",
            "squeezenet",
            "shufflenet",
            "mnasnet",
            "alexnet",
            "googlenet",
            "ghostnet",
            "vgg",
            "deit",
            "swin",
            "dino",
            "levit",
            "resnext",
        ],
        Classifier,
        "imagenet",
        Shorter,
        224,
    ),
    family(&["vit"], Classifier, "signed", Exact, 224),
];

/// The family that matches one of these names.
pub(super) fn named(names: &[String]) -> Option<KnownFamily> {
    let has = |word: &str| {
        let mut parts = word.split('+');
        parts.all(|part| names.iter().any(|name| is_named(name, part)))
    };
    FAMILIES.iter().find_map(|family| {
        let word = family.words.iter().find(|word| has(word))?;
        Some(KnownFamily { family, word })
    })
}

fn is_named(name: &str, word: &str) -> bool {
    if word.len() >= 6 {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        return letters.collect::<String>().contains(word);
    }
    // Only a version may follow a short word: "vit" matches "vit_b_16", not "vitals".
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(|part| part.strip_prefix(word))
        .any(|rest| {
            let number = rest.strip_prefix('v').unwrap_or(rest);
            rest.is_empty() || number.starts_with(|c: char| c.is_ascii_digit())
        })
}
