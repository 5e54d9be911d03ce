//! Texts of a file: lines or paragraphs of `.txt`, a field of `.jsonl`, a column of `.csv`.

use octet_samples::{CsvRecord, TextSettings, TextUnit, csv_records};
use serde_json::{Map, Value};

use super::TextError;

/// A text, or a pair of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// Line of the file at which it begins, from 1.
    pub(super) line: usize,
    /// One text, or two.
    pub(super) parts: Vec<String>,
}

/// Field that holds the text unless a setting names another.
const FIELD: &str = "text";

/// Reads all texts of a file. Blank ones are left out.
pub(super) fn read(
    path: &str,
    bytes: &[u8],
    settings: &TextSettings,
) -> Result<Vec<Text>, TextError> {
    let all = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        problem(path, line, "it is not UTF-8", "save the file as UTF-8")
    })?;
    let all = all.strip_prefix('\u{feff}').unwrap_or(all);
    let source = TextFile { path, settings };
    if settings.fields.len() > 2 {
        let why = format!("{} fields are named", settings.fields.len());
        return Err(problem(
            path,
            1,
            &why,
            "name one, or two for pairs of texts",
        ));
    }
    let ending = path.rsplit('.').next().unwrap_or_default();
    let mut texts = match ending.to_ascii_lowercase().as_str() {
        "jsonl" => source.json_lines(all)?,
        "csv" => source.table(all)?,
        _ => source.plain(all),
    };
    texts.retain(|text| text.parts.iter().all(|part| !part.trim().is_empty()));
    match texts.is_empty() {
        true => Err(problem(path, 1, "it holds no text", "add some")),
        false => Ok(texts),
    }
}

fn problem(path: &str, line: usize, why: &str, next: &str) -> TextError {
    TextError::File {
        file: path.into(),
        place: format!("line {line}"),
        why: why.into(),
        next: next.into(),
    }
}

struct TextFile<'a> {
    path: &'a str,
    settings: &'a TextSettings,
}

impl TextFile<'_> {
    fn plain(&self, all: &str) -> Vec<Text> {
        let lines = all.lines().enumerate();
        if self.settings.unit == TextUnit::Lines {
            let text = |(index, line): (usize, &str)| Text {
                line: index + 1,
                parts: vec![line.trim().into()],
            };
            return lines.map(text).collect();
        }
        let mut texts: Vec<Text> = Vec::new();
        let mut open = false;
        for (index, line) in lines {
            let blank = line.trim().is_empty();
            match texts.last_mut() {
                Some(text) if open && !blank => text.parts[0] += &format!("\n{}", line.trim_end()),
                _ if !blank => texts.push(Text {
                    line: index + 1,
                    parts: vec![line.trim_end().into()],
                }),
                _ => {}
            }
            open = !blank;
        }
        texts
    }

    /// One JSON value a line: an object with a field of text, or the text itself.
    fn json_lines(&self, all: &str) -> Result<Vec<Text>, TextError> {
        let mut texts = Vec::new();
        let mut fields: Option<Vec<String>> = None;
        let lines = all
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        for (index, line) in lines {
            let wrong = |why: &str, next: &str| problem(self.path, index + 1, why, next);
            let value: Value = serde_json::from_str(line).map_err(|error| {
                let why = format!("it is not JSON ({error})");
                wrong(&why, "write one JSON object a line")
            })?;
            let parts = match &value {
                Value::String(text) => vec![text.clone()],
                Value::Object(record) => {
                    let fields = match &mut fields {
                        Some(fields) => fields,
                        None => fields.insert(self.fields_of(record, index + 1)?),
                    };
                    let text = |field: &String| match &record.get(field) {
                        Some(Value::String(text)) => Ok(text.clone()),
                        _ => Err(wrong(
                            &format!("the field {field:?} is missing or no text"),
                            "correct the line, or name another field",
                        )),
                    };
                    fields.iter().map(text).collect::<Result<_, _>>()?
                }
                _ => {
                    return Err(wrong(
                        "it is neither an object nor a text",
                        "write one JSON object a line",
                    ));
                }
            };
            texts.push(Text {
                line: index + 1,
                parts,
            });
        }
        Ok(texts)
    }

    fn fields_of(
        &self,
        record: &Map<String, Value>,
        line: usize,
    ) -> Result<Vec<String>, TextError> {
        let texts = record.iter().filter(|(_, value)| value.is_string());
        let texts: Vec<&str> = texts.map(|(name, _)| name.as_str()).collect();
        let all: Vec<&str> = record.keys().map(String::as_str).collect();
        self.choose(&all, &texts, line)
    }

    /// The named fields, or "text", or the only one that holds text.
    fn choose(&self, all: &[&str], texts: &[&str], line: usize) -> Result<Vec<String>, TextError> {
        let named = &self.settings.fields;
        let missing = named.iter().find(|name| !all.contains(&name.as_str()));
        let list = || {
            all.iter()
                .map(|name| format!("{name:?}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        if let Some(missing) = missing {
            let why = format!("there is no field {missing:?}");
            let next = format!("name one of {}", list());
            return Err(problem(self.path, line, &why, &next));
        }
        match (named.as_slice(), texts) {
            ([_, ..], _) => Ok(named.clone()),
            _ if all.contains(&FIELD) => Ok(vec![FIELD.into()]),
            (_, [only]) => Ok(vec![(*only).into()]),
            _ => {
                let why = format!(
                    "no field is called {FIELD:?}, and {} hold text",
                    texts.len()
                );
                let next = format!("name the field of the text: {}", list());
                Err(problem(self.path, line, &why, &next))
            }
        }
    }

    /// A table whose first record names the columns.
    fn table(&self, all: &str) -> Result<Vec<Text>, TextError> {
        let broken = |line: usize| {
            let next = "close each quoted cell, and double the quotes inside";
            problem(self.path, line, "a quoted cell does not end well", next)
        };
        let mut records = csv_records(all, ',').map_err(broken)?.into_iter();
        let Some(head) = records.next() else {
            return Ok(Vec::new());
        };
        let records: Vec<CsvRecord> = records.collect();
        let names: Vec<&str> = head.cells.iter().map(|name| name.trim()).collect();
        let holds_text = |column: usize| {
            let cells = records.iter().filter_map(|record| record.cells.get(column));
            let mut cells = cells.filter(|cell| !cell.trim().is_empty());
            cells.any(|cell| cell.trim().parse::<f64>().is_err())
        };
        let texts = names
            .iter()
            .enumerate()
            .filter(|(column, _)| holds_text(*column));
        let texts: Vec<&str> = texts.map(|(_, name)| *name).collect();
        let fields = self.choose(&names, &texts, head.line)?;
        let columns: Vec<usize> = fields
            .iter()
            .filter_map(|field| names.iter().position(|name| name == field))
            .collect();
        let text = |record: CsvRecord| {
            let cell = |&column: &usize| record.cells.get(column).cloned().unwrap_or_default();
            Text {
                line: record.line,
                parts: columns.iter().map(cell).collect(),
            }
        };
        Ok(records.into_iter().map(text).collect())
    }
}
