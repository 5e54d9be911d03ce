//! The integers of a constant whose range is from its minimum to its maximum.

use super::settings::{ElementType, Representation};

/// The integer representation of a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IntegerFormat {
    pub(super) element: ElementType,
    /// The channel axis; `None` for per-tensor.
    pub(super) axis: Option<usize>,
    pub(super) symmetric: bool,
    pub(super) reduce_range: bool,
}

impl IntegerFormat {
    /// The representation of a constant whose range is from its minimum to its maximum.
    pub(super) fn represented(self) -> Representation {
        let mut represented = Representation::new(self.element, None);
        represented.symmetric = Some(self.symmetric);
        represented.reduce_range = self.reduce_range;
        represented
    }
}
