//! Conversion of a PNG or JPEG to an input tensor: resizing, cropping, channel order, normalization
//! and layout.
//!
//! For a float input a value is `(pixel · scale − mean) / std`. For an integer input the pixels
//! stay unchanged.

use super::decode_image::decode;
use super::image_placement::{ImagePlacement, place};
use super::image_settings::{ChannelOrder, ImageLayout, ImageSettings};
use super::image_size::to_size;
use super::{Array, InputSpec, SampleProblem};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::DataType;

/// The input for an image: the model must have exactly one.
pub(super) fn only_input<'a>(
    file: &str,
    inputs: &'a [InputSpec],
) -> Result<&'a InputSpec, SampleProblem> {
    match inputs {
        [input] => Ok(input),
        _ => Err(SampleProblem::NoPicture {
            file: file.into(),
            why: format!("the model has {} inputs", inputs.len()),
            next: "give .npz files with an array for each input",
        }),
    }
}

/// Decodes an image and converts it to an array for the input.
pub(super) fn read(
    file: &str,
    bytes: &[u8],
    input: &InputSpec,
    settings: &ImageSettings,
) -> Result<Array, SampleProblem> {
    let place = place(file, input, settings)?;
    let picture = decode(file, bytes)?;
    let picture = to_size(file, picture, (place.height, place.width), settings)?;
    let ImagePlacement {
        channels, layout, ..
    } = place;
    let (width, height) = (picture.width, picture.height);
    let mut pixels = picture.pixels;
    if channels == 1 {
        pixels.iter_mut().for_each(|p| *p = [luma(*p); 3]);
    } else if settings.order == ChannelOrder::Bgr {
        pixels.iter_mut().for_each(|p| p.reverse());
    }
    let (stored, values) = match input.element {
        float if float.is_float() => {
            let ImageSettings {
                scale, mean, std, ..
            } = settings;
            let value = |c: usize, p: &[u8; 3]| (f32::from(p[c]) * scale - mean[c]) / std[c];
            (
                DataType::Float,
                Values::F32(lay(&pixels, channels, layout, value)),
            )
        }
        _ => (
            DataType::Uint8,
            Values::U8(lay(&pixels, channels, layout, |c, p| p[c])),
        ),
    };
    Tensor::new(place.shape(height, width), values)
        .map(|tensor| Array {
            name: file.into(),
            named: false,
            position: None,
            stored,
            tensor,
        })
        .ok_or_else(|| {
            SampleProblem::broken(file, "its pixels and its size disagree", "save it again")
        })
}

fn lay<T>(
    pixels: &[[u8; 3]],
    channels: usize,
    layout: ImageLayout,
    value: impl Fn(usize, &[u8; 3]) -> T,
) -> Vec<T> {
    let value = &value;
    match layout {
        ImageLayout::Nchw => (0..channels)
            .flat_map(|c| pixels.iter().map(move |p| value(c, p)))
            .collect(),
        ImageLayout::Nhwc => pixels
            .iter()
            .flat_map(|p| (0..channels).map(move |c| value(c, p)))
            .collect(),
    }
}

