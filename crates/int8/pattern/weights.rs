//! Reads weights: integer constants with per-tensor or per-channel scales.

use std::sync::Arc;

use octet_onnx::schema::DataType;

use super::reader::Reader;
use crate::float_reason::FloatReason;

/// Signed weights with their parameters per output channel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SignedWeights {
    pub(crate) shape: Vec<usize>,
    /// Shared by all nodes that read the same constant.
    pub(crate) integers: Arc<[i8]>,
    /// One, or one per channel.
    pub(crate) scales: Vec<f32>,
    /// Empty if all are 0, else one per channel.
    pub(crate) zero_points: Vec<i8>,
    /// True if the file has them as i8, the type that processors without VNNI multiply in pairs.
    pub(crate) stored_as_i8: bool,
}

impl SignedWeights {
    /// True if two products with u8 may exceed 16 bits.
    pub(crate) fn may_exceed_pairs(&self) -> bool {
        /// Two products with 255 always fit: 2 · 255 · 64 is less than 32,768.
        const SAFE: u8 = 64;
        let exceeds = |weight: &i8| weight.unsigned_abs() > SAFE;
        self.stored_as_i8 && self.integers.iter().any(exceeds)
    }
}

impl Reader<'_> {
    /// Constant weights behind a real value, with one scale or one per index of `axis`.
    pub(crate) fn weights(&self, real: &str, axis: usize) -> Result<SignedWeights, FloatReason> {
        let node = self
            .dequantizer(real)
            .ok_or_else(|| FloatReason::WeightNotQuantized(real.to_owned()))?;
        let title = || node.title().to_owned();
        let (shape, element, integers) = self.signed(real, node.input_at(0).unwrap_or_default())?;
        let shape = as_matrix(shape, axis);
        if node.int("block_size").unwrap_or(0) != 0 {
            return Err(FloatReason::BlockWiseWeight(real.to_owned()));
        }
        let scales = self.numbers(node, 1)?;
        if scales.is_empty() || scales.iter().any(|s| !(s.is_finite() && *s >= 0.0)) {
            return Err(FloatReason::WeightScale(title()));
        }
        let zero_points = match node.input_at(2) {
            None => vec![0; scales.len()],
            Some(name) => self
                .constant(name)
                .ok_or_else(|| FloatReason::ZeroPointNotConstant(title()))?
                .to_i64()?,
        };
        if zero_points.len() != scales.len() {
            let (zeros, scales) = (zero_points.len(), scales.len());
            return Err(FloatReason::WeightZeroPoints(title(), zeros, scales));
        }
        let rank = shape.len() as i64;
        let channels = *shape
            .get(axis)
            .ok_or_else(|| FloatReason::WeightShape(real.to_owned(), shape.clone()))?;
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
                return Err(FloatReason::WeightScaleAxis(scale_axis));
            }
            if scales.len() != channels {
                return Err(FloatReason::WeightScaleCount(scales.len(), channels));
            }
        }
        Ok(SignedWeights {
            shape,
            integers,
            scales,
            zero_points: signed_zeros(zero_points, flip(element), channels),
            stored_as_i8: element == DataType::Int8,
        })
    }

    /// The shape and type of a constant, and its values as signed bytes. `real` names the weight.
    fn signed(
        &self,
        real: &str,
        name: &str,
    ) -> Result<(Vec<usize>, DataType, Arc<[i8]>), FloatReason> {
        let computed = || FloatReason::ComputedWeight(real.to_owned());
        let tensor = self.constant(name).ok_or_else(computed)?;
        let element = tensor.element()?;
        match element {
            DataType::Uint8 | DataType::Int8 | DataType::Int4 | DataType::Uint4 => {}
            other => return Err(FloatReason::WeightType(real.to_owned(), other.name())),
        }
        let known = self.signed_weights.borrow().get(name).cloned();
        let integers = match known {
            Some(integers) => integers,
            None => {
                let flip = flip(element);
                let integers = tensor.to_i64()?;
                let signed = integers.into_iter().map(|value| (value - flip) as i8);
                let signed: Arc<[i8]> = signed.collect();
                let mut all = self.signed_weights.borrow_mut();
                all.insert(name.to_owned(), Arc::clone(&signed));
                signed
            }
        };
        Ok((tensor.shape()?, element, integers))
    }

    /// Weights of an integer operator: a byte constant with one zero point, or one per index
    /// of `axis`.
    pub(crate) fn plain_weights(
        &self,
        name: &str,
        zero_point: Option<&str>,
        axis: usize,
    ) -> Result<SignedWeights, FloatReason> {
        let (shape, element, integers) = self.signed(name, name)?;
        let shape = as_matrix(shape, axis);
        let channels = *shape
            .get(axis)
            .ok_or_else(|| FloatReason::WeightShape(name.to_owned(), shape.clone()))?;
        let zero_points = match zero_point {
            None => vec![0],
            Some(zero) => {
                let tensor = self.constant(zero);
                let tensor = tensor.ok_or(FloatReason::WeightZeroPointNotConstant)?;
                tensor.to_i64()?
            }
        };
        if zero_points.len() != 1 && zero_points.len() != channels {
            let count = zero_points.len();
            return Err(FloatReason::WeightZeroPointCount(count, channels));
        }
        Ok(SignedWeights {
            shape,
            integers,
            scales: Vec::new(),
            zero_points: signed_zeros(zero_points, flip(element), channels),
            stored_as_i8: element == DataType::Int8,
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

/// The offset between weights of this type and signed ones.
fn flip(element: DataType) -> i64 {
    match element {
        DataType::Uint8 => 128,
        _ => 0,
    }
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
