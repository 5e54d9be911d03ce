//! Equalization: the channels of a value made alike, so that one scale does for all of them.
//!
//! A value whose makers and readers all have weights of their own can have each channel multiplied with a factor: what makes
//! the channel takes it up, and what reads it gives it back, so that nothing changes but how large the channels are. A factor
//! goes from a layer through all that does the same to each multiple (a Relu, a maximum, sums of values with the same factors,
//! parts that are joined) to the layers that read it. Large channels become smaller and small ones larger, by as much as their weights
//! can bear: `f = reach^-s · weights^(1-s)`, with the greatest value of a channel and the greatest weight it meets, each against those
//! of its neighbours, and the strength s. It does what is known as cross-layer equalization and, where a norm comes before, as
//! SmoothQuant.
//!
//! Factors are powers of the eighth root of two: near enough, and a byte each in the file that remembers them.

mod apply;
mod find;
mod remember;
mod role;
mod span;
mod ties;

use std::collections::BTreeMap;

use crate::graph::Model;
use crate::onnx::tensor::TensorError;
use ties::{FIXED, Ties};

/// Steps of a factor between one and two.
const STEPS: f64 = 8.0;

/// Why factors can't be found or taken up.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum EqualizeError {
    #[error(
        "the model's channels were made alike already, as its metadata say: leave `equalize` out, or give the model that it was made from"
    )]
    Already,
    #[error(
        "the quantized model says that channels of `{value}` were made alike, which can't be done with this float model: give the one \
         that it was made from"
    )]
    Other { value: String },
    #[error(
        "what the model's metadata say of channels that were made alike is damaged ({reason}): make the model again, or take the entry \
         `octet.equalized` out"
    )]
    Damaged { reason: String },
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// The factors of channels, of each value that layers make and that has any, as powers of the eighth root of two. Those of all
/// other values follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors(BTreeMap<String, Vec<i8>>);

impl Factors {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many values have channels with a factor, and the least and the greatest of these.
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

/// The values whose channels can be given factors, and the axis along which these lie.
pub fn channels(model: &Model) -> BTreeMap<String, usize> {
    let uses = model.graph.uses();
    let ties = Ties::of(&model.graph, &uses);
    let movable = ties.movable();
    movable
        .map(|(value, axis)| (value.to_string(), axis))
        .collect()
}

/// How many bytes of constants can take factors up.
pub fn bytes(model: &Model) -> u64 {
    let uses = model.graph.uses();
    let ties = Ties::of(&model.graph, &uses);
    let movable = |value: Option<&str>| {
        let mut classes = value.map_or(&[][..], |value| ties.classes(value)).iter();
        classes.any(|&class| class != FIXED)
    };
    let constants = ties.constants(model);
    let taking =
        constants.filter(|(constant, _)| movable(constant.times) || movable(constant.over));
    let bytes = taking.filter_map(|(_, tensor)| tensor.byte_len().ok());
    bytes.map(|bytes| bytes as u64).sum()
}
