//! Elementwise functions as lookup tables: 256 entries for 8 bits, 65,536 for 16.

use super::byte_copy;
use super::error::{Error, at_least, equal, span};
use super::int16::Int16Grid;
use super::scale::Scale;
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
use super::shuffle::ShuffleTable;

/// The output byte of each input byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(pub [u8; 256]);

impl Table {
    /// Tabulates a real function between two quantizations.
    pub fn of(from: Scale, to: Scale, function: impl Fn(f32) -> f32) -> Table {
        let mut table = [0; 256];
        for (byte, entry) in (0..=u8::MAX).zip(&mut table) {
            *entry = to.byte(function(from.value(byte)));
        }
        Table(table)
    }

    /// Tabulates a requantization, such as an input of Concat.
    pub fn rescale(from: Scale, to: Scale) -> Table {
        Table::of(from, to, |value| value)
    }

    /// Composes this table with another: a chain of elementwise operators becomes one table.
    pub fn then(&self, next: &Table) -> Table {
        Table(self.0.map(|byte| next.0[usize::from(byte)]))
    }

    /// Returns true if the table is the identity.
    pub fn is_identity(&self) -> bool {
        self.0
            .iter()
            .zip(0..=u8::MAX)
            .all(|(&entry, byte)| entry == byte)
    }

    /// Looks up every value.
    pub fn apply(&self, values: &[u8], output: &mut [u8]) -> Result<(), Error> {
        equal("the output", values.len(), output.len())?;
        #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
        let (values, output) = match ShuffleTable::new(&self.0, values.len()) {
            Some(parts) => {
                let ((turns, values), (made, output)) =
                    (values.as_chunks(), output.as_chunks_mut());
                parts.look_up(turns, made);
                (values, output)
            }
            None => (values, output),
        };
        let ((values, last), (output, end)) = (values.as_chunks(), output.as_chunks_mut());
        for (to, &from) in output.iter_mut().zip(values) {
            // Unrolled by eight: a browser checks for interrupts once per iteration.
            let from: [u8; 8] = from;
            let look = |at: usize| self.0[usize::from(from[at])];
            *to = [
                look(0),
                look(1),
                look(2),
                look(3),
                look(4),
                look(5),
                look(6),
                look(7),
            ];
        }
        for (to, &from) in end.iter_mut().zip(last) {
            *to = self.0[usize::from(from)];
        }
        Ok(())
    }
}

/// Number of 16-bit integers.
const INTEGERS: usize = 1 << 16;

/// Indices computed before their lookups.
const RUN: usize = 64;

/// Results of a function for each 16-bit integer, given as its real value. Results are bytes or
/// reals.
#[derive(Clone, Debug)]
pub struct WideTable<T> {
    of: Int16Grid,
    answers: Box<[T; INTEGERS]>,
}

impl<T: Copy> WideTable<T> {
    /// Creates a table from the results for all integers of a grid, beginning with the minimum.
    pub fn new(of: Int16Grid, answers: Vec<T>) -> Result<WideTable<T>, Error> {
        let actual = answers.len();
        let answers = answers.try_into().map_err(|_| Error::Mismatch {
            what: "the entries of a table",
            expected: INTEGERS,
            actual,
        })?;
        Ok(WideTable { of, answers })
    }

    /// Returns the results, beginning with that of the minimum integer.
    pub fn answers(&self) -> &[T] {
        &self.answers[..]
    }

    /// Looks up one value.
    pub fn answer(&self, value: f32) -> T {
        self.answers[usize::from(self.of.integer(value))]
    }
}

// Not generic: a concrete function is compiled in this crate, for speed, rather than in the calling
// crate.
impl WideTable<f32> {
    /// Looks up every value, rounded to the grid.
    pub fn apply(&self, values: &[f32], output: &mut [f32]) -> Result<(), Error> {
        look_up(self.of, &self.answers, values, output)
    }
}

impl WideTable<u8> {
    /// Looks up every value, rounded to the grid.
    pub fn apply(&self, values: &[f32], output: &mut [u8]) -> Result<(), Error> {
        look_up(self.of, &self.answers, values, output)
    }
}

fn look_up<T: Copy>(
    of: Int16Grid,
    answers: &[T; INTEGERS],
    values: &[f32],
    output: &mut [T],
) -> Result<(), Error> {
    equal("the output", values.len(), output.len())?;
    let mut integers = [0; RUN];
    for (values, output) in values.chunks(RUN).zip(output.chunks_mut(RUN)) {
        for (integer, &value) in integers.iter_mut().zip(values) {
            *integer = of.integer(value);
        }
        for (to, &integer) in output.iter_mut().zip(&integers) {
            *to = answers[usize::from(integer)];
        }
    }
    Ok(())
}

/// Copies `count` rows of `width` values between two strides, through a table if given. Used for
/// Concat and Split along channels.
pub fn copy_rows(
    values: &[u8],
    stride: usize,
    [count, width]: [usize; 2],
    table: Option<&Table>,
    output: &mut [u8],
    output_stride: usize,
) -> Result<(), Error> {
    at_least(
        "the input",
        values.len(),
        span("the input", count, stride, width)?,
    )?;
    at_least(
        "the output",
        output.len(),
        span("the output", count, output_stride, width)?,
    )?;
    if width == 0 {
        return Ok(());
    }
    // Shortest rows are moved as one integer each.
    let strides = [stride, output_stride];
    match (width, table) {
        (1, None) => short_rows(values, output, strides, count, |row: [u8; 1]| row),
        (2, None) => short_rows(values, output, strides, count, |row: [u8; 2]| row),
        (4, None) => short_rows(values, output, strides, count, |row: [u8; 4]| row),
        (1, Some(table)) => short_rows(values, output, strides, count, |[value]: [u8; 1]| {
            [table.0[usize::from(value)]]
        }),
        _ => {
            for row in 0..count {
                let from = &values[row * stride..][..width];
                let to = &mut output[row * output_stride..][..width];
                match table {
                    None => byte_copy::copy(from, to),
                    Some(table) => table.apply(from, to)?,
                }
            }
        }
    }
    Ok(())
}

/// Copies `count` rows of `WIDTH` bytes. Both strides are at least that wide.
fn short_rows<const WIDTH: usize>(
    values: &[u8],
    output: &mut [u8],
    strides: [usize; 2],
    count: usize,
    made: impl Fn([u8; WIDTH]) -> [u8; WIDTH],
) {
    let [from, to] = strides.map(|stride| stride.max(1));
    let rows = values.chunks(from).zip(output.chunks_mut(to)).take(count);
    for (from, to) in rows {
        if let (Some(from), Some(to)) = (from.first_chunk(), to.first_chunk_mut()) {
            *to = made(*from);
        }
    }
}
