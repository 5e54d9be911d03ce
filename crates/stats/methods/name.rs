//! Methods as text, in settings, on the command line, in JavaScript and in reports.

use std::fmt;
use std::str::FromStr;

use super::list::METHODS;
use super::{Measure, Method};

/// Every method, with a parameter where it has one.
#[cfg(test)]
pub(super) const EXAMPLES: &[&str] = &[
    "minmax",
    "moving-average",
    "percentile:99.9",
    "entropy",
    "mse",
    "mse-power-of-two",
    "layerwise-percentile:mae",
    "layerwise-percentile:mse",
    "auto",
    "ort-percentile:99.999",
    "ort-entropy:128/128",
    "ort-entropy:2048/128",
];

/// A text that is not a method.
#[derive(Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum MethodError {
    #[error("there is no calibration method \"{0}\"; choose {names}", names = names())]
    Unknown(String),
    #[error("the calibration method \"{text}\" is not valid; write it as {form}")]
    Parameter { text: String, form: &'static str },
    #[error(
        "the calibration method \"{text}\" has {bins} bins and {levels} levels; give at least as many bins as levels, bins first, \
         as in ort-entropy:2048/128"
    )]
    FewBins {
        text: String,
        bins: usize,
        levels: usize,
    },
}

/// The names of all methods, as a list in words.
fn names() -> String {
    let names: Vec<&str> = METHODS.iter().map(|entry| entry.name).collect();
    match names.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Method, MethodError> {
        let lower = text.trim().to_ascii_lowercase();
        let (name, parameter) = match lower.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (lower.as_str(), None),
        };
        let entry = METHODS.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| MethodError::Unknown(text.into()))?;
        let method = (entry.parse)(parameter).ok_or_else(|| MethodError::Parameter {
            text: text.into(),
            form: entry.usage,
        })?;
        match method {
            Method::OrtEntropy { bins, levels } if bins < levels => Err(MethodError::FewBins {
                text: text.into(),
                bins,
                levels,
            }),
            _ => Ok(method),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::MinMax => f.write_str("minmax"),
            Method::MovingAverage => f.write_str("moving-average"),
            Method::Percentile(percent) => write!(f, "percentile:{percent}"),
            Method::Entropy => f.write_str("entropy"),
            Method::Mse => f.write_str("mse"),
            Method::MsePowerOfTwo => f.write_str("mse-power-of-two"),
            Method::LayerwisePercentile(Measure::Mae) => f.write_str("layerwise-percentile:mae"),
            Method::LayerwisePercentile(Measure::Mse) => f.write_str("layerwise-percentile:mse"),
            Method::Auto => f.write_str("auto"),
            Method::OrtPercentile(percent) => write!(f, "ort-percentile:{percent}"),
            Method::OrtEntropy { bins, levels } => write!(f, "ort-entropy:{bins}/{levels}"),
        }
    }
}

impl TryFrom<String> for Method {
    type Error = MethodError;

    fn try_from(text: String) -> Result<Method, MethodError> {
        text.parse()
    }
}

impl From<Method> for String {
    fn from(method: Method) -> String {
        method.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for &name in EXAMPLES {
            assert_eq!(name.parse::<Method>().unwrap().to_string(), name);
        }
        for (short, long) in [
            ("MinMax", "minmax"),
            ("percentile", "percentile:99.999"),
            ("percentile:100", "percentile:100"),
            ("layerwise-percentile", "layerwise-percentile:mae"),
            ("ort-percentile", "ort-percentile:99.999"),
            ("ort-entropy", "ort-entropy:128/128"),
        ] {
            assert_eq!(short.parse::<Method>().unwrap().to_string(), long);
        }
    }

    #[test]
    fn an_invalid_method_is_refused_with_the_valid_form() {
        for (text, words) in [
            ("median", "auto, minmax, mse, percentile"),
            ("", "auto"),
            ("percentile:0", "percentile:99.99"),
            ("percentile:101", "at most 100"),
            ("percentile:nan", "percentile:99.99"),
            ("percentile:+5", "percentile:99.99"),
            ("percentile:1e1", "percentile:99.99"),
            ("ort-entropy:+64/+32", "ort-entropy:2048/128"),
            ("percentile:", "percentile:99.99"),
            ("mse:3", "write it as mse"),
            ("layerwise-percentile:max", "layerwise-percentile:mse"),
            ("ort-entropy:128", "ort-entropy:2048/128"),
            ("ort-entropy:64/65537", "from 2 to 65536"),
            ("ort-entropy:128/256", "has 128 bins and 256 levels"),
        ] {
            let error = text.parse::<Method>().unwrap_err().to_string();
            assert!(
                error.contains(words) && error.contains(&format!("\"{text}\"")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_method_is_text_in_json() {
        let method: Method = serde_json::from_str("\"percentile:99.5\"").unwrap();
        assert_eq!(method, Method::Percentile(99.5));
        assert_eq!(
            serde_json::to_string(&method).unwrap(),
            "\"percentile:99.5\""
        );
        assert!(serde_json::from_str::<Method>("\"magic\"").is_err());
    }
}
