//! Calibration: mergeable tensor statistics, and the methods that turn them into ranges.

mod aside;
mod bulk;
mod channels;
mod distribution;
mod exact_sum;
mod expected_error;
mod further;
mod histogram;
mod meeting;
#[cfg(test)]
mod merging;
mod methods;
mod moments;
mod numpy_histogram;
mod observation;
mod pass;
mod powers;
mod range;
mod reach;
pub mod run;
mod spread;
mod target;

use std::collections::BTreeMap;

pub(crate) use bulk::Bulk;
pub use channels::Channels;
pub use histogram::{HALF, Histogram};
pub use meeting::Meeting;
pub use methods::{METHODS, Measure, Method, MethodEntry, MethodError, SecondPassMissing};
pub use moments::Moments;
pub use numpy_histogram::{Layout, NumpyHistogram};
pub use observation::Observation;
pub use powers::PowerOfTwo;
pub use range::Range;
pub use reach::Reach;
pub use spread::{Moment, Spread};
pub use target::Target;

/// Statistics by tensor name.
pub type Observations = BTreeMap<String, Observation>;
