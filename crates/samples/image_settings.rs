//! Settings for the conversion of images to tensors, and presets.

use serde::{Deserialize, Serialize};

/// Preprocessing of images. The default is that of ImageNet classifiers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ImageSettings {
    /// Way to bring the image to the input's height and width.
    pub resize: ResizeMode,
    /// With [`ResizeMode::Shorter`], the length of the shorter side before the crop. The default is
    /// 8/7 of the input's shorter side, which is 256 for 224.
    #[serde(alias = "shorter_side")]
    pub shorter_side: Option<u32>,
    /// Grey value, 0 to 255, of the border that [`ResizeMode::Letterbox`] adds.
    pub pad: u8,
    /// Height, where the model leaves it open.
    pub height: Option<u32>,
    /// Width, where the model leaves it open.
    pub width: Option<u32>,
    /// Order of the axes; by default inferred from the input's shape.
    pub layout: Option<ImageLayout>,
    /// Order of the colour channels.
    pub order: ChannelOrder,
    /// Factor for a pixel (0 to 255); applied first.
    pub scale: f32,
    /// Value that is subtracted next, by channel in the order of the tensor.
    pub mean: [f32; 3],
    /// Divisor that is applied last, by channel.
    pub std: [f32; 3],
}

/// Way to bring an image to the height and width of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResizeMode {
    /// Resizes the shorter side to a given length, then crops the centre.
    Shorter,
    /// Resizes to exactly the input's size; proportions may change.
    Exact,
    /// Fits the image into the input's size and fills the borders with grey.
    Letterbox,
    /// Keeps the image as it is: it must have the input's size.
    None,
}

/// Order of an image's axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ImageLayout {
    Nchw,
    Nhwc,
}

/// Order of an image's colour channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ChannelOrder {
    Rgb,
    Bgr,
}

impl Default for ImageSettings {
    fn default() -> Self {
        ImageSettings {
            resize: ResizeMode::Shorter,
            shorter_side: None,
            pad: 114,
            height: None,
            width: None,
            layout: None,
            order: ChannelOrder::Rgb,
            scale: 1.0 / 255.0,
            mean: [0.485, 0.456, 0.406],
            std: [0.229, 0.224, 0.225],
        }
    }
}

impl ImageSettings {
    /// Names of the presets.
    pub const PRESETS: [&'static str; 7] =
        ["imagenet", "unit", "signed", "clip", "lite", "caffe", "raw"];

    /// Takes the channel order, scale, mean and std of other settings. Size and resizing stay.
    pub fn take_values(&mut self, from: &ImageSettings) {
        (self.order, self.scale, self.mean, self.std) =
            (from.order, from.scale, from.mean, from.std);
    }

    /// Settings with which many models were trained, by name.
    pub fn preset(name: &str) -> Option<ImageSettings> {
        let with = |order, scale, mean, std| {
            Some(ImageSettings {
                order,
                scale,
                mean,
                std,
                ..ImageSettings::default()
            })
        };
        let one = [1.0; 3];
        match name {
            // torchvision and timm: normalized by the statistics of ImageNet.
            "imagenet" => Some(ImageSettings::default()),
            // YOLO and others: 0 to 1.
            "unit" => with(ChannelOrder::Rgb, 1.0 / 255.0, [0.0; 3], one),
            // MobileNet, ViT, Inception: -1 to 1.
            "signed" => with(ChannelOrder::Rgb, 1.0, [127.5; 3], [127.5; 3]),
            // CLIP and BLIP: normalized by the statistics of their training images.
            "clip" => with(
                ChannelOrder::Rgb,
                1.0 / 255.0,
                [0.481_454_66, 0.457_827_5, 0.408_210_73],
                [0.268_629_55, 0.261_302_6, 0.275_777_1],
            ),
            // EfficientNet-Lite.
            "lite" => with(ChannelOrder::Rgb, 1.0, [127.0; 3], [128.0; 3]),
            // Models that began in Caffe: BGR, with the mean colour subtracted.
            "caffe" => with(ChannelOrder::Bgr, 1.0, [104.0, 117.0, 123.0], one),
            // 0 to 255.
            "raw" => with(ChannelOrder::Rgb, 1.0, [0.0; 3], one),
            _ => None,
        }
    }
}

/// Changes by the user to the settings proposed for the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)] // as in `ImageSettings`
pub struct ImageChanges {
    /// Preset that sets the values first. Other fields override it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<ResizeMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shorter_side: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<ImageLayout>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<ChannelOrder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<[f32; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std: Option<[f32; 3]>,
}

/// Changes that no image can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageSettingsError {
    /// No preset has this name.
    #[error("unknown preset {0:?}: choose {presets}", presets = ImageSettings::PRESETS.join(", "))]
    Preset(String),
    /// The standard deviation of a channel is zero.
    #[error("std contains 0: use numbers above 0")]
    ZeroStd,
}

