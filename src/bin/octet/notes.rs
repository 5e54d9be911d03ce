//! Notes for a terminal: notes that differ only in names and numbers become one line, and at most
//! [`MOST`] lines are shown.

use octet::session::Forecast;

/// The largest number of lines.
const MOST: usize = 5;

/// The lines to print. If notes are left out, a last line says where all of them are.
pub fn summary_lines(notes: &[String], verbose: bool) -> Vec<String> {
    if verbose {
        return notes.to_vec();
    }
    let mut groups: Vec<(String, &String, usize)> = Vec::new();
    for note in notes {
        let kind = kind(note);
        match groups.iter_mut().find(|(known, ..)| *known == kind) {
            Some((.., count)) => *count += 1,
            None => groups.push((kind, note, 1)),
        }
    }
    let line = |&(_, note, count): &(String, &String, usize)| match count {
        1 => note.clone(),
        _ => format!("{note} (and {} more like it)", count - 1),
    };
    let mut lines: Vec<String> = groups.iter().take(MOST).map(line).collect();
    if lines.len() < notes.len() {
        lines.push(format!(
            "{} notes in all: see them with --verbose, or in the report (--report)",
            notes.len()
        ));
    }
    lines
}

/// A note without its names and numbers.
fn kind(note: &str) -> String {
    let mut kind = String::with_capacity(note.len());
    let mut quote = None;
    let mut number = false;
    for sign in note.chars() {
        match quote {
            Some(end) => {
                if sign == end {
                    quote = None;
                }
                continue;
            }
            None if sign == '`' || sign == '"' => {
                quote = Some(sign);
                kind.push(sign);
                number = false;
                continue;
            }
            None => {}
        }
        let digit = sign.is_ascii_digit() || (number && sign == '.');
        if !digit {
            kind.push(sign);
        } else if !number {
            kind.push('#');
        }
        number = digit;
    }
    kind
}

/// The forecast as one line.
pub fn forecast_line(forecast: &Forecast) -> String {
    let refusal = forecast
        .refusal
        .as_ref()
        .map_or(String::new(), |why| format!("; {why}"));
    let line = expected(forecast.peak_bytes, forecast.ms, forecast.output_bytes);
    format!("{line}{refusal}\n")
}

/// Memory, time and size of a result in words.
pub fn expected(peak_bytes: u64, ms: f64, output_bytes: u64) -> String {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    format!(
        "it will take about {:.0} MB of memory and {:.1} s, and the result will have about {:.1} MB",
        mb(peak_bytes),
        ms / 1e3,
        mb(output_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_notes_are_one_with_a_count() {
        let all = notes(&[
            "`a` has 2.5 integers",
            "`b.c` has 13 integers",
            "other",
            "`d` has 1 integers",
        ]);
        let lines = summary_lines(&all, false);
        assert_eq!(
            lines,
            [
                "`a` has 2.5 integers (and 2 more like it)",
                "other",
                "4 notes in all: see them with --verbose, or in the report (--report)"
            ]
        );
        assert_eq!(summary_lines(&all, true), all);
        assert_eq!(summary_lines(&all[..1], false), all[..1]);
        assert!(summary_lines(&[], false).is_empty());
    }

    #[test]
    fn there_is_never_more_than_a_handful() {
        let all: Vec<String> = (0..49)
            .map(|at| format!("kind {}", "x".repeat(at)))
            .collect();
        let lines = summary_lines(&all, false);
        assert_eq!(lines.len(), MOST + 1);
        assert!(lines[MOST].starts_with("49 notes in all"), "{lines:?}");
    }

    #[test]
    fn an_open_quote_ends_nothing() {
        assert_eq!(summary_lines(&notes(&["`open", "it's 5"]), false).len(), 2);
    }
}
