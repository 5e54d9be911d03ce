//! The report as YAML, readable by any YAML 1.1 parser (PyYAML is the strict one): Quark's part,
//! then our sections.

use std::fmt::Write;

use super::plain_value::PlainValue;
use super::record::Record;

/// A section of the report.
#[derive(Clone, Debug)]
pub struct Section {
    /// Top-level key.
    pub key: String,
    /// Comment above the section.
    pub comment: String,
    /// Content.
    pub value: PlainValue,
}

impl Section {
    /// Builds a section from serializable data.
    pub fn new(key: &str, comment: &str, data: &impl serde::Serialize) -> Section {
        Section {
            key: key.into(),
            comment: comment.into(),
            value: PlainValue::from_data(data),
        }
    }
}

/// Comment that explains Quark's keys and the added ones.
const DEFINITIONS: &str = "\
# Metric Definitions:
# - step: stage that began (Start) or ended (End)
# - timestamp: seconds since 1970-01-01 UTC
# - relative_time_secs: seconds since the run began
# - cpu_memory_mb: resident memory of the process; in a browser, the size of the wasm memory, which never shrinks
# - heap_live_mb: live memory at that moment, counted at every allocation
# - heap_peak_mb: peak of the live memory up to that moment
# - disk_read_mb, disk_write_mb: disk traffic of the process since the run began
# - total_quantization_time_seconds: from the first record to the last
# - peak_memory_mb: maximum of cpu_memory_mb
# - peak_cache_dir_disk_usage_mb: temporary files on disk; Octet writes none
# MB are MiB. Quantities that cannot be measured on the platform (a GPU, a browser's disk) are left out.
";

/// Writes the report of these checkpoints and sections.
pub fn write(records: &[Record], sections: &[Section]) -> String {
    let mut out = String::from("# Quark Profiling Results\n\nmemory_usage:");
    out.push_str(if records.is_empty() { " []\n" } else { "\n" });
    for record in records {
        push_record(&mut out, record);
    }
    push_summary(&mut out, records);
    out.push('\n');
    out.push_str(DEFINITIONS);
    out.push_str(&self::sections(sections));
    out
}

/// Writes sections alone.
pub fn sections(sections: &[Section]) -> String {
    let mut out = String::new();
    for section in sections {
        out.push('\n');
        for line in section.comment.lines() {
            let _ = writeln!(out, "# {line}");
        }
        let _ = write!(out, "{}:", key(&section.key));
        push_value(&mut out, &section.value, 0);
    }
    out
}

fn push_record(out: &mut String, record: &Record) {
    let usage = &record.usage;
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "  {key}: {value}");
    };
    line("step", quoted(&record.moment.to_string()));
    line("timestamp", number(record.timestamp));
    line("relative_time_secs", number(record.seconds));
    let measured = [
        ("cpu_memory_mb", usage.process),
        ("disk_read_mb", usage.disk_read),
        ("disk_write_mb", usage.disk_write),
        ("heap_live_mb", Some(usage.live)),
        ("heap_peak_mb", Some(usage.peak)),
    ];
    for (key, bytes) in measured {
        if let Some(bytes) = bytes {
            line(key, mib(bytes));
        }
    }
    // The first line of the record has the dash of the list.
    let step = out.rfind("  step: ").unwrap_or(0);
    out.replace_range(step..step + 2, "- ");
}

fn push_summary(out: &mut String, records: &[Record]) {
    let last = records.last();
    let most = |of: fn(&Record) -> Option<u64>| records.iter().filter_map(of).max();
    let seconds = last.map_or(0.0, |r| r.seconds);
    out.push_str("\n# Summary Metrics\n");
    let _ = writeln!(
        out,
        "total_quantization_time_seconds: {}",
        rounded(seconds, 1e4)
    );
    let totals = [
        (
            "peak_memory_mb",
            most(|r| r.usage.process.max(r.usage.process_peak)),
        ),
        ("total_disk_read_mb", last.and_then(|r| r.usage.disk_read)),
        ("total_disk_write_mb", last.and_then(|r| r.usage.disk_write)),
        ("peak_cache_dir_disk_usage_mb", Some(0)),
        ("peak_heap_mb", most(|r| Some(r.usage.peak))),
    ];
    for (key, bytes) in totals {
        if let Some(bytes) = bytes {
            let _ = writeln!(out, "{key}: {}", mib(bytes));
        }
    }
}

/// Writes a value after its key or dash: on the same line, or on lines below at that depth.
fn push_value(out: &mut String, value: &PlainValue, depth: usize) {
    match value {
        PlainValue::List(items) if !items.is_empty() && items.iter().any(is_nested) => {
            out.push('\n');
            for item in items {
                let _ = write!(out, "{:1$}-", "", depth * 2);
                push_item(out, item, depth + 1);
            }
        }
        PlainValue::Map(entries) if !entries.is_empty() => {
            out.push('\n');
            for (name, value) in entries {
                let _ = write!(out, "{:1$}{2}:", "", (depth + 1) * 2, key(name));
                push_value(out, value, depth + 1);
            }
        }
        flat => {
            let _ = writeln!(out, " {}", flow(flat));
        }
    }
}

/// Writes a list item after its dash. A map begins on the line of the dash.
fn push_item(out: &mut String, item: &PlainValue, depth: usize) {
    match item {
        PlainValue::Map(entries) if !entries.is_empty() => {
            for (i, (name, value)) in entries.iter().enumerate() {
                let indent = if i == 0 { 1 } else { depth * 2 };
                let _ = write!(out, "{:1$}{2}:", "", indent, key(name));
                push_value(out, value, depth);
            }
        }
        other => {
            let _ = writeln!(out, " {}", flow(other));
        }
    }
}

fn is_nested(value: &PlainValue) -> bool {
    matches!(value, PlainValue::Map(_))
}

