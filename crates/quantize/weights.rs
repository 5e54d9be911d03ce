//! Constants: scales from their own values, and integers.

use bytes::Bytes;
use octet_kernels::{Extrema, IntegerGrid, add_squares, sum_of_squares, widen};

use super::channel_layout::{ChannelLayout, ChannelPart};
use super::scale::{Encoder, QuantizationParameters, integer_bounds};
use super::settings::Representation;
use super::weight_clip_search::search_clipped_scales;
use octet_onnx::schema::TensorProto;
use octet_onnx::tensor::TensorError;
use octet_stats::Method;

/// Scales and zero points from minimum and maximum, per channel if there is an axis. A weight with
/// the method `mse` gets the scales of least squared error.
pub(super) fn parameters(
    tensor: &TensorProto,
    axis: Option<usize>,
    represented: &Representation,
    weight: bool,
) -> Result<QuantizationParameters, TensorError> {
    let element = represented.element.data_type();
    let symmetric = represented.is_symmetric(weight);
    let channels = ChannelLayout::new(&tensor.shape()?, axis);
    if let Some((scale, zero_point)) = represented.scale {
        return Ok(QuantizationParameters {
            element,
            axis,
            scales: vec![scale; channels.count],
            zero_points: vec![zero_point; channels.count],
        });
    }
    let mut ranges = vec![[f32::INFINITY, f32::NEG_INFINITY]; channels.count];
    match represented.range {
        Some(range) => ranges.fill([range.min, range.max]),
        None => channels.each_part(tensor, |part| match part {
            ChannelPart::Run(channel, run) => {
                let [min, max] = &mut ranges[channel];
                let [least, greatest, _] = Extrema::of(run).reach;
                (*min, *max) = (min.min(least), max.max(greatest));
            }
            ChannelPart::Row(first, row) => widen(&mut ranges[first..], row),
        })?,
    }
    let mut parameters = parameters_of_ranges(ranges, axis, represented, weight);
    let used = integer_bounds(element, symmetric, represented.reduce_range);
    if weight && represented.method == Some(Method::Mse) && represented.range.is_none() {
        search_clipped_scales(
            &mut parameters,
            tensor,
            &channels,
            used,
            represented.power_of_two,
        )?;
    }
    Ok(parameters)
}

/// Scales and zero points of these ranges; an empty range is that of zero.
pub(super) fn parameters_of_ranges(
    ranges: Vec<[f32; 2]>,
    axis: Option<usize>,
    represented: &Representation,
    weight: bool,
) -> QuantizationParameters {
    let element = represented.element.data_type();
    let symmetric = represented.is_symmetric(weight);
    let used = integer_bounds(element, symmetric, represented.reduce_range);
    // `snap_zero` concerns computed values only.
    let represented = &Representation {
        snap_zero: false,
        ..represented.clone()
    };
    let (scales, zero_points) = ranges
        .into_iter()
        .map(|[min, max]| if min > max { [0.0; 2] } else { [min, max] })
        .map(|[min, max]| represented.scale_and_zero_point(min, max, used, symmetric))
        .unzip();
    QuantizationParameters {
        element,
        axis,
        scales,
        zero_points,
    }
}

/// The expected squared rounding error relative to the squared weights, averaged over the channels
/// along `axis`.
///
/// The expected error is step²/12 for each number, at most the whole square. Channels of almost
/// zero weights are skipped.
pub(super) fn relative_error(
    tensor: &TensorProto,
    parameters: &QuantizationParameters,
    axis: usize,
) -> Result<f64, TensorError> {
    const ALMOST_NOTHING: f64 = 1e-6;
    let shape = tensor.shape()?;
    let channels = ChannelLayout::new(&shape, Some(axis));
    let mut squares = vec![0.0; channels.count];
    channels.each_part(tensor, |part| match part {
        ChannelPart::Run(channel, run) => squares[channel] += sum_of_squares(run),
        ChannelPart::Row(first, row) => add_squares(&mut squares[first..], row),
    })?;
    let numbers = shape.iter().product::<usize>() as f64 / channels.count.max(1) as f64;
    let largest = squares.iter().copied().fold(0.0, f64::max);
    let (mut errors, mut counted) = (0.0, 0.0);
    for (channel, square) in squares.into_iter().enumerate() {
        if square > ALMOST_NOTHING * largest {
            let own = if parameters.axis.is_some() {
                channel
            } else {
                0
            };
            let step = f64::from(parameters.scales[own]);
            errors += (numbers * step * step / 12.0 / square).min(1.0);
            counted += 1.0;
        }
    }
    Ok(if counted > 0.0 { errors / counted } else { 0.0 })
}

