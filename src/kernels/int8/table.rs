//! Any function of one value: 256 answers, or 65,536 of an integer of 16 bits, computed once.

use super::convert::Scale;
use super::error::{Error, at_least, equal, span};
use super::moves;
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
use super::shuffle::Parts;
use super::wide::Grid;

/// What each byte becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(pub [u8; 256]);

impl Table {
    /// The table of a function of real values, between two scales.
    pub fn of(from: Scale, to: Scale, function: impl Fn(f32) -> f32) -> Table {
        let mut table = [0; 256];
        for (byte, entry) in (0..=u8::MAX).zip(&mut table) {
            *entry = to.byte(function(from.value(byte)));
        }
        Table(table)
    }

    /// From one scale to another: Concat's parts, a Requantize.
    pub fn rescale(from: Scale, to: Scale) -> Table {
        Table::of(from, to, |value| value)
    }

    /// This table, then another: a chain of elementwise operators is one table.
    pub fn then(&self, next: &Table) -> Table {
        Table(self.0.map(|byte| next.0[usize::from(byte)]))
    }

    /// Whether it changes nothing.
    pub fn is_identity(&self) -> bool {
        self.0
            .iter()
            .zip(0..=u8::MAX)
            .all(|(&entry, byte)| entry == byte)
    }

    /// Looks every value up.
    pub fn apply(&self, values: &[u8], output: &mut [u8]) -> Result<(), Error> {
        equal("the output", values.len(), output.len())?;
        #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
        let (values, output) = match Parts::of(&self.0, values.len()) {
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
            // Eight by eight: a browser looks whether it is to stop once a turn.
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

/// How many integers of 16 bits there are.
const INTEGERS: usize = 1 << 16;

/// Integers that are computed before their answers are looked up.
const RUN: usize = 64;

/// What each integer of 16 bits becomes, given as the real that it stands for: a byte, or another real.
#[derive(Clone, Debug)]
pub struct WideTable<T> {
    of: Grid,
    answers: Box<[T; INTEGERS]>,
}

impl<T: Copy> WideTable<T> {
    /// The table of a function of a grid's reals, whose answers are given from the least integer on.
    pub fn new(of: Grid, answers: Vec<T>) -> Result<WideTable<T>, Error> {
        equal("the answers of a table", INTEGERS, answers.len())?;
        let answers = answers.try_into().map_err(|_| Error::Zero {
            what: "the answers of a table",
        })?;
        Ok(WideTable { of, answers })
    }

    /// The answers, from that of the least integer on.
    pub fn answers(&self) -> &[T] {
        &self.answers[..]
    }

    /// Looks one value up.
    pub fn answer(&self, value: f32) -> T {
        self.answers[usize::from(self.of.integer(value))]
    }
}

// Not generic: a function of one type is compiled here, for speed, and not in the crate that calls it.
impl WideTable<f32> {
    /// Looks every value up; what lies between two reals of the grid is what it is rounded to.
    pub fn apply(&self, values: &[f32], output: &mut [f32]) -> Result<(), Error> {
        look_up(self.of, &self.answers, values, output)
    }
}

impl WideTable<u8> {
    /// Looks every value up; what lies between two reals of the grid is what it is rounded to.
    pub fn apply(&self, values: &[f32], output: &mut [u8]) -> Result<(), Error> {
        look_up(self.of, &self.answers, values, output)
    }
}

fn look_up<T: Copy>(
    of: Grid,
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

/// Copies `count` rows of `width` values from one stride to another, through a table if there is one: a part
/// of a Concat or Split along the channels.
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
    // The shortest are moved as one number each.
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
                    None => moves::copy(from, to),
                    Some(table) => table.apply(from, to)?,
                }
            }
        }
    }
    Ok(())
}

/// Moves `count` rows of so many bytes between two strides, which are that wide at least.
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
