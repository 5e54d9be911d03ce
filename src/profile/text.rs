//! The layer table as text for a terminal, and as CSV.

use std::fmt::Write;

use super::columns::{Cell, Column};
use super::layers::{Layer, LayerTable};

/// Maximum length of a name in a terminal. Files have the full names.
const WIDEST: usize = 40;

/// Columns in a terminal.
const TERMINAL: [Column; 12] = [
    Column::Name,
    Column::Operator,
    Column::In,
    Column::Out,
    Column::Shape,
    Column::Ms,
    Column::P90,
    Column::Share,
    Column::Gmacs,
    Column::Own,
    Column::Live,
    Column::Kernel,
];

/// Rows of a table for a terminal.
pub fn rows(layers: &[Layer]) -> String {
    let lines: Vec<Vec<String>> = std::iter::once(TERMINAL.map(|c| c.title().to_string()).to_vec())
        .chain(layers.iter().map(|layer| {
            TERMINAL
                .map(|column| cut(column, column.shown(layer)).replace(char::is_control, " "))
                .to_vec()
        }))
        .collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..TERMINAL.len()).map(|c| width(c).unwrap_or(0)).collect();
    let mut out = String::new();
    for line in &lines {
        let mut text = String::new();
        for ((cell, column), width) in line.iter().zip(TERMINAL).zip(&widths) {
            let _ = match column.is_number() {
                true => write!(text, "{cell:>width$}  "),
                false => write!(text, "{cell:<width$}  "),
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// Shortens a text. Names keep their ends, since exporters put scopes in front.
fn cut(column: Column, text: String) -> String {
    let length = text.chars().count();
    match (length > WIDEST, column) {
        (false, _) => text,
        (true, Column::Name) => {
            text.chars()
                .skip(length - WIDEST + 1)
                .fold("…".into(), |mut cut, c| {
                    cut.push(c);
                    cut
                })
        }
        (true, _) => text.chars().take(WIDEST - 1).chain(['…']).collect(),
    }
}

/// Summary of a table.
pub fn summary(table: &LayerTable) -> String {
    const MB: f64 = 1e6;
    let total = &table.total;
    let mut out = format!(
        "{:.3} ms per run on {} (median of {} after {} warm-up runs; 10 % below {:.3}, 90 % below {:.3}), {:.3} ms of \
         it outside the layers\n",
        total.median,
        threads(table),
        table.runs,
        table.warm_up,
        total.p10,
        total.p90,
        table.outside_ms
    );
    if table.macs > 0 && total.median > 0.0 {
        let _ = writeln!(
            out,
            "{:.1} million multiply-accumulates, {:.1} GMAC/s",
            table.macs as f64 / 1e6,
            table.macs as f64 / (total.median * 1e6)
        );
    }
    let _ = writeln!(
        out,
        "memory: {:.1} MB resident (file, weights, plan), {:.1} MB more at the peak, in {}; outputs of all layers: {:.1} MB",
        table.resident_bytes as f64 / MB,
        table.peak_bytes as f64 / MB,
        table.peak_layer,
        table.sum_bytes as f64 / MB
    );
    let _ = writeln!(
        out,
        "the clock resolution is {:.2} µs; a single shorter time means nothing",
        table.resolution_ms * 1e3
    );
    out.push_str(&in_float(&table.layers));
    out
}

/// The number of threads in words, with the number of available ones if that differs.
fn threads(table: &LayerTable) -> String {
    match (table.threads, table.max_threads) {
        (1, ..=1) => "1 thread".into(),
        (used, most) if used == most => format!("{used} threads"),
        (used, most) => format!("{used} of {most} threads"),
    }
}

/// Float layers of a quantized model by reason, the most frequent first.
fn in_float(layers: &[Layer]) -> String {
    const NAMED: usize = 3;
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for layer in layers {
        let Some(reason) = &layer.in_float else {
            continue;
        };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(&layer.name),
            None => reasons.push((reason, vec![&layer.name])),
        }
    }
    reasons.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let mut out = String::new();
    for (reason, names) in reasons {
        let named = names[..names.len().min(NAMED)].join(", ");
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let line = format!("in float: {named}{more}: {reason}");
        out.push_str(&line.replace(char::is_control, " "));
        out.push('\n');
    }
    out
}

/// Rows as CSV (RFC 4180), with all columns and unrounded quantities.
pub fn csv(layers: &[Layer]) -> String {
    let mut out = Column::ALL.map(Column::name).join(",") + "\r\n";
    for layer in layers {
        let cells = Column::ALL.map(|column| match column.cell(layer) {
            Cell::Empty => String::new(),
            Cell::Number(value) => value.to_string(),
            Cell::Text(text) => quoted(&text),
        });
        out.push_str(&cells.join(","));
        out.push_str("\r\n");
    }
    out
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_quoted_and_has_a_cell_for_each_column() {
        let layer = Layer {
            name: "a,\"b\"".into(),
            operator: "Conv".into(),
            share: 0.25,
            ..Layer::default()
        };
        let text = csv(&[layer]);
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("\"a,\"\"b\"\"\",Conv,0,0,0,0.25,,"));
        assert_eq!(lines[0].split(',').count(), Column::ALL.len());
    }

    #[test]
    fn float_layers_are_grouped_by_reason() {
        let layer = |name: &str, reason: Option<&str>| Layer {
            name: name.into(),
            in_float: reason.map(Into::into),
            ..Layer::default()
        };
        let rare = layer("rare", Some("it is odd"));
        let names = ["a", "b", "c", "d", "e"];
        let often = names.map(|name| layer(name, Some("no input is quantized")));
        let layers = [vec![rare, layer("integers", None)], often.to_vec()].concat();
        let expected =
            "in float: a, b, c and 2 more: no input is quantized\nin float: rare: it is odd\n";
        assert_eq!(in_float(&layers), expected);
        assert_eq!(in_float(&layers[1..2]), "");
    }

    #[test]
    fn a_terminal_row_is_one_line_for_any_name() {
        let name = format!("x\n\u{1b}[31m{}", "é".repeat(60));
        let text = rows(&[Layer {
            name,
            ..Layer::default()
        }]);
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains('\u{1b}') && text.contains('…'));
    }
}
