//! Tables of tables: what is a function of one integer, step after step, is one table.

use std::collections::HashMap;

use super::network::{Binary, Operand, Operation, Step};

/// Arithmetic of a value and tables of itself is a table of it: x · sigmoid(x), whatever is quantized in
/// between.
pub(super) fn merge(steps: &mut [Step]) {
    let mut tables: HashMap<String, (Operand, Box<[u8; 256]>)> = HashMap::new();
    for step in steps {
        let Some(to) = step.quantization else {
            continue;
        };
        let root = |operand: &Operand| -> Option<(Operand, Option<Box<[u8; 256]>>)> {
            let name = operand.value()?;
            match tables.get(name) {
                Some((root, table)) => Some((root.clone(), Some(table.clone()))),
                None => Some((operand.clone(), None)),
            }
        };
        let made: Option<(Operand, Box<[u8; 256]>)> = match (&step.operation, &step.inputs[..]) {
            (Operation::Table(table), [input]) => root(input).map(|(root, before)| {
                let mut joined = table.clone();
                if let Some(before) = before {
                    for (entry, at) in joined.iter_mut().zip(before.iter()) {
                        *entry = table[usize::from(*at)];
                    }
                }
                (root, joined)
            }),
            (Operation::Binary(binary), [left, right]) => {
                let (first, second) = (root(left), root(right));
                first
                    .zip(second)
                    .and_then(|((a, before_a), (b, before_b))| {
                        let same = a.value() == b.value() && a.quantization() == b.quantization();
                        let (of_a, of_b) = (left.quantization()?, right.quantization()?);
                        let table = same.then(|| {
                            let mut joined = Box::new([0; 256]);
                            for (at, entry) in (0..=255u8).zip(joined.iter_mut()) {
                                let through = |before: &Option<Box<[u8; 256]>>| {
                                    before.as_ref().map_or(at, |table| table[usize::from(at)])
                                };
                                let x = of_a.real(through(&before_a));
                                let y = of_b.real(through(&before_b));
                                let real = match binary {
                                    Binary::Add => x + y,
                                    Binary::Subtract => x - y,
                                    Binary::Multiply => x * y,
                                };
                                let [low, high] = step.bounds;
                                *entry = to.integer(real).clamp(low, high.max(low));
                            }
                            joined
                        })?;
                        Some((a, table))
                    })
            }
            _ => None,
        };
        if let Some((root, table)) = made {
            step.inputs = vec![root.clone()];
            step.operation = Operation::Table(table.clone());
            step.bounds = [0, 255];
            tables.insert(step.output.clone(), (root, table));
        }
    }
}