/// A value on one line.
fn flow(value: &PlainValue) -> String {
    match value {
        PlainValue::Null => "null".into(),
        PlainValue::Bool(value) => value.to_string(),
        PlainValue::Integer(value) => value.to_string(),
        PlainValue::Number(value) => number(*value),
        PlainValue::Text(text) => quoted(text),
        PlainValue::List(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        PlainValue::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(k, v)| format!("{}: {}", key(k), flow(v)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A key without quotes where every parser reads it as text.
fn key(name: &str) -> String {
    let bare = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // YAML 1.1 reads these as booleans and null, in any case.
    let reserved = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    if bare && !reserved.contains(&name.to_ascii_lowercase().as_str()) {
        name.into()
    } else {
        quoted(name)
    }
}

/// Text in double quotes. All but plain printable characters are escaped.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            ' '..='~'
            | '\u{a1}'..='\u{2027}'
            | '\u{202a}'..='\u{d7ff}'
            | '\u{e000}'..='\u{fefe}' => out.push(c),
            '\u{ff00}'..='\u{fffd}' | '\u{10000}'.. => out.push(c),
            other => {
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
        }
    }
    out.push('"');
    out
}

/// A number that YAML 1.1 reads as one: with a point, and a sign in the exponent.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            ".nan"
        } else if value > 0.0 {
            ".inf"
        } else {
            "-.inf"
        }
        .into();
    }
    let text = format!("{value:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

fn rounded(value: f64, steps: f64) -> String {
    number((value * steps).round() / steps)
}

fn mib(bytes: u64) -> String {
    rounded(bytes as f64 / 1_048_576.0, 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Moment;
    use crate::profile::memory::Usage;

    fn record(moment: Moment, seconds: f64) -> Record {
        let usage = Usage {
            live: 1 << 20,
            peak: 3 << 19,
            process: Some(671_005_573),
            process_peak: None,
            disk_read: Some(0),
            disk_write: Some(1000),
        };
        Record {
            moment,
            timestamp: 1_795_231_848.25,
            seconds,
            usage,
        }
    }

    #[test]
    fn records_and_summary_match_quark() {
        let text = write(
            &[record(Moment::Start, 0.0), record(Moment::End, 6.661_94)],
            &[],
        );
        let wanted = "# Quark Profiling Results\n\nmemory_usage:\n- step: \"Start\"\n  timestamp: 1795231848.25\n  \
                      relative_time_secs: 0.0\n  cpu_memory_mb: 639.92\n  disk_read_mb: 0.0\n  disk_write_mb: 0.0\n  \
                      heap_live_mb: 1.0\n  heap_peak_mb: 1.5\n- step: \"End\"\n";
        assert!(text.starts_with(wanted), "{text}");
        let summary = "\n# Summary Metrics\ntotal_quantization_time_seconds: 6.6619\npeak_memory_mb: 639.92\n\
                       total_disk_read_mb: 0.0\ntotal_disk_write_mb: 0.0\npeak_cache_dir_disk_usage_mb: 0.0\n";
        assert!(text.contains(summary), "{text}");
    }

    #[test]
    fn unmeasured_quantities_are_left_out() {
        let mut bare = record(Moment::Start, 0.0);
        bare.usage = Usage {
            live: 1,
            peak: 1,
            ..Usage::default()
        };
        let text = write(&[bare], &[]);
        assert!(
            !text.contains("\n  disk_read_mb")
                && !text.contains("\ntotal_disk")
                && !text.contains("\npeak_memory")
        );
    }

    #[test]
    fn numbers_are_numbers_to_a_reader_of_yaml_1_1() {
        for (value, text) in [
            (0.0, "0.0"),
            (1e-7, "1.0e-7"),
            (1.5e300, "1.5e+300"),
            (-2.5, "-2.5"),
            (f64::INFINITY, ".inf"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn any_text_stays_one_quoted_scalar() {
        for (text, wanted) in [
            ("a \"b\" \\c", r#""a \"b\" \\c""#),
            (
                "x\ny\u{85}\u{2028}\u{7f}\u{feff}\0",
                r#""x\ny\u0085\u2028\u007f\ufeff\u0000""#,
            ),
            ("größe 😀", "\"größe 😀\""),
        ] {
            assert_eq!(quoted(text), wanted);
        }
        assert_eq!(
            [key("sha256"), key("No"), key("Conv"), key("a: b")],
            ["sha256", "\"No\"", "Conv", "\"a: b\""]
        );
    }

    #[test]
    fn sections_follow_with_their_comments() {
        let value = PlainValue::Map(vec![
            ("name".into(), PlainValue::Text("m.onnx".into())),
            (
                "shape".into(),
                PlainValue::List(vec![PlainValue::Integer(1), PlainValue::Text("n".into())]),
            ),
            ("empty".into(), PlainValue::List(vec![])),
            (
                "nodes".into(),
                PlainValue::List(vec![
                    PlainValue::Map(vec![
                        ("node".into(), PlainValue::Text("a".into())),
                        (
                            "inner".into(),
                            PlainValue::Map(vec![("k".into(), PlainValue::Null)]),
                        ),
                    ]),
                    PlainValue::Map(vec![("node".into(), PlainValue::Text("b".into()))]),
                ]),
            ),
        ]);
        let section = Section {
            key: "model".into(),
            comment: "What came in.".into(),
            value,
        };
        let text = write(&[], &[section]);
        let wanted = "\n# What came in.\nmodel:\n  name: \"m.onnx\"\n  shape: [1, \"n\"]\n  empty: []\n  nodes:\n  \
                      - node: \"a\"\n    inner:\n      k: null\n  - node: \"b\"\n";
        assert!(text.ends_with(wanted), "{text}");
    }
}
