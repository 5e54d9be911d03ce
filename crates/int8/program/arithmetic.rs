//! Lowers arithmetic of two values, Where, and Concat.

use octet_kernels::int8::{Error, Table};

use super::compiler::{Compiler, MISSING, constant_in_layout, ratio, target};
use super::instruction::{BroadcastSide, BufferElement, InputSource, Work};
use super::int16::reals_in_layout;
use super::layout::MemoryLayout;
use crate::pattern::{Binary, Constant, Operand, Step};

impl<'a> Compiler<'a> {
    /// Chooses the layout of arithmetic of two values.
    pub(super) fn layout_of_two(
        &self,
        step: &'a Step,
        output: &[usize],
        preference: MemoryLayout,
    ) -> Result<MemoryLayout, Error> {
        let rank = output.len();
        // A side that is not broadcast decides the layout. The other side and a condition follow.
        let mut values = step
            .inputs
            .iter()
            .filter(|o| !matches!(o, Operand::Bytes(_)));
        let full = values.find(|o| self.shape_of(o).is_ok_and(|s| s == output));
        let mut layout = full.map_or(MemoryLayout::Plain, |operand| {
            self.current_layout(operand, preference)
        });
        for operand in &step.inputs {
            let shape = self.shape_of(operand)?;
            let ends = shape.iter().filter(|&&size| size != 1).count() <= 1;
            // A value of lower rank has another axis order in channels-last layout, unless it is a
            // single row.
            if operand.value().is_some() && shape.len() != rank && !ends {
                layout = MemoryLayout::Plain;
            }
        }
        Ok(layout)
    }

    /// A side of an elementwise operation in the given layout, with the number of repetitions of
    /// each value. An optional instruction processes it first.
    pub(super) fn side(
        &mut self,
        operand: &'a Operand,
        layout: MemoryLayout,
        output: &[usize],
        through: Option<(Work, BufferElement)>,
    ) -> Result<(InputSource, usize), Error> {
        let shape = self.shape_of(operand)?;
        let missing = output.len().checked_sub(shape.len()).ok_or(MISSING)?;
        let mut padded = vec![1; missing];
        padded.extend(shape);
        let mut source = match operand {
            Operand::Constant(constant) => constant_in_layout(
                &Constant {
                    shape: padded.clone(),
                    ..constant.clone()
                },
                layout,
            )?,
            Operand::Reals(_, values) => reals_in_layout(values, &padded, layout)?,
            _ if missing == 0 => self.operand(operand, layout)?,
            _ => self.operand(operand, MemoryLayout::Plain)?,
        };
        let mut element = match operand {
            Operand::Int8(..) | Operand::Constant(_) | Operand::Bytes(_) => BufferElement::Byte,
            Operand::Floats(_) | Operand::Int16(..) | Operand::Reals(..) => BufferElement::Float,
        };
        if let Some((work, result)) = through {
            source = self.add(work, vec![source], result, shape);
            element = result;
        }
        let (sizes, whole) = (layout.sizes(&padded), layout.sizes(output));
        if let Some(each) = repeats(&sizes, &whole) {
            return Ok((source, each));
        }
        let repeat = |(&from, &to): (&usize, &usize)| match from == to {
            true => (0..to).map(Some).collect(),
            false => vec![Some(0); to],
        };
        let work = Work::Select {
            positions: sizes.iter().zip(&whole).map(repeat).collect(),
            sizes,
            fill: 0,
        };
        Ok((self.add(work, vec![source], element, output), 1))
    }

    pub(super) fn binary(
        &mut self,
        step: &'a Step,
        binary: Binary,
        output: &'a [usize],
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        let least = match binary {
            Binary::Greatest => false,
            Binary::Least => true,
            _ => return self.sum_or_product(step, binary, output, preference),
        };
        let layout = self.layout_of_two(step, output, preference)?;
        let sides = step.inputs.iter();
        let sides = sides
            .map(|operand| self.requantized_side(step, operand, layout, output))
            .collect::<Result<Vec<_>, _>>()?;
        let result = sides.into_iter().reduce(|one, other| {
            let result = self.min_max([one, other], least, output);
            (result, 1)
        });
        let (result, _) = result.ok_or(MISSING)?;
        self.finish_clamped(step, layout, result, output);
        Ok(())
    }

    /// A side as bytes, requantized to the output's scale.
    fn requantized_side(
        &mut self,
        step: &'a Step,
        operand: &'a Operand,
        layout: MemoryLayout,
        output: &[usize],
    ) -> Result<(InputSource, usize), Error> {
        let to = step.quantization.ok_or(MISSING)?;
        let table = operand.quantization().ok_or(MISSING)?.table_to(&to);
        let through = table.map(|table| (Work::Table(Table(*table)), BufferElement::Byte));
        self.side(operand, layout, output, through)
    }

    fn min_max(
        &mut self,
        [one, other]: [(InputSource, usize); 2],
        least: bool,
        output: &[usize],
    ) -> InputSource {
        let side = |each| BroadcastSide {
            each,
            zero_point: 0,
        };
        let sides = [side(one.1), side(other.1)];
        self.bytes(Work::MinMax { sides, least }, vec![one.0, other.0], output)
    }