/// Grey as Pillow's `convert("L")` computes it: ITU-R 601 with 16 bits of fraction.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    ((u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471 + 0x8000) >> 16)
        as u8
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::ImageFormat;

    use super::super::image_settings::ResizeMode;
    use super::*;
    use octet_graph::Dim;
    use octet_onnx::schema::DataType;

    fn png(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
        let buffer = image::RgbImage::from_fn(width, height, |x, y| image::Rgb(pixel(x, y)));
        let mut out = Cursor::new(Vec::new());
        buffer.write_to(&mut out, ImageFormat::Png).unwrap();
        out.into_inner()
    }

    fn input(element: DataType, shape: &[usize]) -> InputSpec {
        InputSpec {
            name: "x".into(),
            element,
            shape: shape
                .iter()
                .map(|&n| if n == 0 { Dim::Unknown } else { Dim::Known(n) })
                .collect(),
        }
    }

    #[test]
    fn layout_and_order_follow_input_and_settings() {
        let file = png(2, 2, |x, y| [x as u8, y as u8, 9]);
        let raw = ImageSettings::preset("raw").unwrap();
        let read = |shape: &[usize], settings: &ImageSettings| {
            let array = read("a.png", &file, &input(DataType::Float, shape), settings).unwrap();
            array.tensor.as_f32().unwrap().to_vec()
        };
        let planes = [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0];
        let settings = ImageSettings {
            shorter_side: Some(2),
            ..raw
        };
        assert_eq!(read(&[1, 3, 2, 2], &settings), planes);
        assert_eq!(read(&[3, 2, 2], &settings), planes);
        assert_eq!(
            read(&[1, 2, 2, 3], &settings),
            [0.0, 0.0, 9.0, 1.0, 0.0, 9.0, 0.0, 1.0, 9.0, 1.0, 1.0, 9.0]
        );
        let bgr = ImageSettings {
            order: ChannelOrder::Bgr,
            ..settings
        };
        assert_eq!(read(&[1, 3, 2, 2], &bgr)[..4], [9.0; 4]);
        assert_eq!(read(&[1, 1, 2, 2], &bgr), [1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn every_resize_mode_gives_the_size_of_the_input() {
        for resize in [
            ResizeMode::Shorter,
            ResizeMode::Exact,
            ResizeMode::Letterbox,
        ] {
            for (width, height) in [(30, 20), (20, 31), (3, 2), (1, 200), (16, 12)] {
                let settings = ImageSettings {
                    resize,
                    ..ImageSettings::default()
                };
                let file = png(width, height, |x, y| [x as u8, y as u8, 0]);
                let array = read(
                    "a.png",
                    &file,
                    &input(DataType::Uint8, &[1, 12, 16, 3]),
                    &settings,
                )
                .unwrap();
                assert_eq!(
                    array.tensor.shape(),
                    [1, 12, 16, 3],
                    "{resize:?} of {width}x{height}"
                );
            }
        }
    }

    #[test]
    fn a_letterbox_is_grey_on_both_sides() {
        let settings = ImageSettings {
            resize: ResizeMode::Letterbox,
            ..ImageSettings::default()
        };
        let file = png(8, 4, |_, _| [200; 3]);
        let array = read(
            "a.png",
            &file,
            &input(DataType::Uint8, &[1, 1, 8, 8]),
            &settings,
        )
        .unwrap();
        let expected = [[114u8; 16].as_slice(), &[200; 32], &[114; 16]].concat();
        assert_eq!(array.tensor.values(), &Values::U8(expected));
    }

    #[test]
    fn an_open_size_is_taken_from_the_settings_or_asked_for() {
        let file = png(6, 5, |_, _| [1; 3]);
        let open = input(DataType::Float, &[0, 3, 0, 0]);
        let message = read("a.png", &file, &open, &ImageSettings::default())
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("leaves its size open") && message.contains("--image-size"),
            "{message}"
        );
        let set = ImageSettings {
            height: Some(4),
            width: Some(2),
            ..ImageSettings::default()
        };
        assert_eq!(
            read("a.png", &file, &open, &set).unwrap().tensor.shape(),
            [1, 3, 4, 2]
        );
        let own = ImageSettings {
            resize: ResizeMode::None,
            ..ImageSettings::default()
        };
        assert_eq!(
            read("a.png", &file, &open, &own).unwrap().tensor.shape(),
            [1, 3, 5, 6]
        );
    }

    #[test]
    fn an_input_that_takes_no_image_is_an_error() {
        let file = png(2, 2, |_, _| [0; 3]);
        for (shape, word) in [
            (&[1, 16][..], "[1, 16]"),
            (&[4, 3, 2, 2], "whole batch"),
            (&[1, 5, 2, 2], "1 or 3 channels"),
        ] {
            let message = read(
                "a.png",
                &file,
                &input(DataType::Float, shape),
                &ImageSettings::default(),
            );
            let message = message.unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn presets_normalize_as_their_models_were_trained() {
        for (preset, white) in [
            ("imagenet", 2.248_908_3),
            ("unit", 1.0),
            ("signed", 1.0),
            ("clip", 1.930_336_1),
            ("lite", 1.0),
            ("caffe", 151.0),
            ("raw", 255.0),
        ] {
            let settings = ImageSettings::preset(preset).unwrap();
            let file = png(8, 8, |_, _| [255; 3]);
            let array = read(
                "a.png",
                &file,
                &input(DataType::Float, &[1, 3, 4, 4]),
                &settings,
            )
            .unwrap();
            assert!(
                (array.tensor.as_f32().unwrap()[0] - white).abs() < 1e-5,
                "{preset}"
            );
        }
        assert!(
            ImageSettings::PRESETS
                .iter()
                .all(|p| ImageSettings::preset(p).is_some())
        );
    }
}
