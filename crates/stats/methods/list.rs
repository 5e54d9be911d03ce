//! All calibration methods: names, parameters and meanings. Settings, errors, the command line's
//! help, the page and the documents take them from here.

use super::{Measure, Method};

/// A calibration method as settings name it.
pub struct MethodEntry {
    /// The name, without a parameter.
    pub name: &'static str,
    /// A regular expression of the text after the name; empty for a method without parameter.
    pub(super) pattern: &'static str,
    /// The form in which to write the method, for errors.
    pub(super) usage: &'static str,
    /// The range that the method chooses, for tables and help.
    pub meaning: &'static str,
    /// Methods that the page offers, with labels. Their ranges need no extra pass.
    pub choices: &'static [(&'static str, &'static str)],
    /// Reads the parameter; `None` where it is invalid.
    pub(super) parse: fn(Option<&str>) -> Option<Method>,
}

/// The percentile of ONNX Runtime's calibration.
const PERCENT: f64 = 99.999;

/// A percentage above 0 and at most 100: at least one digit other than zero, then its forms.
macro_rules! percent_pattern {
    () => {
        r"(:(?=[0-9.]*[1-9])0*(100(\.0*)?|[1-9]?[0-9](\.[0-9]*)?|\.[0-9]+))?"
    };
}

/// An integer from 2 to 65536.
macro_rules! count_pattern {
    () => {
        "0*([2-9]|[1-9][0-9]{1,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-6])"
    };
}

/// A method without parameter.
macro_rules! plain {
    ($name:literal, $method:expr, $label:literal, $meaning:literal) => {
        MethodEntry {
            name: $name,
            pattern: "",
            usage: $name,
            meaning: $meaning,
            choices: &[($name, $label)],
            parse: |parameter| parameter.is_none().then_some($method),
        }
    };
}

/// The methods, in the order in which they are listed.
pub const METHODS: &[MethodEntry] = &[
    plain!(
        "auto",
        Method::Auto,
        "Least expected error (auto)",
        "The widest range whose expected squared error is within 10 % of the least, or within 50 % where most values \
         have 20 integers or more. Adds headroom for unseen samples where that is expected to gain."
    ),
    plain!(
        "minmax",
        Method::MinMax,
        "Full range, as ONNX Runtime (minmax)",
        "The full range, from the smallest to the largest value. The default of ONNX Runtime."
    ),
    plain!(
        "mse",
        Method::Mse,
        "Least squared error (mse)",
        "The range with the least expected squared error."
    ),
    MethodEntry {
        name: "percentile",
        pattern: percent_pattern!(),
        usage: "percentile:99.99, with a number above 0 and at most 100",
        meaning: "The range that holds this percentage of the values; 99.999 without a number.",
        choices: &[
            ("percentile:99.999", "99.999 % of the values"),
            ("percentile:99.99", "99.99 % of the values"),
            ("percentile:99.9", "99.9 % of the values"),
        ],
        parse: |parameter| percent(parameter).map(Method::Percentile),
    },
    plain!(
        "entropy",
        Method::Entropy,
        "Least information loss (entropy)",
        "The range with the least Kullback-Leibler divergence between the distributions before and after, with 2048 bins."
    ),
    plain!(
        "moving-average",
        Method::MovingAverage,
        "Mean range of the samples (moving-average)",
        "From the mean of the samples' minima to the mean of their maxima."
    ),
    MethodEntry {
        name: "mse-power-of-two",
        pattern: "",
        usage: "mse-power-of-two",
        meaning: "The range with the least expected squared error among those whose scale is a power of two.",
        choices: &[],
        parse: |parameter| parameter.is_none().then_some(Method::MsePowerOfTwo),
    },
    MethodEntry {
        name: "layerwise-percentile",
        pattern: "(:(mae|mse))?",
        usage: "layerwise-percentile:mae or layerwise-percentile:mse",
        meaning: "For each tensor the best of the percentiles 99.99, 99.999 and 99.99999, by mean absolute (`:mae`, \
                  the default) or squared error (`:mse`).",
        choices: &[],
        parse: |parameter| match parameter {
            None | Some("mae") => Some(Method::LayerwisePercentile(Measure::Mae)),
            Some("mse") => Some(Method::LayerwisePercentile(Measure::Mse)),
            _ => None,
        },
    },
    MethodEntry {
        name: "ort-percentile",
        pattern: percent_pattern!(),
        usage: "ort-percentile:99.99, with a number above 0 and at most 100",
        meaning: "ONNX Runtime's percentile calibration, number for number; 99.999 without a number. Needs an extra pass.",
        choices: &[],
        parse: |parameter| percent(parameter).map(Method::OrtPercentile),
    },
    MethodEntry {
        name: "ort-entropy",
        pattern: concat!("(:", count_pattern!(), "/", count_pattern!(), ")?"),
        usage: "ort-entropy:2048/128, bins and levels, both from 2 to 65536",
        meaning: "ONNX Runtime's entropy calibration, number for number. `ort-entropy:2048/128` has 2048 bins and 128 \
                  levels, with at least as many bins as levels; the default 128/128 equals `minmax`. Needs an extra pass.",
        choices: &[],
        parse: |parameter| {
            let (bins, levels) = bins_and_levels(parameter)?;
            Some(Method::OrtEntropy { bins, levels })
        },
    },
];

impl Method {
    /// A regular expression that matches all methods, for the JSON schema.
    pub(crate) fn pattern() -> String {
        let all = METHODS
            .iter()
            .map(|entry| format!("{}{}", entry.name, entry.pattern));
        format!("^({})$", all.collect::<Vec<_>>().join("|"))
    }

    /// The methods that the page offers.
    pub fn choices() -> impl Iterator<Item = &'static str> {
        METHODS
            .iter()
            .flat_map(|entry| entry.choices)
            .map(|(value, _)| *value)
    }
}

/// True for a text of these characters only. Numbers are written without `+` and exponents.
fn consists_of(characters: &str, text: &str) -> bool {
    text.chars().all(|character| characters.contains(character))
}

fn percent(parameter: Option<&str>) -> Option<f64> {
    let percent = match parameter {
        None => PERCENT,
        Some(number) if consists_of("0123456789.", number) => number.parse().ok()?,
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
        .filter(|_| consists_of("0123456789/", pair))?;
    let number = |text: &str| text.parse().ok().filter(|n| (2..=65536).contains(n));
    Some((number(bins)?, number(levels)?))
}