/// Flags the channels whose weights are all zero. Such a channel always has the scale 1.
pub(super) fn empty_channels(
    tensor: &TensorProto,
    parameters: &QuantizationParameters,
) -> Result<Vec<bool>, TensorError> {
    let mut empty: Vec<bool> = parameters
        .scales
        .iter()
        .map(|&scale| scale == 1.0)
        .collect();
    if empty.contains(&true) {
        let channels = ChannelLayout::new(&tensor.shape()?, parameters.axis);
        channels.each_run(tensor, |channel, run| {
            empty[channel] &= run.iter().all(|&value| value == 0.0);
        })?;
    }
    Ok(empty)
}

/// The integers of a constant, and their error.
pub(super) struct ConstantIntegers {
    pub(super) tensor: TensorProto,
    /// The factor by which GPTQ lowers the mean squared error of the layer's output.
    pub(super) error_reduction: Option<f64>,
}

/// The integers of a constant.
pub(super) fn quantized(
    tensor: &TensorProto,
    name: &str,
    parameters: &QuantizationParameters,
) -> Result<TensorProto, TensorError> {
    let shape = tensor.shape()?;
    let mut integers = Encoder::new(parameters.element, shape.iter().product());
    let grids: Vec<IntegerGrid> = parameters.grids().collect();
    ChannelLayout::new(&shape, parameters.axis).each_part(tensor, |part| match part {
        ChannelPart::Run(channel, run) => integers.round(run, &grids[channel..][..1]),
        ChannelPart::Row(first, row) => integers.round(row, &grids[first..]),
    })?;
    Ok(TensorProto::from_raw(
        name,
        parameters.element,
        &shape,
        Bytes::from(integers.finish()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ElementType;

    fn by_default(tensor: &TensorProto, axis: Option<usize>) -> QuantizationParameters {
        let represented = Representation::new(ElementType::I8, None);
        parameters(tensor, axis, &represented, true).unwrap()
    }

    #[test]
    fn each_channel_has_its_own_scale_whichever_axis_it_lies_on() {
        let tensor = TensorProto::from_f32("w", &[2, 3], &[1.0, -2.0, 3.0, 127.0, 254.0, 0.0]);
        for (axis, scales, integers) in [
            (
                Some(0),
                vec![3.0 / 127.0, 2.0],
                vec![42, -85, 127, 64, 127, 0],
            ),
            (
                Some(1),
                vec![1.0, 2.0, 3.0 / 127.0],
                vec![1, -1, 127, 127, 127, 0],
            ),
            (None, vec![2.0], vec![0, -1, 2, 64, 127, 0]),
        ] {
            let params = by_default(&tensor, axis);
            assert_eq!(params.scales, scales);
            assert!(params.zero_points.iter().all(|&z| z == 0));
            let bytes = quantized(&tensor, "q", &params).unwrap().raw_data.unwrap();
            assert_eq!(bytes.iter().map(|&b| b as i8).collect::<Vec<_>>(), integers);
        }
    }

    #[test]
    fn the_error_of_a_weight_is_what_its_integers_are_off_by() {
        let values: Vec<f32> = (0..4096).map(|i| (i as f32 * 0.37).sin()).collect();
        let mut large = values.clone();
        // One channel is a thousand times as large. With one scale for all, nothing is left of the
        // others.
        large[..64].iter_mut().for_each(|value| *value *= 1000.0);
        for (values, axis) in [
            (&values, Some(0)),
            (&values, None),
            (&large, Some(0)),
            (&large, None),
        ] {
            let tensor = TensorProto::from_f32("w", &[64, 64], values);
            let params = by_default(&tensor, axis);
            let expected = relative_error(&tensor, &params, 0).unwrap();
            let integers = quantized(&tensor, "q", &params).unwrap().raw_data.unwrap();
            let mut errors = 0.0;
            for channel in 0..64 {
                let scale = params.scales[if axis.is_some() { channel } else { 0 }];
                let (mut error, mut all) = (0.0, 0.0);
                for place in channel * 64..(channel + 1) * 64 {
                    let back = f32::from(integers[place] as i8) * scale;
                    error += f64::from(values[place] - back).powi(2);
                    all += f64::from(values[place]).powi(2);
                }
                errors += error / all / 64.0;
            }
            let ratio = expected / errors;
            assert!((0.8..1.25).contains(&ratio), "{axis:?}: {ratio}");
        }
    }

    #[test]
    fn a_channel_of_zeros_has_the_scale_one() {
        let tensor = TensorProto::from_f32("w", &[2, 1], &[0.0, 1.0]);
        assert_eq!(by_default(&tensor, Some(0)).scales[0], 1.0);
        let empty = TensorProto::from_f32("w", &[0], &[]);
        assert_eq!(by_default(&empty, None).scales, [1.0]);
    }
}
