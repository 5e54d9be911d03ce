//! Tables as samples: each row of a `.csv` or `.tsv` file is one, for models whose inputs are columns.
//!
//! A file is split once, with the model's inputs at hand, into files that end in `.row`
//! ([`TableRow`]). These are samples like any other.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::csv::{CsvRecord, records};
use super::text_inputs::TextInputs;
use super::{Array, InputSpec, SampleError, SampleProblem};
use octet_graph::Dim;
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::DataType;

/// Largest number of rows of a file that become samples; they are spread evenly over it.
pub const MOST_ROWS: usize = 100;

/// Columns of these names are no features where a table has more columns than the model takes.
const NOT_FEATURES: [&str; 8] = [
    "label", "target", "class", "y", "id", "index", "species", "outcome",
];

/// Content of a `.row` file, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRow {
    /// Names of the columns for each input of the model.
    columns: Vec<Vec<String>>,
    /// Their cells, as the table has them.
    cells: Vec<Vec<String>>,
}

/// True if rows of tables can be the samples of a model with these inputs.
pub fn takes_rows(inputs: &[InputSpec]) -> bool {
    TextInputs::new(inputs).is_err() && features(inputs).is_some()
}

/// Number of columns of each input, `None` where it is open; `None` if an input is no columns.
fn features(inputs: &[InputSpec]) -> Option<Vec<Option<usize>>> {
    let one = |dim: &Dim| !matches!(dim, Dim::Known(size) if *size != 1);
    let columns = |input: &InputSpec| match input.shape.as_slice() {
        _ if !is_number(input.element) => None,
        [] => Some(Some(1)),
        [batch, Dim::Known(columns)] if one(batch) => Some(Some(*columns)),
        [batch, _] if one(batch) && inputs.len() == 1 => Some(None),
        [batch] if one(batch) => Some(Some(1)),
        _ => None,
    };
    let all: Option<Vec<_>> = inputs.iter().map(columns).collect();
    all.filter(|all| !all.is_empty())
}

fn is_number(element: DataType) -> bool {
    use DataType::{Bool, Double, Int32, Int64, Uint8};
    element == DataType::Float
        || element.is_half()
        || matches!(element, Double | Int64 | Int32 | Uint8 | Bool)
}

/// Splits a table into rows for these inputs: name and content of a file for each. At most `most` of
/// them, spread evenly.
pub fn rows(
    path: &str,
    bytes: &[u8],
    inputs: &[InputSpec],
    most: usize,
) -> Result<Vec<(String, Bytes)>, SampleError> {
    split(path, bytes, inputs, most).map_err(|problem| SampleError::Sample {
        sample: path.into(),
        problem,
    })
}

fn split(
    path: &str,
    bytes: &[u8],
    inputs: &[InputSpec],
    most: usize,
) -> Result<Vec<(String, Bytes)>, SampleProblem> {
    let broken = |why: &str, next: &str| SampleProblem::broken(path, why, next);
    let text = std::str::from_utf8(bytes)
        .map_err(|_| broken("it is not UTF-8", "save the file as UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut records = records(text, separator(text)).map_err(|line| {
        let why = format!("a quoted cell does not end well in line {line}");
        broken(&why, "close each quoted cell, and double the quotes inside")
    })?;
    let named = records.first().is_some_and(has_names);
    let names: Vec<String> = match (records.first(), named) {
        (Some(first), true) => first
            .cells
            .iter()
            .map(|name| name.trim().to_owned())
            .collect(),
        (Some(first), false) => (1..=first.cells.len())
            .map(|column| format!("column {column}"))
            .collect(),
        (None, _) => Vec::new(),
    };
    records.drain(..usize::from(named));
    if records.is_empty() {
        return Err(broken("it has no rows", "add some"));
    }
    let chosen = choose(path, &names, &records, inputs)?;
    let count = records.len();
    let taken = most.clamp(1, count);
    let row = |at: usize| {
        let record = &records[at * count / taken];
        let cell = |&column: &usize| record.cells.get(column).cloned().unwrap_or_default();
        let row = TableRow {
            columns: map(&chosen, |&column| names[column].clone()),
            cells: map(&chosen, cell),
        };
        let content = serde_json::to_vec(&row)
            .map_err(|error| broken(&error.to_string(), "save the table again"))?;
        Ok((format!("{path}:{}.row", record.line), content.into()))
    };
    (0..taken).map(row).collect()
}

fn map<T>(columns: &[Vec<usize>], one: impl Fn(&usize) -> T) -> Vec<Vec<T>> {
    let all = columns.iter();
    all.map(|columns| columns.iter().map(&one).collect())
        .collect()
}

/// The separator of the first line: the one of comma, semicolon and tab that is most frequent.
fn separator(text: &str) -> char {
    let line = text.lines().next().unwrap_or_default();
    let times = |sign: &char| line.matches(*sign).count();
    // The last of equal maxima counts, which is the comma.
    let signs = ['\t', ';', ','];
    signs.into_iter().max_by_key(times).unwrap_or(',')
}

