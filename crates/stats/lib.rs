//! Statistics of tensors, which merge exactly, and the methods that turn them into ranges.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod channel_abs_max;
mod channel_means;
mod channel_variance;
mod distribution;
mod exact_sum;
mod expected_error;
mod histogram;
mod im2col_view;
mod input_gram;
mod integer_range;
#[cfg(test)]
mod merging;
mod methods;
mod numpy_histogram;
mod pass_statistics;
mod power_of_two;
mod range;
mod schema;
mod shortest_half;
mod stored;
#[cfg(all(test, not(target_family = "wasm")))]
mod tensor_laws;
mod tensor_statistics;

use std::collections::BTreeMap;

pub use channel_abs_max::ChannelAbsMax;
pub use channel_means::ChannelMeans;
pub use channel_variance::{ChannelMoments, ChannelVariance};
pub use histogram::{BinLayout, HALF, Histogram};
pub use im2col_view::Im2colView;
pub use input_gram::InputGram;
pub use integer_range::IntegerRange;
pub use methods::{METHODS, Measure, Method, MethodEntry, MethodError, SecondPassMissing};
pub use numpy_histogram::{HistogramLayout, NumpyHistogram};
pub use pass_statistics::{OtherStatistics, PassContent, PassStatistics};
pub use power_of_two::PowerOfTwo;
pub use range::Range;
pub use shortest_half::ShortestHalf;
pub use stored::DamagedStatistics;
pub use tensor_statistics::TensorStatistics;

/// Statistics by tensor name.
pub type CalibrationStatistics = BTreeMap<String, TensorStatistics>;
