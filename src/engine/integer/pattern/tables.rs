//! Tables of tables: what is a function of one integer, step after step, is one table.

use std::collections::HashMap;

use super::network::{Operand, Operation, Step};

/// A function of one integer: the integers it makes, or the reals of 16 bits.
#[derive(Clone)]
enum Table {
    Bytes(Box<[u8; 256]>),
    Reals(Box<[f32; 256]>),
}

/// Arithmetic of a value and tables of itself is a table of it: x · sigmoid(x), whatever is quantized in
/// between.
pub(super) fn merge(steps: &mut [Step]) {
    let mut tables: HashMap<String, (Operand, Table)> = HashMap::new();
    for step in steps {
        let made = match (&step.operation, &step.inputs[..]) {
            (Operation::Table(table), [input]) => through(input, &tables)
                .map(|(root, before)| (root, Table::Bytes(Box::new(chained(table, &before))))),
            (Operation::RealTable(table), [input]) => through(input, &tables)
                .map(|(root, before)| (root, Table::Reals(Box::new(chained(table, &before))))),
            (Operation::Binary(binary), [left, right]) => {
                let how = binary.arithmetic();
                both(left, right, &tables).and_then(|(root, pairs)| {
                    Some((root, ended(step, pairs.map(|(a, b)| how.of(a, b)))?))
                })
            }
            (Operation::Reals(how), [left, right]) => {
                both(left, right, &tables).and_then(|(root, pairs)| {
                    Some((root, ended(step, pairs.map(|(a, b)| how.of(a, b)))?))
                })
            }
            _ => None,
        };
        if let Some((root, table)) = made {
            step.inputs = vec![root.clone()];
            step.operation = match table.clone() {
                Table::Bytes(table) => Operation::Table(table),
                Table::Reals(table) => Operation::RealTable(table),
            };
            step.bounds = [0, 255];
            tables.insert(step.output.clone(), (root, table));
        }
    }
}

fn chained<T: Copy>(table: &[T; 256], before: &[u8; 256]) -> [T; 256] {
    before.map(|at| table[usize::from(at)])
}

/// The value that a value of bytes is a function of, itself where it is none, and that function.
fn through(
    operand: &Operand,
    tables: &HashMap<String, (Operand, Table)>,
) -> Option<(Operand, [u8; 256])> {
    operand.quantization()?;
    match tables.get(operand.value()?) {
        Some((root, Table::Bytes(table))) => Some((root.clone(), **table)),
        Some((_, Table::Reals(_))) => None,
        None => Some((operand.clone(), std::array::from_fn(|at| at as u8))),
    }
}

/// The one value that both sides are functions of, and the reals they have for each of its integers. A side may be
/// one constant number.
fn both(
    left: &Operand,
    right: &Operand,
    tables: &HashMap<String, (Operand, Table)>,
) -> Option<(Operand, [(f32, f32); 256])> {
    let side = |operand: &Operand| -> Option<(Option<Operand>, [f32; 256])> {
        match operand {
            Operand::Reals(_, values) => match values[..] {
                [number] => Some((None, [number; 256])),
                _ => None,
            },
            Operand::Wide(name, _) => match tables.get(name)? {
                (root, Table::Reals(table)) => Some((Some(root.clone()), **table)),
                _ => None,
            },
            _ => {
                let (root, table) = through(operand, tables)?;
                let of = operand.quantization()?;
                Some((Some(root), table.map(|integer| of.real(integer))))
            }
        }
    };
    let ((a, left), (b, right)) = (side(left)?, side(right)?);
    let root = match (a, b) {
        (Some(a), Some(b)) => {
            let same = a.value() == b.value() && a.quantization() == b.quantization();
            same.then_some(a)?
        }
        (one, other) => one.or(other)?,
    };
    Some((root, std::array::from_fn(|at| (left[at], right[at]))))
}

/// What a step makes of its reals.
fn ended(step: &Step, reals: [f32; 256]) -> Option<Table> {
    if let Some(wide) = step.wide {
        return Some(Table::Reals(Box::new(
            reals.map(|real| wide.grid.value(real)),
        )));
    }
    let to = step.quantization?;
    let [low, high] = step.bounds;
    let integer = |real| to.integer(real).clamp(low, high.max(low));
    Some(Table::Bytes(Box::new(reals.map(integer))))
}
