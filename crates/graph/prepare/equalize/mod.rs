//! Equalization: factors between neighbouring layers make the ranges of a value's channels alike,
//! so that one scale fits all of them.
//!
//! A value whose producers and consumers all have weights of their own can have each channel
//! multiplied by a factor. The producer's constants are multiplied by it and the consumer's are
//! divided by it, so the outputs of the model don't change. A factor passes through operators that
//! commute with it: Relu, maximum, sums of values with the same factors, Concat.
//!
//! With the strength s, the factor of a channel is `f = range^-s · weights^(1-s)`. Here `range` is
//! the largest magnitude of the channel and `weights` the largest weight that multiplies it. Each
//! is relative to the largest among the channels of the value. This is cross-layer equalization
//! and, behind a norm, SmoothQuant.
//!
//! Factors are powers of 2^(1/8): precise enough, and one byte each in the metadata of a model.

mod apply;
mod channel_axes;
mod channel_classes;
mod metadata;
mod node_rules;
mod scales;

use std::collections::BTreeMap;

use crate::Model;
use channel_classes::{ChannelClasses, FIXED};
use octet_onnx::tensor::TensorError;

/// A factor is two to the power / STEPS.
const STEPS: f64 = 8.0;

/// Reasons why factors can't be computed or applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum EqualizeError {
    #[error(
        "the model is equalized already, as its metadata show: remove `equalize` from the \
         settings, or use the model before equalization"
    )]
    Already,
    #[error(
        "the quantized model was equalized at `{value}`, which this float model doesn't allow: use \
         the float model that it was made from"
    )]
    Other { value: String },
    #[error(
        "the equalization factors in the model's metadata are damaged ({reason}): quantize the \
         model again, or remove the entry `octet.equalized`"
    )]
    Damaged { reason: String },
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Channel factors by value name, as powers of 2^(1/8). Only values that layers produce and that
/// have a factor other than one are stored; all other factors follow from these.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelFactors(BTreeMap<String, Vec<i8>>);

impl ChannelFactors {
    /// True if no channel has a factor.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of values with factors, and the smallest and largest factor.
    pub fn extent(&self) -> (usize, f64, f64) {
        let powers = || self.0.values().flatten().copied();
        let factor = |power: Option<i8>| factor_of(power.unwrap_or(0).into());
        (self.0.len(), factor(powers().min()), factor(powers().max()))
    }
}

/// The factor of a power.
fn factor_of(power: i32) -> f64 {
    (f64::from(power) / STEPS).exp2()
}

/// Values whose channels can have factors, with their channel axis.
pub fn channels(model: &Model) -> BTreeMap<String, usize> {
    let channel_classes = ChannelClasses::new(&model.graph);
    let movable = channel_classes.movable();
    movable
        .map(|(value, axis)| (value.to_string(), axis))
        .collect()
}

/// Bytes of the constants that factors can change.
pub fn bytes(model: &Model) -> u64 {
    let channel_classes = ChannelClasses::new(&model.graph);
    let movable = |value: Option<&str>| {
        let mut classes = value
            .map_or(&[][..], |value| channel_classes.classes(value))
            .iter();
        classes.any(|&class| class != FIXED)
    };
    let constants = channel_classes.constants(model);
    let taking =
        constants.filter(|(constant, _)| movable(constant.times) || movable(constant.over));
    let bytes = taking.filter_map(|(_, tensor)| tensor.byte_len().ok());
    bytes.map(|bytes| bytes as u64).sum()
}
