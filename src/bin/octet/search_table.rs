//! The result of a search as a table, and its settings as a document.

use std::fmt::Write as _;

use octet::search::{SearchResult, TimeSource};

use super::Failure;

/// The settings as a document. JSON is valid YAML.
pub fn document(result: &SearchResult) -> Result<String, Failure> {
    Ok(format!(
        "# Settings of `octet search --budget {}`, for `octet quantize --config`.\n{}\n",
        result.budget,
        serde_json::to_string_pretty(&result.settings)?
    ))
}

/// The largest number of points that the table shows.
const SHOWN: usize = 16;

/// The result as a table.
pub fn table(result: &SearchResult) -> Result<String, Failure> {
    let mut out = String::new();
    let [choosing, held] = result.samples;
    writeln!(out, "{choosing} samples chose, {held} verified")?;
    writeln!(
        out,
        "{:>2} {:>12} {:>7} {:>7} {:>10} {:>5} {:>5} {:>5} {:>6} {:>10}",
        "", "bytes", "size", "time", "predicted", "4", "8", "16", "float", "measured"
    )?;
    let last = result.points.len().saturating_sub(1);
    let stride = result.points.len().div_ceil(SHOWN).max(1);
    for (index, point) in result.points.iter().enumerate() {
        let chosen = index == result.point;
        if !(chosen || index == last || index % stride == 0) {
            continue;
        }
        let measured = point
            .chosen_sqnr
            .map_or(String::new(), |sqnr| format!("{sqnr:.1} dB"));
        let [four, eight, sixteen, float] = point.counts;
        writeln!(
            out,
            "{:>2} {:>12.0} {:>5.1} % {:>5.1} % {:>7.1} dB {four:>5} {eight:>5} {sixteen:>5} {float:>6} {measured:>10}",
            if chosen { "->" } else { "" },
            point.bytes,
            100.0 * point.share_of_bytes,
            100.0 * point.share_of_time,
            point.predicted_sqnr,
        )?;
    }
    let source = match result.times {
        TimeSource::Profile => "times are measured on this machine",
        TimeSource::Model => {
            "times come from a model of costs of Octet's engine, not from a measurement"
        }
    };
    writeln!(out, "{source}")?;
    if result.points[result.point].counts[2] > 0 {
        let note = "on processors ONNX Runtime computes layers with 16-bit activations in float";
        writeln!(out, "{note}")?;
    }
    for (name, chosen) in [
        ("chosen", &result.chosen),
        ("without a search", &result.without_search),
    ] {
        writeln!(
            out,
            "{name}: {} bytes, {:.1} % of the float model's time, {} tensors with 16 bits, {:.1} dB on the held-out samples",
            chosen.bytes,
            100.0 * chosen.share_of_time,
            chosen.wide,
            chosen.held_sqnr
        )?;
    }
    writeln!(out, "{}", result.answer)?;
    Ok(out)
}
