//! Options for samples that are images.

use clap::Args;
use octet::samples::{
    AudioSettings, ChannelOrder, ImageChanges, ImageLayout, ImageSettings, ResizeMode,
    SampleSettings,
};
use octet::session::Session;

use super::Failure;

/// Options for the preprocessing of images.
#[derive(Args)]
#[command(next_help_heading = "Images as samples")]
pub struct ImageOptions {
    /// Preprocessing the model was trained with: imagenet, unit (0 to 1), signed (-1 to 1), clip,
    /// lite (EfficientNet-Lite), caffe (BGR, mean subtracted) or raw (0 to 255) [default: proposed
    /// from the model's metadata, names and shapes]
    #[arg(long, value_name = "PRESET")]
    image_preset: Option<String>,
    /// Height and width, if the model leaves them open [default: as for --image-preset]
    #[arg(long, value_name = "HxW")]
    image_size: Option<String>,
    /// Resizing to the input's size: shorter (resize the shorter side, crop the center), exact,
    /// letterbox or none [default: as for --image-preset]
    #[arg(long, value_name = "MODE")]
    resize: Option<String>,
    /// With --resize letterbox: grey value of the padding, 0 to 255 [default: 114]
    #[arg(long, value_name = "GREY")]
    pad: Option<u8>,
    /// With --resize shorter: length of the shorter side before the crop [default: 8/7 of the
    /// input's]
    #[arg(long, value_name = "PIXELS")]
    shorter_side: Option<u32>,
    /// Order of axes, nchw or nhwc [default: from the input's shape]
    #[arg(long, value_name = "ORDER")]
    layout: Option<String>,
    /// Order of color channels, rgb or bgr [default: the preset's]
    #[arg(long, value_name = "ORDER")]
    channels: Option<String>,
    /// Factor for each pixel value (0 to 255), applied first [default: the preset's]
    #[arg(long, value_name = "NUMBER")]
    scale: Option<f32>,
    /// Mean of each channel, subtracted next, as R,G,B [default: the preset's]
    #[arg(long, value_name = "A,B,C", allow_hyphen_values = true)]
    mean: Option<String>,
    /// Standard deviation of each channel, divided by last [default: the preset's]
    #[arg(long, value_name = "A,B,C")]
    std: Option<String>,
    /// For .wav files: samples a second that the model takes [default: from the model's metadata and
    /// names, or 16000]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1_000..=384_000), help_heading = "Sound as samples")]
    sample_rate: Option<u32>,
}

impl ImageOptions {
    /// The settings of these options without a model.
    pub fn settings(&self) -> Result<SampleSettings, Failure> {
        let image = apply_changes(&self.changes()?, &ImageSettings::default())?;
        Ok(SampleSettings {
            image,
            ..SampleSettings::default()
        })
    }

    /// The settings for a model: its proposal, then a settings document, then these options. Also
    /// returns a note on the parts that were proposed.
    pub fn proposed(
        &self,
        session: &Session,
        document: Option<&ImageChanges>,
        settings: SampleSettings,
    ) -> Result<(SampleSettings, Option<String>), Failure> {
        let changes = self.changes()?;
        let proposal = session.summary().pictures.as_ref();
        let usual = ImageSettings::default();
        let mut image = proposal.map_or(&usual, |proposal| &proposal.image).clone();
        for changes in document.into_iter().chain([&changes]) {
            image = apply_changes(changes, &image)?;
        }
        let complete =
            |changes: &ImageChanges| changes.preset.is_some() && changes.resize.is_some();
        let complete = complete(&changes) || document.is_some_and(complete);
        let note = proposal.filter(|_| !complete).map(|proposal| {
            let text = proposal.describe(&image);
            format!("{text}; --image-size, --resize and --image-preset change this")
        });
        let proposed = session.summary().audio.as_ref().map(|form| form.rate);
        let audio = match self.sample_rate.or(proposed) {
            Some(rate) => AudioSettings { rate },
            None => AudioSettings::default(),
        };
        let settings = SampleSettings {
            image,
            audio,
            ..settings
        };
        Ok((settings, note))
    }

