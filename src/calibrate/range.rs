//! The methods that turn what was seen of a tensor into the range its integers cover.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Observation;

/// The interval of real values a tensor's integers have to cover; in JSON `[min, max]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f32; 2]", into = "[f32; 2]")]
pub struct Range {
    /// The lower end.
    pub min: f32,
    /// The upper end.
    pub max: f32,
}

impl Range {
    /// The range from `min` to `max`.
    pub fn new(min: f32, max: f32) -> Range {
        Range { min, max }
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

/// How a range is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// From the least to the greatest value seen.
    #[default]
    MinMax,
}

/// A method nobody knows.
#[derive(Debug, thiserror::Error)]
#[error("there is no calibration method \"{0}\": choose minmax")]
pub struct UnknownMethod(String);

impl Method {
    /// The range of what was seen; [0, 0] where no finite value was.
    pub fn range(&self, seen: &Observation) -> Range {
        match self {
            Method::MinMax => Range::new(seen.min().unwrap_or(0.0), seen.max().unwrap_or(0.0)),
        }
    }

    /// The name in settings, on the command line and in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Method::MinMax => "minmax",
        }
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Method, UnknownMethod> {
        match text.to_ascii_lowercase().as_str() {
            "minmax" => Ok(Method::MinMax),
            _ => Err(UnknownMethod(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_max_is_from_the_least_to_the_greatest_value() {
        let mut seen = Observation::new();
        seen.observe(&[0.25, -1.5, 3.0]);
        assert_eq!(Method::MinMax.range(&seen), Range::new(-1.5, 3.0));
        assert_eq!(
            Method::MinMax.range(&Observation::new()),
            Range::new(0.0, 0.0)
        );
    }

    #[test]
    fn names_read_back_and_others_are_refused() {
        assert_eq!("MinMax".parse::<Method>().unwrap(), Method::MinMax);
        assert_eq!(
            Method::MinMax.name().parse::<Method>().unwrap(),
            Method::MinMax
        );
        assert!(
            "median"
                .parse::<Method>()
                .unwrap_err()
                .to_string()
                .contains("\"median\"")
        );
    }

    #[test]
    fn a_range_is_a_pair_in_json() {
        let range: Range = serde_json::from_str("[-1, 2.5]").unwrap();
        assert_eq!(range, Range::new(-1.0, 2.5));
        assert_eq!(serde_json::to_string(&range).unwrap(), "[-1.0,2.5]");
    }
}