/// True if the record names columns: no cell is a number.
fn has_names(record: &CsvRecord) -> bool {
    record.cells.iter().all(|cell| number(cell).is_none())
}

fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let truth = || match cell.to_ascii_lowercase().as_str() {
        "true" => Some(1.0),
        "false" => Some(0.0),
        _ => None,
    };
    cell.parse().ok().or_else(truth)
}

/// The columns for each input.
fn choose(
    path: &str,
    names: &[String],
    records: &[CsvRecord],
    inputs: &[InputSpec],
) -> Result<Vec<Vec<usize>>, SampleProblem> {
    let refused = |why: String, next: &str| SampleProblem::broken(path, why, next);
    let Some(features) = features(inputs) else {
        return Err(refused(
            "the model's inputs are no columns of a table".into(),
            "give .npy or .npz files",
        ));
    };
    let all: Vec<usize> = (0..names.len()).collect();
    if let [wanted] = features.as_slice() {
        let count = wanted.unwrap_or(0);
        if *wanted == Some(all.len()) {
            return Ok(vec![all]);
        }
        let is_feature = |&column: &usize| {
            let name = plain(&names[column]);
            let cells = || records.iter().filter_map(|record| record.cells.get(column));
            !NOT_FEATURES.contains(&name.as_str()) && cells().any(|cell| number(cell).is_some())
        };
        let numeric: Vec<usize> = all.into_iter().filter(is_feature).collect();
        if wanted.is_none() && !numeric.is_empty() || numeric.len() == count {
            return Ok(vec![numeric]);
        }
        let found: Vec<&str> = numeric
            .iter()
            .map(|&column| names[column].as_str())
            .collect();
        let why = format!(
            "the model's input {:?} takes {count} columns, and the table has {} of numbers: {}",
            inputs[0].name,
            found.len(),
            found.join(", ")
        );
        return Err(refused(
            why,
            "leave exactly the features, in the order of the model",
        ));
    }
    let column = |(input, wanted): (&InputSpec, &Option<usize>)| {
        let found = names
            .iter()
            .position(|name| plain(name) == plain(&input.name));
        match (found, wanted) {
            (Some(column), Some(1)) => Ok(vec![column]),
            (_, Some(1)) => Err(refused(
                format!("no column is called {:?}, as an input is", input.name),
                "name each column by its input",
            )),
            _ => Err(refused(
                format!(
                    "input {:?} takes several columns beside other inputs",
                    input.name
                ),
                "give .npz files with an array for each input",
            )),
        }
    };
    inputs.iter().zip(&features).map(column).collect()
}

/// Letters and digits of a name, in lower case.
fn plain(name: &str) -> String {
    let signs = name.chars().filter(|sign| sign.is_alphanumeric());
    signs.flat_map(char::to_lowercase).collect()
}

/// The arrays of a row, one for each input.
pub(super) fn read(
    file: &str,
    bytes: &[u8],
    inputs: &[InputSpec],
) -> Result<Vec<Array>, SampleProblem> {
    let again = "make it again from the table";
    let broken = |why: String| SampleProblem::broken(file, why, again);
    let row: TableRow = serde_json::from_slice(bytes).map_err(|error| broken(error.to_string()))?;
    if row.cells.len() != inputs.len() || row.columns.len() != inputs.len() {
        return Err(broken("it was made for a model with other inputs".into()));
    }
    let array = |(input, (names, cells)): (&InputSpec, (&Vec<String>, &Vec<String>))| {
        let value = |(place, cell): (usize, &String)| {
            let read = number(cell).filter(|value| value.is_finite());
            read.ok_or_else(|| {
                let name = names.get(place).map_or("", String::as_str);
                let why = format!("column {name:?} holds {cell:?}, which is no number");
                SampleProblem::broken(file, why, "repair the table, or leave the row out")
            })
        };
        let values = cells.iter().enumerate().map(value);
        let values: Vec<f64> = values.collect::<Result<_, _>>()?;
        let whole = values.iter().all(|value| value.fract() == 0.0);
        let stored = match input.element.is_float() || !whole {
            true => DataType::Double,
            false => DataType::Int64,
        };
        let shape = match input.shape.len() {
            2 => vec![1, values.len()],
            1 => vec![1],
            _ => Vec::new(),
        };
        let values = match stored {
            DataType::Double => Values::F64(values),
            _ => Values::I64(values.iter().map(|&value| value as i64).collect()),
        };
        let tensor = Tensor::new(shape, values)
            .ok_or_else(|| broken("its number of cells does not fit the input".into()))?;
        Ok(Array::of_input(input, tensor))
    };
    let parts = row.columns.iter().zip(&row.cells);
    inputs.iter().zip(parts).map(array).collect()
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
