//! Comma-separated values as RFC 4180 has them: quoted cells may hold commas, quotes and lines. Another
//! separator is possible.

/// A record, and the line at which it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvRecord {
    /// Line of the file, from 1.
    pub line: usize,
    /// Its cells, without quotes.
    pub cells: Vec<String>,
}

/// All records that are not blank. An error is the line of a quoted cell that does not end, or that
/// text follows.
pub fn records(text: &str, separator: char) -> Result<Vec<CsvRecord>, usize> {
    let mut records = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let mut record = CsvRecord {
            line,
            cells: Vec::new(),
        };
        loop {
            let (cell, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted_cell(quoted).ok_or(line)?,
                None => {
                    let (cell, after) =
                        rest.split_at(rest.find([separator, '\n']).unwrap_or(rest.len()));
                    (cell.strip_suffix('\r').unwrap_or(cell).into(), after)
                }
            };
            line += cell.matches('\n').count();
            record.cells.push(cell);
            match after.strip_prefix(separator) {
                Some(next) => rest = next,
                None => {
                    let after = after.strip_prefix('\r').unwrap_or(after);
                    match after.strip_prefix('\n') {
                        Some(next) => rest = next,
                        None if after.is_empty() => rest = after,
                        None => return Err(line),
                    }
                    line += 1;
                    break;
                }
            }
        }
        if record.cells.iter().any(|cell| !cell.is_empty()) {
            records.push(record);
        }
    }
    Ok(records)
}

/// A cell behind its opening quote, and what follows it.
fn quoted_cell(text: &str) -> Option<(String, &str)> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        cell += before;
        match after.strip_prefix('"') {
            Some(next) => {
                cell.push('"');
                rest = next;
            }
            None => return Some((cell, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<(usize, Vec<String>)> {
        let all = records(text, ',').unwrap();
        all.into_iter().map(|one| (one.line, one.cells)).collect()
    }

    #[test]
    fn cells_may_hold_commas_quotes_and_lines() {
        let read = cells("a,b\r\n\"1,\"\"x\"\"\",\"two\nlines\"\n\n,last");
        let all = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_string()).collect();
        assert_eq!(
            read,
            [
                (1, all(&["a", "b"])),
                (2, all(&["1,\"x\"", "two\nlines"])),
                (5, all(&["", "last"])),
            ]
        );
    }

    #[test]
    fn a_cell_that_does_not_end_is_found_with_its_line() {
        assert_eq!(records("a\nb,\"c", ','), Err(2));
        assert_eq!(records("\"a\"b,c", ','), Err(1));
    }
}
