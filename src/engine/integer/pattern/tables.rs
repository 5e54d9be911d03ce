//! Tables of tables: what is a function of one integer, step after step, is one table.

use std::collections::HashMap;
use std::sync::Arc;

use octet_kernels::int8::WideTable;

use super::super::quantization::{Quantization, Wide};
use super::network::{Operand, Operation, Step};

/// A function of one integer, of eight bits or sixteen: what it makes of each that there is.
#[derive(Clone)]
struct Function {
    of: Operand,
    answers: Answers,
}

/// The integers that come out, or the reals of 16 bits.
#[derive(Clone)]
pub(super) enum Answers {
    Bytes(Vec<u8>),
    Reals(Vec<f32>),
}

impl Answers {
    /// The integers of reals, between bounds.
    pub(super) fn bytes(
        reals: impl Iterator<Item = f32>,
        to: Quantization,
        [low, high]: [u8; 2],
    ) -> Answers {
        let integer = |real| to.integer(real).clamp(low, high.max(low));
        Answers::Bytes(reals.map(integer).collect())
    }

    /// The reals of 16 bits nearest to reals.
    pub(super) fn reals(reals: impl Iterator<Item = f32>, to: Wide) -> Answers {
        Answers::Reals(reals.map(|real| to.grid.value(real)).collect())
    }
}

/// The functions that steps before are, by what they make.
type Known = HashMap<String, Arc<Function>>;

/// Arithmetic of a value and tables of itself is a table of it: x · sigmoid(x), whatever is quantized in
/// between.
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

/// The step that a function is; nothing where it has not an answer for each integer.
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

/// The value that a value of bytes is a function of, itself where it is none, and that function.
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

/// The same of a value of 16 bits that a table is looked up by.
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

/// One side of an arithmetic: a number, or the reals that a function of one integer has for each.
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

/// The one value that both sides are functions of, and the reals they have for each of its integers. A side may be
/// one constant number.
fn both(left: &Operand, right: &Operand, known: &Known) -> Option<(Operand, Vec<(f32, f32)>)> {
    // 16 bits that no table made are computed with in less time than looked up.
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

/// What a step makes of its reals.
fn ended(step: &Step, reals: impl Iterator<Item = f32>) -> Option<Answers> {
    match step.wide {
        Some(wide) => Some(Answers::reals(reals, wide)),
        None => Some(Answers::bytes(reals, step.quantization?, step.bounds)),
    }
}
