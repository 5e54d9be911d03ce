//! Options for samples that are pictures.

use clap::Args;
use octet::samples::{
    ChannelOrder, ImageChanges, ImageLayout, ImageSettings, ResizeMode, Settings,
};
use octet::session::Session;

use super::Failure;

/// How pictures become tensors.
#[derive(Args)]
#[command(next_help_heading = "Pictures as samples")]
pub struct ImageOptions {
    /// What the model was trained with: imagenet, unit (0 to 1), signed (-1 to 1), clip, lite (EfficientNet-Lite), caffe
    /// (blue first, less the mean) or raw (0 to 255) [default: what the model's metadata, names and shapes speak for]
    #[arg(long, value_name = "PRESET")]
    image_preset: Option<String>,
    /// Height and width, where the model leaves them open [default: as for --image-preset]
    #[arg(long, value_name = "HxW")]
    image_size: Option<String>,
    /// How a picture gets the input's size: shorter (its shorter side, then a crop from the centre), exact, letterbox or
    /// none [default: as for --image-preset]
    #[arg(long, value_name = "WAY")]
    resize: Option<String>,
    /// With --resize letterbox: the grey around a picture, 0 to 255 [default: 114]
    #[arg(long, value_name = "GREY")]
    pad: Option<u8>,
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
    /// The settings these options are, where nothing is known of the model.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let image = over(&self.changes()?, &ImageSettings::default())?;
        Ok(Settings {
            image,
            ..Settings::default()
        })
    }

    /// The settings these options are for a model, over those of a settings document if there is one, and a sentence on
    /// what of them was proposed.
    pub fn proposed(
        &self,
        session: &Session,
        document: Option<&ImageChanges>,
        settings: Settings,
    ) -> Result<(Settings, Option<String>), Failure> {
        let changes = self.changes()?;
        let proposal = session.summary().pictures.as_ref();
        let usual = ImageSettings::default();
        let mut image = proposal.map_or(&usual, |proposal| &proposal.image).clone();
        for said in document.into_iter().chain([&changes]) {
            image = over(said, &image)?;
        }
        let all_said = |said: &ImageChanges| said.preset.is_some() && said.resize.is_some();
        let all_said = all_said(&changes) || document.is_some_and(all_said);
        let told = proposal.filter(|_| !all_said).map(|proposal| {
            let said = proposal.describe(&image);
            format!("{said}; --image-size, --resize and --image-preset say otherwise")
        });
        Ok((Settings { image, ..settings }, told))
    }

    /// What the options say.
    fn changes(&self) -> Result<ImageChanges, Failure> {
        let size = self.image_size.as_deref().map(size).transpose()?;
        Ok(ImageChanges {
            preset: self.image_preset.clone(),
            resize: named("--resize", self.resize.as_deref(), &WAYS)?,
            shorter_side: self.shorter_side,
            pad: self.pad,
            height: size.map(|(height, _)| height),
            width: size.map(|(_, width)| width),
            layout: named("--layout", self.layout.as_deref(), &LAYOUTS)?,
            order: named("--channels", self.channels.as_deref(), &ORDERS)?,
            scale: self.scale,
            mean: self
                .mean
                .as_deref()
                .map(|text| three("--mean", text))
                .transpose()?,
            std: self
                .std
                .as_deref()
                .map(|text| three("--std", text))
                .transpose()?,
        })
    }
}

const WAYS: [(&str, ResizeMode); 4] = [
    ("shorter", ResizeMode::Shorter),
    ("exact", ResizeMode::Exact),
    ("letterbox", ResizeMode::Letterbox),
    ("none", ResizeMode::None),
];
const LAYOUTS: [(&str, ImageLayout); 2] =
    [("nchw", ImageLayout::Nchw), ("nhwc", ImageLayout::Nhwc)];
const ORDERS: [(&str, ChannelOrder); 2] = [("rgb", ChannelOrder::Rgb), ("bgr", ChannelOrder::Bgr)];

/// Changes over settings; a preset that nobody knows is said of its option.
fn over(changes: &ImageChanges, image: &ImageSettings) -> Result<ImageSettings, Failure> {
    if let Some(name) = &changes.preset
        && ImageSettings::preset(name).is_none()
    {
        return Err(one_of("--image-preset", name, &ImageSettings::PRESETS));
    }
    changes
        .over(image)
        .map_err(|why| Failure::usage(format!("--{why}")))
}

fn named<T: Copy>(
    option: &str,
    given: Option<&str>,
    known: &[(&str, T)],
) -> Result<Option<T>, Failure> {
    let Some(given) = given else { return Ok(None) };
    match known.iter().find(|(name, _)| *name == given) {
        Some((_, found)) => Ok(Some(*found)),
        None => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            Err(one_of(option, given, &names))
        }
    }
}

fn size(text: &str) -> Result<(u32, u32), Failure> {
    let sides = text.split_once('x').map(|(h, w)| (h.parse(), w.parse()));
    match sides {
        Some((Ok(height), Ok(width))) => Ok((height, width)),
        _ => Err(Failure::usage(format!(
            "--image-size {text} is no size: give HEIGHTxWIDTH, as in 640x480"
        ))),
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
