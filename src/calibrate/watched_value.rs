//! A value that a calibration observes.

/// Callback for a sample's name and the index of a watched value, after that value was observed. It
/// is called from any thread.
pub type ValueCallback = Box<dyn Fn(&str, usize) + Send + Sync>;

/// A value whose statistics are collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedValue {
    /// Name of the value.
    pub name: String,
    /// Channel axis, if channel means are requested.
    pub channel_means: Option<usize>,
    /// Channel axis, if the greatest magnitude per channel is requested.
    pub channel_abs_max: Option<usize>,
    /// Channel axis, if the variance per channel is requested.
    pub channel_variance: Option<usize>,
}
