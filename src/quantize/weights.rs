//! Constants: their scales from their own values, and their integers.

use bytes::Bytes;

use super::scale::{Encoder, QuantizationParameters, quantize_value, span};
use super::settings::Representation;
use crate::onnx::schema::TensorProto;
use crate::onnx::tensor::TensorError;

/// Scales and zero points from the smallest and largest value, of each channel where there is an axis.
pub(super) fn parameters(
    tensor: &TensorProto,
    axis: Option<usize>,
    represented: &Representation,
    weight: bool,
) -> Result<QuantizationParameters, TensorError> {
    let element = represented.element.data_type();
    let symmetric = represented.is_symmetric(weight);
    let channels = Channels::of(&tensor.shape()?, axis);
    if let Some((scale, zero_point)) = represented.scale {
        return Ok(QuantizationParameters {
            element,
            axis,
            scales: vec![scale; channels.count],
            zero_points: vec![zero_point; channels.count],
        });
    }
    let mut ranges = vec![(f32::INFINITY, f32::NEG_INFINITY); channels.count];
    match represented.range {
        Some(range) => ranges.fill((range.min, range.max)),
        None => channels.each_run(tensor, |channel, run| {
            let (min, max) = &mut ranges[channel];
            // Written so that it becomes vector code; what is no number counts for nothing.
            for &value in run {
                *min = if value < *min { value } else { *min };
                *max = if value > *max { value } else { *max };
            }
        })?,
    }
    let used = span(element, symmetric, represented.reduce_range);
    let (scales, zero_points) = ranges
        .into_iter()
        .map(|(min, max)| if min > max { (0.0, 0.0) } else { (min, max) })
        .map(|(min, max)| represented.scale_and_zero_point(min, max, used, symmetric))
        .unzip();
    Ok(QuantizationParameters {
        element,
        axis,
        scales,
        zero_points,
    })
}

/// The integers of a constant.
pub(super) fn quantized(
    tensor: &TensorProto,
    name: &str,
    parameters: &QuantizationParameters,
) -> Result<TensorProto, TensorError> {
    let shape = tensor.shape()?;
    let whole = span(parameters.element, false, false);
    let mut integers = Encoder::new(parameters.element, shape.iter().product());
    Channels::of(&shape, parameters.axis).each_run(tensor, |channel, run| {
        let (scale, zero_point) = (parameters.scales[channel], parameters.zero_points[channel]);
        integers.extend(
            run.iter()
                .map(|&v| quantize_value(v, scale, zero_point, whole)),
        );
    })?;
    Ok(TensorProto::from_raw(
        name,
        parameters.element,
        &shape,
        Bytes::from(integers.finish()),
    ))
}

/// How the channels of a tensor lie in its memory.
struct Channels {
    count: usize,
    inner: usize,
}

impl Channels {
    fn of(shape: &[usize], axis: Option<usize>) -> Channels {
        match axis {
            Some(axis) => Channels {
                count: shape[axis],
                inner: shape[axis + 1..].iter().product(),
            },
            None => Channels {
                count: 1,
                inner: shape.iter().product(),
            },
        }
    }

    /// Calls `each` for runs of neighbours in one channel, in the order of memory: block by block, so that the whole is not
    /// there a second time.
    fn each_run(
        &self,
        tensor: &TensorProto,
        mut each: impl FnMut(usize, &[f32]),
    ) -> Result<(), TensorError> {
        if self.inner == 0 || self.count == 0 {
            return Ok(());
        }
        let (mut channel, mut left) = (0, self.inner);
        tensor.each_f32_block(|mut block| {
            while !block.is_empty() {
                let (run, rest) = block.split_at(left.min(block.len()));
                each(channel, run);
                block = rest;
                left -= run.len();
                if left == 0 {
                    (channel, left) = ((channel + 1) % self.count, self.inner);
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantize::settings::ElementType;

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
            let found = by_default(&tensor, axis);
            assert_eq!(found.scales, scales);
            assert!(found.zero_points.iter().all(|&z| z == 0));
            let bytes = quantized(&tensor, "q", &found).unwrap().raw_data.unwrap();
            assert_eq!(bytes.iter().map(|&b| b as i8).collect::<Vec<_>>(), integers);
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
