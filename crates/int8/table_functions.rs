//! Functions of one integer, with their value for every integer of the operand. A composition of
//! such functions is one as well, so one lookup table computes it.

use std::collections::HashMap;
use std::sync::Arc;

use octet_kernels::int8::WideTable;

use crate::quantization::{Int8Quantization, Int16Quantization};
use crate::values::{IrOperand, StepValues};

/// A function of one integer, with its value for every integer of the operand.
#[derive(Clone)]
pub(crate) struct TableFunction {
    pub(crate) source: IrOperand,
    pub(crate) values: TableValues,
}

/// Values of a function: bytes, or reals of a 16-bit quantization.
#[derive(Clone)]
pub(crate) enum TableValues {
    Bytes(Vec<u8>),
    Reals(Vec<f32>),
}

impl TableValues {
    /// Quantizes reals to bytes between two bounds.
    pub(crate) fn bytes(
        reals: impl Iterator<Item = f32>,
        to: Int8Quantization,
        [low, high]: [u8; 2],
    ) -> TableValues {
        let integer = |real| to.integer(real).clamp(low, high.max(low));
        TableValues::Bytes(reals.map(integer).collect())
    }

    /// Rounds reals to a 16-bit quantization.
    pub(crate) fn reals(reals: impl Iterator<Item = f32>, to: Int16Quantization) -> TableValues {
        TableValues::Reals(reals.map(|real| to.grid.value(real)).collect())
    }
}

/// The functions that earlier steps compute, by output name.
pub(crate) type TableFunctions = HashMap<String, Arc<TableFunction>>;

pub(crate) fn compose<T: Copy>(table: &[T], before: &[u8]) -> Vec<T> {
    before.iter().map(|&at| table[usize::from(at)]).collect()
}

/// Expresses a byte value as a function of another value, or as the identity.
pub(crate) fn compose_bytes(
    operand: &IrOperand,
    known: &TableFunctions,
) -> Option<(IrOperand, Vec<u8>)> {
    operand.quantization()?;
    match known.get(operand.value()?).map(Arc::as_ref) {
        Some(TableFunction {
            source,
            values: TableValues::Bytes(bytes),
        }) => Some((source.clone(), bytes.clone())),
        Some(_) => None,
        None => Some((operand.clone(), (0..=u8::MAX).collect())),
    }
}

/// Composes a table of a 16-bit value with the function that computes this value.
pub(crate) fn compose_reals<T: Copy>(
    operand: &IrOperand,
    table: &WideTable<T>,
    known: &TableFunctions,
) -> Option<(IrOperand, Vec<T>)> {
    match known.get(operand.value()?).map(Arc::as_ref) {
        Some(TableFunction {
            source,
            values: TableValues::Reals(reals),
        }) => Some((
            source.clone(),
            reals.iter().map(|&real| table.answer(real)).collect(),
        )),
        Some(_) => None,
        None => Some((operand.clone(), table.answers().to_vec())),
    }
}

/// One side of an arithmetic: a number, or a function's real for each integer of its operand.
enum TableSide {
    Number(f32),
    Of(IrOperand, Vec<f32>),
}

fn side(operand: &IrOperand, known: &TableFunctions) -> Option<TableSide> {
    Some(match operand {
        IrOperand::Reals(_, values) => match values[..] {
            [number] => TableSide::Number(number),
            _ => return None,
        },
        IrOperand::Constant(constant) => match constant.integers[..] {
            [integer] => TableSide::Number(constant.quantization.real(integer)),
            _ => return None,
        },
        IrOperand::Int16(name, int16) => match known.get(name).map(Arc::as_ref) {
            Some(TableFunction {
                source,
                values: TableValues::Reals(reals),
            }) => TableSide::Of(source.clone(), reals.clone()),
            Some(_) => return None,
            None => {
                let reals = (0..=u16::MAX).map(|integer| int16.grid.real(integer));
                TableSide::Of(operand.clone(), reals.collect())
            }
        },
        _ => {
            let (source, bytes) = compose_bytes(operand, known)?;
            let from = operand.quantization()?;
            TableSide::Of(
                source,
                bytes.iter().map(|&integer| from.real(integer)).collect(),
            )
        }
    })
}

/// The common operand of both sides, and their reals for each of its integers. One side may be a
/// scalar constant.
pub(crate) fn common_operand(
    left: &IrOperand,
    right: &IrOperand,
    known: &TableFunctions,
) -> Option<(IrOperand, Vec<(f32, f32)>)> {
    // Without an earlier table, arithmetic on 16 bits is faster than a lookup.
    let int16 = |operand: &IrOperand| matches!(operand, IrOperand::Int16(..));
    let result = |operand: &IrOperand| operand.value().is_some_and(|name| known.contains_key(name));
    if [left, right].into_iter().any(int16) && ![left, right].into_iter().any(result) {
        return None;
    }
    let pairs = |left: Vec<f32>, right: Vec<f32>| left.into_iter().zip(right).collect();
    match (side(left, known)?, side(right, known)?) {
        (TableSide::Of(a, left), TableSide::Of(b, right)) => {
            let same = a.value() == b.value() && a.quantization() == b.quantization();
            same.then(|| (a, pairs(left, right)))
        }
        (TableSide::Of(source, left), TableSide::Number(number)) => {
            let right = vec![number; left.len()];
            Some((source, pairs(left, right)))
        }
        (TableSide::Number(number), TableSide::Of(source, right)) => {
            let left = vec![number; right.len()];
            Some((source, pairs(left, right)))
        }
        (TableSide::Number(_), TableSide::Number(_)) => None,
    }
}

/// Converts reals to the output type of a step.
pub(crate) fn to_output(
    step: &StepValues,
    reals: impl Iterator<Item = f32>,
) -> Option<TableValues> {
    match step.int16 {
        Some(int16) => Some(TableValues::reals(reals, int16)),
        None => Some(TableValues::bytes(reals, step.quantization?, step.bounds)),
    }
}
