//! Table merging: a composition of functions of one integer becomes one table.

use std::collections::HashMap;
use std::sync::Arc;

use octet_kernels::int8::WideTable;

use super::super::quantization::{Quantization, Wide};
use super::network::{Operand, Operation, Step};

/// A function of one integer, with its value for every integer of the operand.
#[derive(Clone)]
struct Function {
    of: Operand,
    answers: Answers,
}

/// Values of a function: bytes, or reals of a 16-bit quantization.
#[derive(Clone)]
pub(super) enum Answers {
    Bytes(Vec<u8>),
    Reals(Vec<f32>),
}

impl Answers {
    /// Quantizes reals to bytes between two bounds.
    pub(super) fn bytes(
        reals: impl Iterator<Item = f32>,
        to: Quantization,
        [low, high]: [u8; 2],
    ) -> Answers {
        let integer = |real| to.integer(real).clamp(low, high.max(low));
        Answers::Bytes(reals.map(integer).collect())
    }

    /// Rounds reals to a 16-bit quantization.
    pub(super) fn reals(reals: impl Iterator<Item = f32>, to: Wide) -> Answers {
        Answers::Reals(reals.map(|real| to.grid.value(real)).collect())
    }
}

/// The functions that earlier steps compute, by output name.
type Known = HashMap<String, Arc<Function>>;

/// Merges arithmetic of a value with tables of the same value, such as x · sigmoid(x), even with
/// quantization in between.
pub(super) fn merge(steps: &mut [Step]) {
    let mut known = Known::new();
    for step in steps {
        let found = match (&step.operation, &step.inputs[..]) {
            (Operation::Table(table), [input]) => of_bytes(input, &known)
                .map(|(of, before)| (of, Answers::Bytes(looked_up(&table[..], &before)))),
            (Operation::RealTable(table), [input]) => of_bytes(input, &known)
                .map(|(of, before)| (of, Answers::Reals(looked_up(&table[..], &before)))),
            (Operation::WideTable(table), [input]) => {
                of_reals(input, table, &known).map(|(of, reals)| (of, Answers::Reals(reals)))
            }
            (Operation::WideToBytes(table), [input]) => {
                of_reals(input, table, &known).map(|(of, bytes)| (of, Answers::Bytes(bytes)))
            }
            (Operation::Binary(binary), [left, right]) => {
                let how = binary.arithmetic();
                both(left, right, &known).and_then(|(of, pairs)| {
                    Some((of, ended(step, pairs.iter().map(|&(a, b)| how.of(a, b)))?))
                })
            }
            (Operation::Reals(how), [left, right]) => {
                both(left, right, &known).and_then(|(of, pairs)| {
                    Some((of, ended(step, pairs.iter().map(|&(a, b)| how.of(a, b)))?))
                })
            }
            _ => None,
        };
        let Some((of, answers)) = found else { continue };
        let Some(operation) = operation(&of, &answers) else {
            continue;
        };
        step.inputs = vec![of.clone()];
        step.operation = operation;
        step.bounds = [0, 255];
        known.insert(step.output.clone(), Arc::new(Function { of, answers }));
    }
}

/// The operation for a function; `None` if the table has another size than its operand needs.
pub(super) fn operation(of: &Operand, answers: &Answers) -> Option<Operation> {
    Some(match (of, answers) {
        (Operand::Wide(_, wide), Answers::Bytes(bytes)) => {
            Operation::WideToBytes(Arc::new(WideTable::new(wide.grid, bytes.clone()).ok()?))
        }
        (Operand::Wide(_, wide), Answers::Reals(reals)) => {
            Operation::WideTable(Arc::new(WideTable::new(wide.grid, reals.clone()).ok()?))
        }
        (_, Answers::Bytes(bytes)) => Operation::Table(bytes.clone().try_into().ok()?),
        (_, Answers::Reals(reals)) => Operation::RealTable(reals.clone().try_into().ok()?),
    })
}