impl ImageChanges {
    /// Applies the changes to the proposed settings.
    pub fn over(&self, proposed: &ImageSettings) -> Result<ImageSettings, ImageSettingsError> {
        let mut image = proposed.clone();
        if let Some(name) = &self.preset {
            let preset = ImageSettings::preset(name)
                .ok_or_else(|| ImageSettingsError::Preset(name.clone()))?;
            image.take_values(&preset);
        }
        if let Some(resize) = self.resize {
            (image.resize, image.shorter_side) = (resize, None);
        }
        let sides = (self.height.or(image.height), self.width.or(image.width));
        if let (Some(height), Some(width)) = sides
            && sides != (image.height, image.width)
        {
            // The proposed shorter side belonged to the proposed size.
            image.shorter_side = image.shorter_side.map(|_| height.min(width));
        }
        (image.height, image.width) = sides;
        image.shorter_side = self.shorter_side.or(image.shorter_side);
        image.pad = self.pad.unwrap_or(image.pad);
        image.layout = self.layout.or(image.layout);
        image.order = self.order.unwrap_or(image.order);
        image.scale = self.scale.unwrap_or(image.scale);
        image.mean = self.mean.unwrap_or(image.mean);
        image.std = self.std.unwrap_or(image.std);
        match image.std.contains(&0.0) {
            true => Err(ImageSettingsError::ZeroStd),
            false => Ok(image),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_preset_exists() {
        assert!(
            ImageSettings::PRESETS
                .iter()
                .all(|p| ImageSettings::preset(p).is_some())
        );
        assert_eq!(
            ImageSettings::preset("imagenet"),
            Some(ImageSettings::default())
        );
        assert_eq!(ImageSettings::preset("other"), None);
    }

    #[test]
    fn changes_override_the_proposal() {
        let proposed = ImageSettings {
            resize: ResizeMode::Letterbox,
            height: Some(640),
            width: Some(640),
            ..ImageSettings::preset("unit").unwrap()
        };
        let read = |text: &str| serde_json::from_str::<ImageChanges>(text).unwrap();
        assert_eq!(read("{}").over(&proposed), Ok(proposed.clone()));
        let changes = read(r#"{"preset": "signed", "width": 320, "pad": 0, "mean": [1, 2, 3]}"#);
        let image = changes.over(&proposed).unwrap();
        assert_eq!(
            (image.height, image.width, image.pad),
            (Some(640), Some(320), 0)
        );
        assert_eq!((image.resize, image.scale), (ResizeMode::Letterbox, 1.0));
        assert_eq!((image.mean, image.std), ([1.0, 2.0, 3.0], [127.5; 3]));
        assert!(
            read(r#"{"preset": "x"}"#)
                .over(&proposed)
                .unwrap_err()
                .to_string()
                .contains("imagenet")
        );
        assert!(serde_json::from_str::<ImageChanges>(r#"{"sise": 1}"#).is_err());
    }
}
