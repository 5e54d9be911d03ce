//! The settings by which a picture becomes a tensor, and presets of them.

use serde::{Deserialize, Serialize};

/// How a picture becomes a tensor. The default is what ImageNet classifiers are trained with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ImageSettings {
    /// How the picture gets the input's height and width.
    pub resize: Resize,
    /// With [`Resize::Shorter`], what the shorter side becomes before the crop; by default 8/7 of
    /// the input's, which is 256 for 224.
    #[serde(alias = "shorter_side")]
    pub shorter_side: Option<u32>,
    /// The grey, 0 to 255, that [`Resize::Letterbox`] puts around a picture.
    pub pad: u8,
    /// The height where the model leaves it open.
    pub height: Option<u32>,
    /// The width where the model leaves it open.
    pub width: Option<u32>,
    /// The order of axes; by default told from the input's shape.
    pub layout: Option<Layout>,
    /// The order of colours.
    pub order: Order,
    /// What a pixel (0 to 255) is multiplied with first.
    pub scale: f32,
    /// What is then taken off, by channel in the order of the tensor.
    pub mean: [f32; 3],
    /// What is then divided by.
    pub std: [f32; 3],
}

/// How a picture gets the height and width of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// The shorter side to a given length, then a crop from the centre.
    Shorter,
    /// To exactly the input's size, whatever that does to the proportions.
    Exact,
    /// As large as fits, the rest filled with grey on both sides.
    Letterbox,
    /// Not at all: the picture must have the size.
    None,
}

/// The order of a picture's axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Layout {
    Nchw,
    Nhwc,
}

/// The order of a picture's colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Order {
    Rgb,
    Bgr,
}

impl Default for ImageSettings {
    fn default() -> Self {
        ImageSettings {
            resize: Resize::Shorter,
            shorter_side: None,
            pad: 114,
            height: None,
            width: None,
            layout: None,
            order: Order::Rgb,
            scale: 1.0 / 255.0,
            mean: [0.485, 0.456, 0.406],
            std: [0.229, 0.224, 0.225],
        }
    }
}

impl ImageSettings {
    /// The names of the presets.
    pub const PRESETS: [&'static str; 7] =
        ["imagenet", "unit", "signed", "clip", "lite", "caffe", "raw"];

    /// Takes the values of others, as scale and mean; the size and how a picture gets it stay.
    pub fn take_values(&mut self, from: &ImageSettings) {
        (self.order, self.scale, self.mean, self.std) =
            (from.order, from.scale, from.mean, from.std);
    }

    /// Settings many models were trained with, by name.
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
            // torchvision and timm: by the statistics of ImageNet.
            "imagenet" => Some(ImageSettings::default()),
            // YOLO and others: 0 to 1.
            "unit" => with(Order::Rgb, 1.0 / 255.0, [0.0; 3], one),
            // MobileNet, ViT, Inception: -1 to 1.
            "signed" => with(Order::Rgb, 1.0, [127.5; 3], [127.5; 3]),
            // CLIP and BLIP: by the statistics of their own pictures.
            "clip" => with(
                Order::Rgb,
                1.0 / 255.0,
                [0.481_454_66, 0.457_827_5, 0.408_210_73],
                [0.268_629_54, 0.261_302_58, 0.275_777_11],
            ),
            // EfficientNet-Lite.
            "lite" => with(Order::Rgb, 1.0, [127.0; 3], [128.0; 3]),
            // Models that began in Caffe: blue first, less the mean colour.
            "caffe" => with(Order::Bgr, 1.0, [104.0, 117.0, 123.0], one),
            // 0 to 255.
            "raw" => with(Order::Rgb, 1.0, [0.0; 3], one),
            _ => None,
        }
    }
}

/// What a person says of how pictures are read, over what is proposed for the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)] // each is that of `ImageSettings`
pub struct ImageChanges {
    /// The preset whose values are taken; what stands beside it counts over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<Resize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shorter_side: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<[f32; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std: Option<[f32; 3]>,
}

impl ImageChanges {
    /// Settings with these changes. What is wrong with them is said in a sentence.
    pub fn over(&self, proposed: &ImageSettings) -> Result<ImageSettings, String> {
        let mut image = proposed.clone();
        if let Some(name) = &self.preset {
            let preset = ImageSettings::preset(name).ok_or_else(|| {
                format!(
                    "the preset {name:?} is not known: choose {}",
                    ImageSettings::PRESETS.join(", ")
                )
            })?;
            image.take_values(&preset);
        }
        if let Some(resize) = self.resize {
            (image.resize, image.shorter_side) = (resize, None);
        }
        let sides = (self.height.or(image.height), self.width.or(image.width));
        if let (Some(height), Some(width)) = sides
            && sides != (image.height, image.width)
        {
            // One that was proposed was that of the size proposed.
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
            true => Err("std would divide by zero: give numbers above it".into()),
            false => Ok(image),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_listed_is_known() {
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
    fn what_is_said_counts_over_what_is_proposed() {
        let proposed = ImageSettings {
            resize: Resize::Letterbox,
            height: Some(640),
            width: Some(640),
            ..ImageSettings::preset("unit").unwrap()
        };
        let read = |text: &str| serde_json::from_str::<ImageChanges>(text).unwrap();
        assert_eq!(read("{}").over(&proposed), Ok(proposed.clone()));
        let said = read(r#"{"preset": "signed", "width": 320, "pad": 0, "mean": [1, 2, 3]}"#);
        let image = said.over(&proposed).unwrap();
        assert_eq!(
            (image.height, image.width, image.pad),
            (Some(640), Some(320), 0)
        );
        assert_eq!((image.resize, image.scale), (Resize::Letterbox, 1.0));
        assert_eq!((image.mean, image.std), ([1.0, 2.0, 3.0], [127.5; 3]));
        assert!(
            read(r#"{"preset": "x"}"#)
                .over(&proposed)
                .unwrap_err()
                .contains("imagenet")
        );
        assert!(serde_json::from_str::<ImageChanges>(r#"{"sise": 1}"#).is_err());
    }
}