    /// The options as changes of image settings.
    fn changes(&self) -> Result<ImageChanges, Failure> {
        let size = self.image_size.as_deref().map(size).transpose()?;
        Ok(ImageChanges {
            preset: self.image_preset.clone(),
            resize: parse_named("--resize", self.resize.as_deref(), &RESIZES)?,
            shorter_side: self.shorter_side,
            pad: self.pad,
            height: size.map(|(height, _)| height),
            width: size.map(|(_, width)| width),
            layout: parse_named("--layout", self.layout.as_deref(), &LAYOUTS)?,
            order: parse_named("--channels", self.channels.as_deref(), &ORDERS)?,
            scale: self.scale,
            mean: self
                .mean
                .as_deref()
                .map(|text| per_channel("--mean", text))
                .transpose()?,
            std: self
                .std
                .as_deref()
                .map(|text| per_channel("--std", text))
                .transpose()?,
        })
    }
}

const RESIZES: [(&str, ResizeMode); 4] = [
    ("shorter", ResizeMode::Shorter),
    ("exact", ResizeMode::Exact),
    ("letterbox", ResizeMode::Letterbox),
    ("none", ResizeMode::None),
];
const LAYOUTS: [(&str, ImageLayout); 2] =
    [("nchw", ImageLayout::Nchw), ("nhwc", ImageLayout::Nhwc)];
const ORDERS: [(&str, ChannelOrder); 2] = [("rgb", ChannelOrder::Rgb), ("bgr", ChannelOrder::Bgr)];

/// Applies changes to settings; an unknown preset is an error of its option.
fn apply_changes(changes: &ImageChanges, image: &ImageSettings) -> Result<ImageSettings, Failure> {
    if let Some(name) = &changes.preset
        && ImageSettings::preset(name).is_none()
    {
        return Err(one_of("--image-preset", name, &ImageSettings::PRESETS));
    }
    changes
        .over(image)
        .map_err(|why| Failure::usage(format!("--{why}")))
}

fn parse_named<T: Copy>(
    option: &str,
    value: Option<&str>,
    known: &[(&str, T)],
) -> Result<Option<T>, Failure> {
    let Some(value) = value else { return Ok(None) };
    match known.iter().find(|(name, _)| *name == value) {
        Some((_, found)) => Ok(Some(*found)),
        None => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            Err(one_of(option, value, &names))
        }
    }
}

fn size(text: &str) -> Result<(u32, u32), Failure> {
    let sides = text.split_once('x').map(|(h, w)| (h.parse(), w.parse()));
    match sides {
        Some((Ok(height), Ok(width))) => Ok((height, width)),
        _ => Err(Failure::usage(format!(
            "--image-size {text} is not a size: give HEIGHTxWIDTH, as in 640x480"
        ))),
    }
}

/// The failure for a value that is not among the known ones.
pub fn one_of(option: &str, value: &str, known: &[&str]) -> Failure {
    Failure::usage(format!(
        "{option} {value} is not known: choose {}",
        known.join(", ")
    ))
}

/// Parses one number for all channels, or one for each.
fn per_channel(option: &str, text: &str) -> Result<[f32; 3], Failure> {
    let numbers: Option<Vec<f32>> = text
        .split(',')
        .map(|n| n.trim().parse().ok().filter(|n: &f32| n.is_finite()))
        .collect();
    match numbers.as_deref() {
        Some([all]) => Ok([*all; 3]),
        Some([a, b, c]) => Ok([*a, *b, *c]),
        _ => Err(Failure::usage(format!(
            "{option} {text} is not a list of numbers: give one, or three as in 0.5,0.5,0.5"
        ))),
    }
}
