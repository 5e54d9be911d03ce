//! Options for samples that are pictures.

use clap::Args;
use octet::samples::{ImageSettings, Layout, Order, Resize, Settings};

use super::{Failure, files};

/// How pictures become tensors.
#[derive(Args)]
#[command(next_help_heading = "Pictures as samples")]
pub struct ImageOptions {
    /// All of it as YAML or JSON, or a file of that, with the keys that a report has under samples.image; options here come over it
    #[arg(long, value_name = "SETTINGS", conflicts_with = "image_preset")]
    image_settings: Option<String>,
    /// What the model was trained with: imagenet, unit (0 to 1), signed (-1 to 1), lite
    /// (EfficientNet-Lite), caffe (blue first, less the mean) or raw (0 to 255) [default: imagenet]
    #[arg(long, value_name = "PRESET")]
    image_preset: Option<String>,
    /// Height and width, where the model leaves them open
    #[arg(long, value_name = "HxW")]
    image_size: Option<String>,
    /// How a picture gets the input's size: shorter (its shorter side, then a crop from the centre),
    /// exact, letterbox or none [default: shorter]
    #[arg(long, value_name = "WAY")]
    resize: Option<String>,
    /// With --resize shorter: what the shorter side becomes before the crop (8/7 of the input's)
    #[arg(long, value_name = "PIXELS")]
    shorter_side: Option<u32>,
    /// The order of axes, nchw or nhwc; told from the input's shape by default
    #[arg(long, value_name = "ORDER")]
    layout: Option<String>,
    /// The order of colours, rgb or bgr, in place of the preset's
    #[arg(long, value_name = "ORDER")]
    channels: Option<String>,
    /// What each pixel (0 to 255) is multiplied with first, in place of the preset's
    #[arg(long, value_name = "NUMBER")]
    scale: Option<f32>,
    /// What is taken off each channel then, as R,G,B, in place of the preset's
    #[arg(long, value_name = "A,B,C", allow_hyphen_values = true)]
    mean: Option<String>,
    /// What each channel is divided by last, in place of the preset's
    #[arg(long, value_name = "A,B,C")]
    std: Option<String>,
}

impl ImageOptions {
    /// The settings these options are.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let mut image = self.document()?;
        image.resize = match self.resize.as_deref() {
            None => image.resize,
            Some("shorter") => Resize::Shorter,
            Some("exact") => Resize::Exact,
            Some("letterbox") => Resize::Letterbox,
            Some("none") => Resize::None,
            Some(other) => {
                return Err(one_of(
                    "--resize",
                    other,
                    &["shorter", "exact", "letterbox", "none"],
                ));
            }
        };
        image.layout = match self.layout.as_deref() {
            None => image.layout,
            Some("nchw") => Some(Layout::Nchw),
            Some("nhwc") => Some(Layout::Nhwc),
            Some(other) => return Err(one_of("--layout", other, &["nchw", "nhwc"])),
        };
        match self.channels.as_deref() {
            None => {}
            Some("rgb") => image.order = Order::Rgb,
            Some("bgr") => image.order = Order::Bgr,
            Some(other) => return Err(one_of("--channels", other, &["rgb", "bgr"])),
        }
        if let Some(size) = &self.image_size {
            let sides = size.split_once('x').map(|(h, w)| (h.parse(), w.parse()));
            let Some((Ok(height), Ok(width))) = sides else {
                return Err(Failure::usage(format!(
                    "--image-size {size} is no size: give HEIGHTxWIDTH, as in 640x480"
                )));
            };
            (image.height, image.width) = (Some(height), Some(width));
        }
        image.shorter_side = self.shorter_side.or(image.shorter_side);
        image.scale = self.scale.unwrap_or(image.scale);
        if let Some(mean) = &self.mean {
            image.mean = three("--mean", mean)?;
        }
        if let Some(std) = &self.std {
            image.std = three("--std", std)?;
            if image.std.contains(&0.0) {
                return Err(Failure::usage(format!(
                    "--std {std} would divide by zero: give numbers above it"
                )));
            }
        }
        Ok(Settings { image, demo: false })
    }

    /// What the other options are laid over.
    fn document(&self) -> Result<ImageSettings, Failure> {
        if let Some(given) = &self.image_settings {
            let (place, text) = files::inline_or_read("--image-settings", given)?;
            return serde_yaml_ng::from_slice(&text)
                .map_err(|cause| Failure::usage(format!("{place}: {cause}")));
        }
        let preset = self.image_preset.as_deref().unwrap_or("imagenet");
        ImageSettings::preset(preset)
            .ok_or_else(|| one_of("--image-preset", preset, &ImageSettings::PRESETS))
    }
}

/// The failure of a value that is none of those there are.
pub fn one_of(option: &str, given: &str, known: &[&str]) -> Failure {
    Failure::usage(format!(
        "{option} {given} is not known: choose {}",
        known.join(", ")
    ))
}

/// One number for all channels, or one for each.
fn three(option: &str, text: &str) -> Result<[f32; 3], Failure> {
    let numbers: Option<Vec<f32>> = text
        .split(',')
        .map(|n| n.trim().parse().ok().filter(|n: &f32| n.is_finite()))
        .collect();
    match numbers.as_deref() {
        Some([all]) => Ok([*all; 3]),
        Some([a, b, c]) => Ok([*a, *b, *c]),
        _ => Err(Failure::usage(format!(
            "{option} {text} is no list of numbers: give one, or three as in 0.5,0.5,0.5"
        ))),
    }
}
