//! Reads weights: integer constants with per-tensor or per-channel scales.

use super::ir::Weights;
use super::reader::{Reader, Reason};
use octet_onnx::schema::{DataType, TensorProto};

impl Reader<'_> {
    /// Constant weights behind a real value, with one scale or one per index of `axis`.
    pub(super) fn weights(&self, real: &str, axis: usize) -> Result<Weights, Reason> {
        let node = self
            .dequantizer(real)
            .ok_or_else(|| format!("its weight {real} is not quantized"))?;
        let title = node.title();
        let tensor = node
            .input_at(0)
            .and_then(|name| self.constant(name))
            .ok_or_else(|| format!("its weight {real} is computed during the run"))?;
        let text = |error: octet_onnx::tensor::TensorError| error.to_string();
        let (shape, integers, flip) = signed(real, tensor)?;
        let shape = as_matrix(shape, axis);
        if node.int("block_size").unwrap_or(0) != 0 {
            return Err(format!("its weight {real} has block-wise scales"));
        }
        let scales = self.numbers(node, 1)?;
        if scales.is_empty() || scales.iter().any(|s| !(s.is_finite() && *s >= 0.0)) {
            return Err(format!("a scale of {title} is not a positive number"));
        }
        let zero_points = match node.input_at(2) {
            None => vec![0; scales.len()],
            Some(name) => self
                .constant(name)
                .ok_or_else(|| format!("the zero point of {title} is not constant"))?
                .to_i64()
                .map_err(text)?,
        };
        if zero_points.len() != scales.len() {
            return Err(format!(
                "{title} has {} zero points for {} scales",
                zero_points.len(),
                scales.len()
            ));
        }
        let rank = shape.len() as i64;
        let channels = *shape
            .get(axis)
            .ok_or_else(|| format!("its weight {real} has the shape {shape:?}"))?;
        let per_channel = scales.len() > 1
            || node.input_at(1).is_some_and(|name| {
                self.constant(name).is_some_and(|t| t.dims.len() == 1) && scales.len() == channels
            });
        if per_channel && scales.len() > 1 {
            let scale_axis = node.int("axis").unwrap_or(1);
            let scale_axis = if scale_axis < 0 {
                scale_axis + rank
            } else {
                scale_axis
            };
            if scale_axis != axis as i64 {
                return Err(format!(
                    "its weight has scales along axis {scale_axis}, not along its output channels"
                ));
            }
            if scales.len() != channels {
                return Err(format!(
                    "its weight has {} scales for {channels} output channels",
                    scales.len()
                ));
            }
        }
        Ok(Weights {
            shape,
            integers,
            scales,
            zero_points: signed_zeros(zero_points, flip, channels),
        })
    }

    /// Weights of an integer operator: a byte constant with one zero point, or one per index of
    /// `axis`.
    pub(super) fn plain_weights(
        &self,
        name: &str,
        zero_point: Option<&str>,
        axis: usize,
    ) -> Result<Weights, Reason> {
        let result = || format!("its weight {name} is computed during the run");
        let tensor = self.constant(name).ok_or_else(result)?;
        let (shape, integers, flip) = signed(name, tensor)?;
        let shape = as_matrix(shape, axis);
        let channels = *shape
            .get(axis)
            .ok_or_else(|| format!("its weight {name} has the shape {shape:?}"))?;
        let zero_points = match zero_point {
            None => vec![0],
            Some(zero) => {
                let tensor = self.constant(zero);
                let tensor = tensor.ok_or("the zero point of its weight is not constant")?;
                tensor.to_i64().map_err(|error| error.to_string())?
            }
        };
        if zero_points.len() != 1 && zero_points.len() != channels {
            return Err(format!(
                "its weight has {} zero points for {channels} output channels",
                zero_points.len()
            ));
        }
        Ok(Weights {
            shape,
            integers,
            scales: Vec::new(),
            zero_points: signed_zeros(zero_points, flip, channels),
        })
    }
}

/// A vector as right factor is a column, as in numpy.
fn as_matrix(mut shape: Vec<usize>, axis: usize) -> Vec<usize> {
    if shape.len() == 1 && axis == 1 {
        shape.push(1);
    }
    shape
}

/// Converts weights to signed bytes: shape, bytes, and the offset that was subtracted.
fn signed(name: &str, tensor: &TensorProto) -> Result<(Vec<usize>, Vec<i8>, i64), Reason> {
    let text = |error: octet_onnx::tensor::TensorError| error.to_string();
    let flip = match tensor.element().map_err(text)? {
        DataType::Uint8 => 128,
        DataType::Int8 | DataType::Int4 | DataType::Uint4 => 0,
        other => return Err(format!("its weight {name} has the type {}", other.name())),
    };
    let integers = tensor.to_i64().map_err(text)?;
    let signed = integers.into_iter().map(|v| (v - flip) as i8).collect();
    Ok((tensor.shape().map_err(text)?, signed, flip))
}

/// Signed zero points: empty if all are 0, else one per channel.
fn signed_zeros(zero_points: Vec<i64>, flip: i64, channels: usize) -> Vec<i8> {
    let shifted: Vec<i8> = zero_points.iter().map(|z| (z - flip) as i8).collect();
    match shifted[..] {
        _ if shifted.iter().all(|&z| z == 0) => Vec::new(),
        [one] => vec![one; channels],
        _ => shifted,
    }
}
