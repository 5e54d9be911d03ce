//! The range of a tensor: the result of every calibration method.

use serde::{Deserialize, Serialize};

/// The interval of reals that a tensor's integers represent; in JSON `[min, max]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f32; 2]", into = "[f32; 2]")]
pub struct Range {
    /// Lower end.
    pub min: f32,
    /// Upper end.
    pub max: f32,
}

impl Range {
    /// The range from `min` to `max`.
    pub fn new(min: f32, max: f32) -> Range {
        Range { min, max }
    }

    /// Clamps both ends to `outer`.
    pub(super) fn within(self, outer: Range) -> Range {
        Range {
            min: self.min.clamp(outer.min, outer.max),
            max: self.max.clamp(outer.min, outer.max),
        }
    }
}

impl From<[f32; 2]> for Range {
    fn from([min, max]: [f32; 2]) -> Range {
        Range { min, max }
    }
}

impl From<Range> for [f32; 2] {
    fn from(range: Range) -> [f32; 2] {
        [range.min, range.max]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_pair_in_json() {
        let range: Range = serde_json::from_str("[-1, 2.5]").unwrap();
        assert_eq!(range, Range::new(-1.0, 2.5));
        assert_eq!(serde_json::to_string(&range).unwrap(), "[-1.0,2.5]");
    }

    #[test]
    fn within_clamps_both_ends() {
        let outer = Range::new(0.5, 2.0);
        assert_eq!(Range::new(-3.0, 1.0).within(outer), Range::new(0.5, 1.0));
        assert_eq!(Range::new(0.0, 9.0).within(outer), outer);
    }
}
