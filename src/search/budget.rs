//! The budget of a search, and the measure it is about.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount of bytes or time: absolute, or a share of the float model's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes or milliseconds.
    Absolute(f64),
    /// Share of the float model's amount, 1 for all of it.
    Share(f64),
}

impl Amount {
    /// The amount for a float model that needs `float`.
    pub fn of(self, float: f64) -> f64 {
        match self {
            Amount::Absolute(amount) => amount,
            Amount::Share(share) => share * float,
        }
    }
}

/// The limit that the result of a search must keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// The largest share of answers that may be lost.
    Accuracy(f64),
    /// The largest mean KL divergence, in nats.
    Kl(f64),
    /// The least SQNR of the outputs, in decibels.
    Sqnr(f64),
    /// The largest file.
    Bytes(Amount),
    /// The longest time of a run.
    Time(Amount),
    /// The largest number of tensors with more than 8 bits; all others have 8.
    Wide(usize),
}

/// The measure of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Right answers by labels: the share that the float model gets right and the result wrong, less
    /// the share of the opposite.
    Labels,
    /// Answers that differ from the float model's.
    Agreement,
    /// Mean KL divergence from the float model's probabilities, in nats.
    Kl,
    /// Power of the difference over power of the output. Shown in decibels as SQNR.
    Sqnr,
}

impl Metric {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Labels => "labels",
            Metric::Agreement => "agreement",
            Metric::Kl => "kl",
            Metric::Sqnr => "sqnr",
        }
    }
}

/// Reasons why a budget can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BudgetError {
    #[error(
        "the budget `{text}` has no amount: write accuracy=0.5%, kl=0.01, sqnr=30, bytes=4MB, bytes=30%, time=60%, \
         time=12ms or wide=8"
    )]
    NoAmount { text: String },
    #[error(
        "the budget `{key}` is unknown: the budgets are accuracy, kl, sqnr, bytes, time and wide"
    )]
    Unknown { key: String },
    #[error("the budget {key} can't be `{amount}`: {expected}")]
    Amount {
        key: String,
        amount: String,
        expected: &'static str,
    },
}

impl Budget {
    /// The limit on the error, if the budget is one: the metric's value that may not be exceeded.
    pub fn error_limit(self) -> Option<f64> {
        match self {
            Budget::Accuracy(share) => Some(share),
            Budget::Kl(nats) => Some(nats),
            Budget::Sqnr(decibels) => Some(10f64.powf(-decibels / 10.0)),
            Budget::Bytes(_) | Budget::Time(_) | Budget::Wide(_) => None,
        }
    }

