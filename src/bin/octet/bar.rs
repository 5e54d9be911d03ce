//! The progress bar: natively of `indicatif`. In Node nothing is drawn, and lines are printed as
//! they come.

#[cfg(target_family = "wasm")]
pub use hidden::{ProgressBar, ProgressStyle};
#[cfg(not(target_family = "wasm"))]
pub use indicatif::{ProgressBar, ProgressStyle};

#[cfg(target_family = "wasm")]
mod hidden {
    use std::convert::Infallible;

    /// The style of a bar that is not drawn.
    pub struct ProgressStyle;

    impl ProgressStyle {
        pub fn with_template(_template: &str) -> Result<ProgressStyle, Infallible> {
            Ok(ProgressStyle)
        }

        pub fn default_bar() -> ProgressStyle {
            ProgressStyle
        }
    }

    /// A bar that is not drawn.
    pub struct ProgressBar;

    impl ProgressBar {
        pub fn new(_length: u64) -> ProgressBar {
            ProgressBar
        }

        pub fn hidden() -> ProgressBar {
            ProgressBar
        }

        pub fn set_style(&self, _style: ProgressStyle) {}

        pub fn set_message(&self, _message: String) {}

        pub fn set_position(&self, _position: u64) {}

        pub fn set_length(&self, _length: u64) {}

        pub fn is_hidden(&self) -> bool {
            true
        }

        pub fn suspend<T>(&self, work: impl FnOnce() -> T) -> T {
            work()
        }

        pub fn finish_and_clear(&self) {}
    }
}
