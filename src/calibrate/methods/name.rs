//! Names of the methods, identical in settings, on the command line, in JavaScript and in reports.

use std::fmt;
use std::str::FromStr;

use super::{Measure, Method};

/// Every method, with a parameter where it takes one.
#[cfg(test)]
pub(super) const EXAMPLES: [&str; 12] = [
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

/// The names as listed in error messages.
const NAMES: &str = "minmax, moving-average, percentile, entropy, mse, mse-power-of-two, layerwise-percentile, \
                     auto, ort-percentile or ort-entropy";

/// A text that does not name a method.
#[derive(Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum MethodError {
    #[error("there is no calibration method \"{0}\": choose {NAMES}")]
    Unknown(String),
    #[error("the calibration method \"{text}\" is not understood: write it as {form}")]
    Parameter { text: String, form: &'static str },
    #[error(
        "the calibration method \"{text}\" has {bins} bins and {levels} levels, but a level has at least one bin: \
         use at least as many bins as levels, bins first, as in ort-entropy:2048/128"
    )]
    FewBins {
        text: String,
        bins: usize,
        levels: usize,
    },
}

/// Default percentage, as in ONNX Runtime.
const PERCENT: f64 = 99.999;

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Method, MethodError> {
        let lower = text.trim().to_ascii_lowercase();
        let (name, parameter) = match lower.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (lower.as_str(), None),
        };
        let wrong = |form| MethodError::Parameter {
            text: text.into(),
            form,
        };
        let plain = |method, form| match parameter {
            None => Ok(method),
            Some(_) => Err(wrong(form)),
        };
        match name {
            "minmax" => plain(Method::MinMax, "minmax"),
            "moving-average" => plain(Method::MovingAverage, "moving-average"),
            "entropy" => plain(Method::Entropy, "entropy"),
            "mse" => plain(Method::Mse, "mse"),
            "mse-power-of-two" => plain(Method::MsePowerOfTwo, "mse-power-of-two"),
            "auto" => plain(Method::Auto, "auto"),
            "percentile" => percent(parameter)
                .map(Method::Percentile)
                .ok_or_else(|| wrong("percentile:99.99, with a number above 0 and at most 100")),
            "ort-percentile" => percent(parameter)
                .map(Method::OrtPercentile)
                .ok_or_else(|| {
                    wrong("ort-percentile:99.99, with a number above 0 and at most 100")
                }),
            "layerwise-percentile" => match parameter {
                None | Some("mae") => Ok(Method::LayerwisePercentile(Measure::Mae)),
                Some("mse") => Ok(Method::LayerwisePercentile(Measure::Mse)),
                _ => Err(wrong(
                    "layerwise-percentile:mae or layerwise-percentile:mse",
                )),
            },
            "ort-entropy" => {
                let (bins, levels) = bins_and_levels(parameter).ok_or_else(|| {
                    wrong("ort-entropy:2048/128, bins and levels, both from 2 to 65536")
                })?;
                match bins >= levels {
                    true => Ok(Method::OrtEntropy { bins, levels }),
                    false => Err(MethodError::FewBins {
                        text: text.into(),
                        bins,
                        levels,
                    }),
                }
            }
            _ => Err(MethodError::Unknown(text.into())),
        }
    }
}

/// Returns true if the text has only these characters. Numbers such as `+5` and `1e1` are not
/// allowed here, nor in the settings' schema.
fn has_only(characters: &str, text: &str) -> bool {
    text.chars().all(|character| characters.contains(character))
}

fn percent(parameter: Option<&str>) -> Option<f64> {
    let percent = match parameter {
        None => PERCENT,
        Some(number) if has_only("0123456789.", number) => number.parse().ok()?,
        Some(_) => return None,
    };
    (percent > 0.0 && percent <= 100.0).then_some(percent)
}

fn bins_and_levels(parameter: Option<&str>) -> Option<(usize, usize)> {
    let Some(pair) = parameter else {
        return Some((128, 128));
    };
    let (bins, levels) = pair
        .split_once('/')
        .filter(|_| has_only("0123456789/", pair))?;
    let number = |text: &str| text.parse().ok().filter(|n| (2..=65536).contains(n));
    Some((number(bins)?, number(levels)?))
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
    fn names_parse_to_the_same_method() {
        for name in EXAMPLES {
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
    fn unknown_methods_are_refused_with_the_valid_ones() {
        for (text, words) in [
            ("median", "minmax, moving-average, percentile"),
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