    /// The metric of the budget. `labels` tells if labels are known, `classes` if the model has
    /// class scores.
    pub fn metric(self, labels: bool, classes: bool) -> Metric {
        match self {
            Budget::Kl(_) => Metric::Kl,
            Budget::Sqnr(_) => Metric::Sqnr,
            Budget::Accuracy(_) if labels => Metric::Labels,
            Budget::Accuracy(_) => Metric::Agreement,
            _ if classes && labels => Metric::Labels,
            _ if classes => Metric::Agreement,
            _ => Metric::Sqnr,
        }
    }
}

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Budget, BudgetError> {
        let pair = text.split_once(['=', ':']);
        let (key, amount) = pair.ok_or_else(|| BudgetError::NoAmount { text: text.into() })?;
        let (key, amount) = (key.trim(), amount.trim());
        let wrong = |expected| BudgetError::Amount {
            key: key.into(),
            amount: amount.into(),
            expected,
        };
        let number = |text: &str, expected| {
            let number = text.trim().parse::<f64>().ok();
            let usable = number.filter(|number| number.is_finite() && *number >= 0.0);
            usable.ok_or_else(|| wrong(expected))
        };
        let share = |expected| match amount.strip_suffix('%') {
            Some(percent) => Ok(Some(number(percent, expected)? / 100.0)),
            None => Ok(None),
        };
        match key {
            "accuracy" => {
                let expected = "give a share of the answers, such as 0.5%";
                let share = share(expected)?.ok_or_else(|| wrong(expected))?;
                match share <= 1.0 {
                    true => Ok(Budget::Accuracy(share)),
                    false => Err(wrong("no more than 100 % of the answers can be lost")),
                }
            }
            "kl" => Ok(Budget::Kl(number(amount, "give nats, such as 0.01")?)),
            "sqnr" => {
                let decibels = amount.strip_suffix("dB").unwrap_or(amount);
                let decibels = number(decibels, "give decibels, such as 30")?;
                Ok(Budget::Sqnr(decibels))
            }
            "bytes" => {
                let expected =
                    "give bytes, such as 4MB or 400kB, or a share of the float file, such as 30%";
                if let Some(share) = share(expected)? {
                    return Ok(Budget::Bytes(Amount::Share(share)));
                }
                let units = [
                    ("MiB", 1048576.0),
                    ("KiB", 1024.0),
                    ("MB", 1e6),
                    ("kB", 1e3),
                    ("B", 1.0),
                ];
                let unit = units.iter().find(|(unit, _)| amount.ends_with(unit));
                let (digits, factor) = match unit {
                    Some((unit, factor)) => (amount.trim_end_matches(unit), *factor),
                    None => (amount, 1.0),
                };
                let bytes = factor * number(digits, expected)?;
                Ok(Budget::Bytes(Amount::Absolute(bytes)))
            }
            "time" => {
                let expected =
                    "give a time, such as 12ms, or a share of the float model's, such as 60%";
                if let Some(share) = share(expected)? {
                    return Ok(Budget::Time(Amount::Share(share)));
                }
                let ms = amount.strip_suffix("ms").ok_or_else(|| wrong(expected))?;
                Ok(Budget::Time(Amount::Absolute(number(ms, expected)?)))
            }
            "wide" => {
                let count = amount.parse().ok();
                let expected = "give a number of tensors, such as 8";
                Ok(Budget::Wide(count.ok_or_else(|| wrong(expected))?))
            }
            _ => Err(BudgetError::Unknown { key: key.into() }),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount =
            |f: &mut fmt::Formatter<'_>, key: &str, amount: Amount, unit: &str| match amount {
                Amount::Absolute(amount) => write!(f, "{key}={amount}{unit}"),
                Amount::Share(share) => write!(f, "{key}={}%", percent(share)),
            };
        match *self {
            Budget::Accuracy(share) => write!(f, "accuracy={}%", percent(share)),
            Budget::Kl(nats) => write!(f, "kl={nats}"),
            Budget::Sqnr(decibels) => write!(f, "sqnr={decibels}dB"),
            Budget::Bytes(bytes) => amount(f, "bytes", bytes, "B"),
            Budget::Time(ms) => amount(f, "time", ms, "ms"),
            Budget::Wide(count) => write!(f, "wide={count}"),
        }
    }
}

/// A share in percent without the noise of binary fractions.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_read_back_as_they_are_shown() {
        for (text, wanted) in [
            ("accuracy=0.5%", Budget::Accuracy(0.005)),
            ("accuracy: 0.5 %", Budget::Accuracy(0.005)),
            ("kl=0.01", Budget::Kl(0.01)),
            ("sqnr=30dB", Budget::Sqnr(30.0)),
            ("bytes=4MB", Budget::Bytes(Amount::Absolute(4e6))),
            ("bytes=1KiB", Budget::Bytes(Amount::Absolute(1024.0))),
            ("bytes=30%", Budget::Bytes(Amount::Share(0.3))),
            ("time=12ms", Budget::Time(Amount::Absolute(12.0))),
            ("wide=8", Budget::Wide(8)),
        ] {
            let budget: Budget = text.parse().unwrap();
            assert_eq!(budget, wanted, "{text}");
            assert_eq!(budget.to_string().parse(), Ok(budget), "{text}");
        }
        assert_eq!(Amount::Share(0.25).of(8.0), 2.0);
        assert_eq!(Amount::Absolute(3.0).of(8.0), 3.0);
    }

    #[test]
    fn a_budget_that_says_nothing_is_refused_with_an_example() {
        for (text, says) in [
            ("accuracy", "accuracy=0.5%"),
            ("acuracy=1%", "the budgets are accuracy"),
            ("accuracy=0.5", "such as 0.5%"),
            ("accuracy=101%", "100 %"),
            ("bytes=many", "such as 4MB"),
            ("bytes=-4", "such as 4MB"),
            ("time=3", "such as 12ms"),
            ("wide=2.5", "such as 8"),
            ("sqnr=nan", "such as 30"),
        ] {
            let error = text.parse::<Budget>().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
