//! What is seen of a tensor, in a form that merges exactly, and the methods that turn it into a range.

mod histogram;
mod observation;
mod range;
pub mod run;

use std::collections::BTreeMap;

pub use histogram::{HALF, Histogram};
pub use observation::Observation;
pub use range::{Method, Range, UnknownMethod};

/// What was seen, by tensor.
pub type Observations = BTreeMap<String, Observation>;