    /// Selects the second value if the condition is not zero, else the third.
    ///
    /// A condition becomes a mask byte of 0 or 255. The minimum of a value and 255 is the value,
    /// and so is the maximum of the value and 0.
    pub(super) fn lower_where(
        &mut self,
        step: &'a Step,
        output: &'a [usize],
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        let mask = |at: usize| {
            let mut mask = [if at == 0 { u8::MAX } else { 0 }; 256];
            mask[0] = !mask[1];
            (Work::Table(Table(mask)), BufferElement::Byte)
        };
        let (layout, parts) = self.masked(
            step,
            output,
            preference,
            mask,
            |compiler, mask, operand, layout| {
                let value = compiler.requantized_side(step, operand, layout, output)?;
                Ok(compiler.min_max([mask, value], true, output))
            },
        )?;
        let parts = <[_; 2]>::try_from(parts).map_err(|_| MISSING)?;
        let result = self.min_max(parts, false, output);
        self.finish_clamped(step, layout, result, output);
        Ok(())
    }

    /// Values and masks of a Where. The condition becomes a mask by the table that `mask` returns
    /// for each value's index.
    pub(super) fn masked(
        &mut self,
        step: &'a Step,
        output: &'a [usize],
        preference: MemoryLayout,
        mask: impl Fn(usize) -> (Work, BufferElement),
        both: impl Fn(
            &mut Self,
            (InputSource, usize),
            &'a Operand,
            MemoryLayout,
        ) -> Result<InputSource, Error>,
    ) -> Result<(MemoryLayout, Vec<(InputSource, usize)>), Error> {
        let [condition, chosen @ ..] = &step.inputs[..] else {
            return Err(MISSING);
        };
        let layout = self.layout_of_two(step, output, preference)?;
        let mut parts = Vec::new();
        for (at, operand) in chosen.iter().enumerate() {
            let mask = self.side(condition, layout, output, Some(mask(at)))?;
            parts.push((both(self, mask, operand, layout)?, 1));
        }
        Ok((layout, parts))
    }

    fn sum_or_product(
        &mut self,
        step: &'a Step,
        binary: Binary,
        output: &'a [usize],
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        let [left, right] = &step.inputs[..] else {
            return Err(MISSING);
        };
        let layout = self.layout_of_two(step, output, preference)?;
        let mut sources = Vec::new();
        let mut sides = Vec::new();
        for operand in [left, right] {
            let (source, each) = self.side(operand, layout, output, None)?;
            let zero_point = operand.quantization().ok_or(MISSING)?.zero_point;
            sources.push(source);
            sides.push(BroadcastSide { each, zero_point });
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
            Binary::Subtract => Work::Add {
                sides,
                factors: [factors[0], -factors[1]],
                to: bounds,
            },
            _ => Work::Multiply {
                sides,
                factor: ratio(&scales, to.scale),
                to: bounds,
            },
        };
        let result = self.bytes(work, sources, output);
        self.put(step, layout, result);
        Ok(())
    }

    pub(super) fn concat(
        &mut self,
        step: &'a Step,
        (axis, on_reals): (usize, bool),
        output: &'a [usize],
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        // The majority of the inputs decides the layout.
        let lying = step.inputs.iter().filter(|o| o.value().is_some());
        let last = lying
            .filter(|o| self.current_layout(o, preference) == MemoryLayout::ChannelsLast)
            .count();
        let layout = if 2 * last >= step.inputs.len() {
            MemoryLayout::ChannelsLast
        } else {
            MemoryLayout::Plain
        };
        let place = layout.place(axis, output.len());
        let inner: usize = layout.sizes(output)[place + 1..].iter().product();
        let rows: usize = layout.sizes(output)[..place].iter().product();
        let (mut sources, mut parts) = (Vec::new(), Vec::new());
        for operand in &step.inputs {
            let width = self.shape_of(operand)?[axis] * inner;
            let (source, table) = match on_reals {
                true => (self.reals(operand, layout)?, None),
                false => {
                    let from = operand.quantization().ok_or(MISSING)?;
                    let to = step.quantization.ok_or(MISSING)?;
                    let table = from.table_to(&to).map(|table| Table(*table));
                    (self.operand(operand, layout)?, table)
                }
            };
            sources.push(source);
            parts.push((width, table));
        }
        let work = Work::Concat { rows, parts };
        if on_reals {
            let result = self.add(work, sources, BufferElement::Float, output);
            self.finish_reals(step, layout, result, output);
        } else {
            let result = self.bytes(work, sources, output);
            self.finish_clamped(step, layout, result, output);
        }
        Ok(())
    }
}

/// Number of consecutive repetitions of each value of a side, if the whole side repeats over the
/// output. `None` if only parts repeat. Output axes of size 1 are ignored.
pub(super) fn repeats(sizes: &[usize], output: &[usize]) -> Option<usize> {
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
    use super::repeats;

    #[test]
    fn a_side_repeats_as_a_whole_or_is_materialized() {
        for (sizes, output, each) in [
            (&[2, 3, 4][..], &[2, 3, 4][..], Some(1)),
            (&[1, 1, 4], &[2, 3, 4], Some(1)),
            (&[2, 1, 1], &[2, 3, 4], Some(12)),
            (&[1, 3, 1], &[2, 3, 4], Some(4)),
            (&[2, 1, 4], &[2, 3, 4], None),
            (&[1, 1, 4], &[1, 3, 4], Some(1)),
            (&[1, 1, 1], &[2, 3, 4], Some(1)),
        ] {
            assert_eq!(repeats(sizes, output), each, "{sizes:?} {output:?}");
        }
    }
}