fn looked_up<T: Copy>(table: &[T], before: &[u8]) -> Vec<T> {
    before.iter().map(|&at| table[usize::from(at)]).collect()
}

/// Expresses a byte value as a function of another value, or as the identity.
fn of_bytes(operand: &Operand, known: &Known) -> Option<(Operand, Vec<u8>)> {
    operand.quantization()?;
    match known.get(operand.value()?).map(Arc::as_ref) {
        Some(Function {
            of,
            answers: Answers::Bytes(bytes),
        }) => Some((of.clone(), bytes.clone())),
        Some(_) => None,
        None => Some((operand.clone(), (0..=u8::MAX).collect())),
    }
}

/// Composes a table of a 16-bit value with the function that computes this value.
fn of_reals<T: Copy>(
    operand: &Operand,
    table: &WideTable<T>,
    known: &Known,
) -> Option<(Operand, Vec<T>)> {
    match known.get(operand.value()?).map(Arc::as_ref) {
        Some(Function {
            of,
            answers: Answers::Reals(reals),
        }) => Some((
            of.clone(),
            reals.iter().map(|&real| table.answer(real)).collect(),
        )),
        Some(_) => None,
        None => Some((operand.clone(), table.answers().to_vec())),
    }
}

/// One side of an arithmetic: a number, or a function's real for each integer of its operand.
enum Side {
    Number(f32),
    Of(Operand, Vec<f32>),
}

fn side(operand: &Operand, known: &Known) -> Option<Side> {
    Some(match operand {
        Operand::Reals(_, values) => match values[..] {
            [number] => Side::Number(number),
            _ => return None,
        },
        Operand::Constant(constant) => match constant.integers[..] {
            [integer] => Side::Number(constant.quantization.real(integer)),
            _ => return None,
        },
        Operand::Wide(name, wide) => match known.get(name).map(Arc::as_ref) {
            Some(Function {
                of,
                answers: Answers::Reals(reals),
            }) => Side::Of(of.clone(), reals.clone()),
            Some(_) => return None,
            None => {
                let reals = (0..=u16::MAX).map(|integer| wide.grid.real(integer));
                Side::Of(operand.clone(), reals.collect())
            }
        },
        _ => {
            let (of, bytes) = of_bytes(operand, known)?;
            let from = operand.quantization()?;
            Side::Of(
                of,
                bytes.iter().map(|&integer| from.real(integer)).collect(),
            )
        }
    })
}

/// The common operand of both sides, and their reals for each of its integers. One side may be a
/// scalar constant.
fn both(left: &Operand, right: &Operand, known: &Known) -> Option<(Operand, Vec<(f32, f32)>)> {
    // Without an earlier table, arithmetic on 16 bits is faster than a lookup.
    let wide = |operand: &Operand| matches!(operand, Operand::Wide(..));
    let made = |operand: &Operand| operand.value().is_some_and(|name| known.contains_key(name));
    if [left, right].into_iter().any(wide) && ![left, right].into_iter().any(made) {
        return None;
    }
    let pairs = |left: Vec<f32>, right: Vec<f32>| left.into_iter().zip(right).collect();
    match (side(left, known)?, side(right, known)?) {
        (Side::Of(a, left), Side::Of(b, right)) => {
            let same = a.value() == b.value() && a.quantization() == b.quantization();
            same.then(|| (a, pairs(left, right)))
        }
        (Side::Of(of, left), Side::Number(number)) => {
            let right = vec![number; left.len()];
            Some((of, pairs(left, right)))
        }
        (Side::Number(number), Side::Of(of, right)) => {
            let left = vec![number; right.len()];
            Some((of, pairs(left, right)))
        }
        (Side::Number(_), Side::Number(_)) => None,
    }
}

/// Converts reals to the output type of a step.
fn ended(step: &Step, reals: impl Iterator<Item = f32>) -> Option<Answers> {
    match step.wide {
        Some(wide) => Some(Answers::reals(reals, wide)),
        None => Some(Answers::bytes(reals, step.quantization?, step.bounds)),
    }
}
