//! Compiling arithmetic of two values, and joins of several.

use octet_kernels::int8::{Error, Table};

use super::compile::{Compiler, MISSING, laid, ratio, target};
use super::instruction::{Side, Work};
use super::layout::Layout;
use crate::engine::integer::pattern::{Binary, Constant, Operand, Step};

impl<'a> Compiler<'a> {
    /// The layout in which arithmetic of two values is done.
    pub(super) fn layout_of_two(
        &self,
        step: &'a Step,
        output: &[usize],
        wish: Layout,
    ) -> Result<Layout, Error> {
        let rank = output.len();
        // The layout of the side that isn't spread; the other follows.
        let full = step
            .inputs
            .iter()
            .find(|o| self.shape_of(o).is_ok_and(|s| s == output));
        let mut layout = full.map_or(Layout::Plain, |operand| self.lies(operand, wish));
        for operand in &step.inputs {
            let shape = self.shape_of(operand)?;
            let ends = shape.iter().filter(|&&size| size != 1).count() <= 1;
            // A value of fewer axes lies in another order, unless it is one row of numbers.
            if operand.value().is_some() && shape.len() != rank && !ends {
                layout = Layout::Plain;
            }
        }
        Ok(layout)
    }

    pub(super) fn binary(
        &mut self,
        step: &'a Step,
        binary: Binary,
        output: &'a [usize],
        wish: Layout,
    ) -> Result<(), Error> {
        let [left, right] = &step.inputs[..] else {
            return Err(MISSING);
        };
        let rank = output.len();
        let layout = self.layout_of_two(step, output, wish)?;
        let mut sources = Vec::new();
        let mut sides = Vec::new();
        for operand in [left, right] {
            let shape = self.shape_of(operand)?;
            let mut padded = vec![1; rank - shape.len()];
            padded.extend(shape);
            let source = match operand {
                Operand::Constant(constant) => laid(
                    &Constant {
                        shape: padded.clone(),
                        ..constant.clone()
                    },
                    layout,
                )?,
                _ if shape.len() == rank => self.operand(operand, layout)?,
                _ => self.operand(operand, Layout::Plain)?,
            };
            let (sizes, whole) = (layout.sizes(&padded), layout.sizes(output));
            let zero_point = operand.quantization().ok_or(MISSING)?.zero_point;
            let (source, each) = match spread(&sizes, &whole) {
                Some(each) => (source, each),
                None => {
                    let repeat = |(&from, &to): (&usize, &usize)| match from == to {
                        true => (0..to).map(Some).collect(),
                        false => vec![Some(0); to],
                    };
                    let positions = sizes.iter().zip(&whole).map(repeat).collect();
                    let work = Work::Select {
                        sizes,
                        positions,
                        fill: 0,
                    };
                    (self.bytes(work, vec![source], output), 1)
                }
            };
            sources.push(source);
            sides.push(Side { each, zero_point });
        }
        let scales = [left, right].map(|o| o.quantization().map_or(1.0, |q| q.scale));
        let to = step.quantization.ok_or(MISSING)?;
        let sides = [sides[0], sides[1]];
        let bounds = target(to, step.bounds);
        let factors = scales.map(|scale| ratio(&[scale], to.scale));
        let work = match binary {
            Binary::Add => Work::Add {
                sides,
                factors,
                to: bounds,
            },
            Binary::Subtract => {
                let factors = [factors[0], -factors[1]];
                Work::Add {
                    sides,
                    factors,
                    to: bounds,
                }
            }
            Binary::Multiply => Work::Multiply {
                sides,
                factor: ratio(&scales, to.scale),
                to: bounds,
            },
        };
        let made = self.bytes(work, sources, output);
        self.put(step, layout, made);
        Ok(())
    }

    pub(super) fn concat(
        &mut self,
        step: &'a Step,
        axis: usize,
        output: &'a [usize],
        wish: Layout,
    ) -> Result<(), Error> {
        // As most of it lies.
        let lying = step.inputs.iter().filter(|o| o.value().is_some());
        let last = lying
            .filter(|o| self.lies(o, wish) == Layout::ChannelsLast)
            .count();
        let layout = if 2 * last >= step.inputs.len() {
            Layout::ChannelsLast
        } else {
            Layout::Plain
        };
        let to = step.quantization.ok_or(MISSING)?;
        let place = layout.place(axis, output.len());
        let inner: usize = layout.sizes(output)[place + 1..].iter().product();
        let rows: usize = layout.sizes(output)[..place].iter().product();
        let (mut sources, mut parts) = (Vec::new(), Vec::new());
        for operand in &step.inputs {
            let shape = self.shape_of(operand)?;
            let from = operand.quantization().ok_or(MISSING)?;
            sources.push(self.operand(operand, layout)?);
            parts.push((
                shape[axis] * inner,
                from.table_to(&to).map(|table| Table(*table)),
            ));
        }
        let made = self.bytes(Work::Concat { rows, parts }, sources, output);
        self.bounded(step, layout, made, output);
        Ok(())
    }
}

/// How often each value of a side is repeated in a row, where the side as a whole repeats over the output;
/// `None` where it does so in parts only. Axes of size 1 in the output count for nothing.
pub(super) fn spread(sizes: &[usize], output: &[usize]) -> Option<usize> {
    let axes: Vec<(bool, usize)> = sizes
        .iter()
        .zip(output)
        .filter(|(_, to)| **to != 1)
        .map(|(from, to)| (from == to, *to))
        .collect();
    let first = axes.iter().position(|(full, _)| *full);
    let last = axes.iter().rposition(|(full, _)| *full);
    let (Some(first), Some(last)) = (first, last) else {
        return Some(1);
    };
    let solid = axes[first..=last].iter().all(|(full, _)| *full);
    solid.then(|| axes[last + 1..].iter().map(|(_, size)| size).product())
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn a_side_repeats_as_a_whole_or_is_written_out() {
        for (sizes, output, each) in [
            (&[2, 3, 4][..], &[2, 3, 4][..], Some(1)),
            (&[1, 1, 4], &[2, 3, 4], Some(1)),
            (&[2, 1, 1], &[2, 3, 4], Some(12)),
            (&[1, 3, 1], &[2, 3, 4], Some(4)),
            (&[2, 1, 4], &[2, 3, 4], None),
            (&[1, 1, 4], &[1, 3, 4], Some(1)),
            (&[1, 1, 1], &[2, 3, 4], Some(1)),
        ] {
            assert_eq!(spread(sizes, output), each, "{sizes:?} {output:?}");
        }
    }
}
