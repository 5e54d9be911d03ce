//! Constants: their scales from their own values, and their integers.

use bytes::Bytes;

use super::scale::{QuantizationParameters, quantize_value, scale_and_zero_point, span};
use crate::onnx::schema::{DataType, TensorProto};
use crate::onnx::tensor::TensorError;

/// How a constant is quantized.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConstantForm {
    pub(super) element: DataType,
    pub(super) axis: Option<usize>,
    pub(super) symmetric: bool,
    pub(super) reduce_range: bool,
}

/// Scales and zero points from the smallest and largest value, of each channel where there is an axis.
pub(super) fn parameters(
    tensor: &TensorProto,
    form: ConstantForm,
) -> Result<QuantizationParameters, TensorError> {
    let channels = Channels::of(&tensor.shape()?, form.axis);
    let values = tensor.to_f32()?;
    let mut ranges = vec![(f32::INFINITY, f32::NEG_INFINITY); channels.count];
    channels.each_run(&values, |channel, run| {
        let (min, max) = &mut ranges[channel];
        for &value in run {
            *min = min.min(value);
            *max = max.max(value);
        }
    });
    let used = span(form.element, form.symmetric, form.reduce_range);
    let (scales, zero_points) = ranges
        .into_iter()
        .map(|(min, max)| if min > max { (0.0, 0.0) } else { (min, max) })
        .map(|(min, max)| scale_and_zero_point(min, max, used, form.symmetric))
        .unzip();
    Ok(QuantizationParameters {
        element: form.element,
        axis: form.axis,
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
    let values = tensor.to_f32()?;
    let whole = span(parameters.element, false, false);
    let mut integers = Vec::with_capacity(values.len());
    Channels::of(&shape, parameters.axis).each_run(&values, |channel, run| {
        let (scale, zero_point) = (parameters.scales[channel], parameters.zero_points[channel]);
        // Both integer types keep the low byte of the two's complement.
        integers.extend(
            run.iter()
                .map(|&v| quantize_value(v, scale, zero_point, whole) as u8),
        );
    });
    Ok(TensorProto::from_raw(
        name,
        parameters.element,
        &shape,
        Bytes::from(integers),
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

    /// Calls `each` for every run of neighbours in one channel, in the order of memory.
    fn each_run(&self, values: &[f32], mut each: impl FnMut(usize, &[f32])) {
        if self.inner == 0 || self.count == 0 {
            return;
        }
        for (index, run) in values.chunks_exact(self.inner).enumerate() {
            each(index % self.count, run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(axis: Option<usize>) -> ConstantForm {
        ConstantForm {
            element: DataType::Int8,
            axis,
            symmetric: true,
            reduce_range: false,
        }
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
            let found = parameters(&tensor, form(axis)).unwrap();
            assert_eq!(found.scales, scales);
            assert!(found.zero_points.iter().all(|&z| z == 0));
            let bytes = quantized(&tensor, "q", &found).unwrap().raw_data.unwrap();
            assert_eq!(bytes.iter().map(|&b| b as i8).collect::<Vec<_>>(), integers);
        }
    }

    #[test]
    fn a_channel_of_zeros_has_the_scale_one() {
        let tensor = TensorProto::from_f32("w", &[2, 1], &[0.0, 1.0]);
        assert_eq!(parameters(&tensor, form(Some(0))).unwrap().scales[0], 1.0);
        let empty = TensorProto::from_f32("w", &[0], &[]);
        assert_eq!(parameters(&empty, form(None)).unwrap().scales, [1.0]);
    }
}
