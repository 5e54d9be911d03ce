//! The settings by which a picture becomes a tensor, and presets of them.

use serde::{Deserialize, Serialize};

/// How a picture becomes a tensor. The default is what ImageNet classifiers are trained with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ImageSettings {
    /// How the picture gets the input's height and width.
    pub resize: Resize,
    /// With [`Resize::Shorter`], what the shorter side becomes before the crop; by default 8/7 of
    /// the input's, which is 256 for 224.
    pub shorter_side: Option<u32>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Layout {
    Nchw,
    Nhwc,
}

/// The order of a picture's colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    pub const PRESETS: [&'static str; 6] = ["imagenet", "unit", "signed", "lite", "caffe", "raw"];

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
}
