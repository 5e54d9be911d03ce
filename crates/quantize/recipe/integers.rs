//! A constant as integers of 4, 8 or 16 bits, with scales and zero points from minimum and maximum:
//! one for all numbers, or one for each channel.
//!
//! A first pass over the source finds the ranges, a second one rounds. Matrices may be transposed on
//! the way: rows are collected until their columns are long enough to be written.

use octet_kernels::{Extrema, IntegerGrid, widen};
use octet_onnx::schema::DataType;
use rayon::prelude::*;

use super::{Emitted, MEMORY, Recipe, RecipeError, RecipeOutput, RecipeSummary, Slices};
use crate::QuantizationParameters;
use crate::channel_layout::{ChannelLayout, ChannelPart};
use crate::integer_format::IntegerFormat;
use crate::scale::{Encoder, encoded};
use crate::weights::parameters_of_ranges;

/// Least number of numbers that one task rounds.
const TASK: usize = 1 << 16;

/// The integers of a constant and their order.
#[derive(Clone, Debug, PartialEq)]
pub struct IntegersPlan {
    pub(crate) form: IntegerFormat,
    /// Shape of the source in which the axis of `form` counts.
    pub(crate) shape: Vec<usize>,
    /// Shape of the integers.
    pub(crate) integers: Vec<usize>,
    /// Shape of the scales.
    pub(crate) scales: Vec<usize>,
    /// One zero point for all channels, which are symmetric, instead of one for each.
    pub(crate) one_zero_point: bool,
    /// Rows and columns of the matrices that are transposed.
    pub(crate) transposed: Option<[usize; 2]>,
}

impl IntegersPlan {
    /// Integers in the order of the source. Scales and zero points are vectors or scalars.
    pub(crate) fn in_order(form: IntegerFormat, shape: &[usize]) -> IntegersPlan {
        IntegersPlan {
            form,
            shape: shape.to_vec(),
            integers: shape.to_vec(),
            scales: Vec::from_iter(form.axis.map(|axis| shape[axis])),
            one_zero_point: false,
            transposed: None,
        }
    }

    /// Number of scales.
    pub(crate) fn channels(&self) -> usize {
        ChannelLayout::new(&self.shape, self.form.axis).count
    }
}

/// Computes integers, scales and zero points.
pub struct IntegersRecipe {
    source: DataType,
    plan: IntegersPlan,
    channels: ChannelLayout,
    outputs: [RecipeOutput; 3],
    slices: Slices,
    /// Index of the next number.
    position: usize,
    ranges: Vec<[f32; 2]>,
    /// Known after the first pass.
    grids: Vec<IntegerGrid>,
    columns: ColumnBuffer,
    summary: RecipeSummary,
}

/// Rows of a matrix that wait for being written as columns.
#[derive(Default)]
struct ColumnBuffer {
    /// Each column has this many places.
    places: usize,
    bytes: Vec<u8>,
    /// Rows in the buffer.
    filled: usize,
    /// Index of the first row, over all matrices.
    first: usize,
}

impl IntegersRecipe {
    /// Computes the integers of a constant of this element type.
    pub fn new(source: DataType, plan: &IntegersPlan) -> IntegersRecipe {
        IntegersRecipe::within(MEMORY / 2, source, plan)
    }

    /// Like [`Self::new`], with a buffer of at most `memory` bytes.
    pub(super) fn within(memory: usize, source: DataType, plan: &IntegersPlan) -> IntegersRecipe {
        let element = plan.form.element.data_type();
        let zero_points: &[usize] = if plan.one_zero_point {
            &[]
        } else {
            &plan.scales
        };
        let channels = ChannelLayout::new(&plan.shape, plan.form.axis);
        let size = (source.bits().unwrap_or(32) / 8) as u64;
        let count: u64 = plan.shape.iter().map(|&size| size as u64).product();
        let row = plan.transposed.map_or(1, |[_, columns]| columns.max(1));
        let places = plan
            .transposed
            .map_or(0, |[rows, _]| (memory / row).clamp(1, rows.max(1)));
        IntegersRecipe {
            source,
            outputs: [
                RecipeOutput::new(element, &plan.integers),
                RecipeOutput::new(DataType::Float, &plan.scales),
                RecipeOutput::new(element, zero_points),
            ],
            // Two numbers of 4 bits share a byte.
            slices: Slices::new(count * size, (row as u64).next_multiple_of(2) * size, 2),
            position: 0,
            ranges: Vec::new(),
            grids: Vec::new(),
            columns: ColumnBuffer {
                places,
                ..ColumnBuffer::default()
            },
            summary: RecipeSummary::default(),
            channels,
            plan: plan.clone(),
        }
    }

    /// Number of numbers that one task takes, an even one.
    fn task(&self, count: usize) -> usize {
        let each = count.div_ceil(rayon::current_num_threads());
        each.max(TASK).next_multiple_of(2)
    }

    /// Widens the ranges.
    fn measure(&mut self, bytes: &[u8]) -> Result<(), RecipeError> {
        let size = self.source.bits().unwrap_or(32) / 8;
        let task = self.task(bytes.len() / size);
        let empty = || vec![[f32::INFINITY, f32::NEG_INFINITY]; self.channels.count];
        let measured = |(at, part): (usize, &[u8])| {
            let values = self.source.floats(part);
            // No early exit, so that the loop is vectorized.
            let finite = values
                .iter()
                .fold(true, |all, value| all & value.is_finite());
            let mut ranges = empty();
            let first = self.position + at * task;
            self.channels
                .each_part_of(first, &values, |part| match part {
                    ChannelPart::Run(channel, run) => {
                        let [min, max] = &mut ranges[channel];
                        let [least, greatest, _] = Extrema::of(run).reach;
                        (*min, *max) = (min.min(least), max.max(greatest));
                    }
                    ChannelPart::Row(first, row) => widen(&mut ranges[first..], row),
                });
            match finite {
                true => Ok(ranges),
                false => Err(RecipeError::NotFinite),
            }
        };
        let parts: Vec<Vec<[f32; 2]>> = bytes
            .par_chunks(task * size)
            .enumerate()
            .map(measured)
            .collect::<Result<_, _>>()?;
        if self.ranges.is_empty() {
            self.ranges = empty();
        }
        for part in parts {
            for ([min, max], [least, greatest]) in self.ranges.iter_mut().zip(part) {
                (*min, *max) = (min.min(least), max.max(greatest));
            }
        }
        Ok(())
    }

    /// Computes scales and zero points at the end of the first pass.
    fn end_ranges(&mut self, emit: &mut dyn FnMut(Emitted)) {
        let ranges = std::mem::take(&mut self.ranges);
        let form = self.plan.form;
        let found: QuantizationParameters =
            parameters_of_ranges(ranges, form.axis, &form.represented(), true);
        self.summary.scale = found.scales.iter().copied().fold(0.0, f32::max);
        self.summary.zero_point = found.zero_points.first().copied().unwrap_or(0) as f32;
        self.grids = found.grids().collect();
        let count = match self.plan.one_zero_point {
            true => 1,
            false => found.zero_points.len(),
        };
        let zero_points = found.zero_points.iter().copied().take(count);
        let mut whole = |output, bytes| {
            emit(Emitted {
                output,
                offset: 0,
                bytes,
            });
        };
        whole(1, DataType::Float.bytes_of(found.scales.into_iter()));
        whole(2, encoded(found.element, zero_points));
    }

    /// The integers of a slice, in its order.
    fn rounded(&self, bytes: &[u8]) -> Vec<u8> {
        let size = self.source.bits().unwrap_or(32) / 8;
        let task = self.task(bytes.len() / size);
        let rounded = |(at, part): (usize, &[u8])| {
            let values = self.source.floats(part);
            let mut integers = Encoder::new(self.outputs[0].element, values.len());
            let first = self.position + at * task;
            self.channels
                .each_part_of(first, &values, |part| match part {
                    ChannelPart::Run(channel, run) => {
                        integers.round(run, &self.grids[channel..][..1]);
                    }
                    ChannelPart::Row(first, row) => integers.round(row, &self.grids[first..]),
                });
            integers.finish()
        };
        let parts: Vec<Vec<u8>> = bytes
            .par_chunks(task * size)
            .enumerate()
            .map(rounded)
            .collect();
        parts.concat()
    }

    /// Adds whole rows to the buffer, and emits it where it is full.
    fn transpose(
        &mut self,
        [rows, columns]: [usize; 2],
        integers: &[u8],
        emit: &mut dyn FnMut(Emitted),
    ) {
        let buffer = &mut self.columns;
        buffer.bytes.resize(buffer.places * columns, 0);
        for row in integers.chunks_exact(columns) {
            for (place, &integer) in row.iter().enumerate() {
                buffer.bytes[place * buffer.places + buffer.filled] = integer;
            }
            buffer.filled += 1;
            let (matrix, from) = (buffer.first / rows, buffer.first % rows);
            if buffer.filled < buffer.places && from + buffer.filled < rows {
                continue;
            }
            for (column, bytes) in buffer.bytes.chunks(buffer.places).enumerate() {
                emit(Emitted {
                    output: 0,
                    offset: ((matrix * columns + column) * rows + from) as u64,
                    bytes: bytes[..buffer.filled].to_vec(),
                });
            }
            buffer.first += buffer.filled;
            buffer.filled = 0;
        }
    }
}

impl Recipe for IntegersRecipe {
    fn outputs(&self) -> &[RecipeOutput] {
        &self.outputs
    }

    fn slices(&self) -> &Slices {
        &self.slices
    }

    fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Emitted)) -> Result<(), RecipeError> {
        let ends = self.slices.advance(bytes)?;
        let size = self.source.bits().unwrap_or(32) / 8;
        if self.grids.is_empty() {
            self.measure(bytes)?;
            if ends {
                self.end_ranges(emit);
            }
        } else {
            let integers = self.rounded(bytes);
            match self.plan.transposed {
                Some(matrix) => self.transpose(matrix, &integers, emit),
                None => {
                    let bits = self.outputs[0].element.bits().unwrap_or(8);
                    emit(Emitted {
                        output: 0,
                        offset: (self.position * bits / 8) as u64,
                        bytes: integers,
                    });
                }
            }
        }
        self.position = match ends {
            true => 0,
            false => self.position + bytes.len() / size,
        };
        Ok(())
    }

    fn memory(&self) -> u64 {
        let columns = self.plan.transposed.map_or(0, |[_, columns]| columns);
        // Each range, and the columns with their copies on the way out.
        (self.channels.count * size_of::<[f32; 2]>() + 2 * columns * self.columns.places) as u64
    }

    fn summary(&self) -> RecipeSummary {
        self.summary.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::run_in_memory;
    use super::*;
    use crate::ElementType;
    use crate::weights::{parameters, quantized};
    use octet_onnx::schema::TensorProto;

    fn form(element: ElementType, axis: Option<usize>) -> IntegerFormat {
        IntegerFormat {
            element,
            axis,
            symmetric: element.is_signed(),
            reduce_range: false,
        }
    }

    fn numbers(count: usize) -> Vec<f32> {
        (0..count)
            .map(|at| (at as f32 * 0.7).sin() * (1 + at % 13) as f32)
            .collect()
    }

    #[test]
    fn integers_are_those_of_the_whole_constant_along_each_axis() {
        for shape in [vec![7, 130, 11], vec![30, 3000, 32]] {
            let values = numbers(shape.iter().product());
            let tensor = TensorProto::from_f32("w", &shape, &values);
            for axis in [None, Some(0), Some(1), Some(2)] {
                for element in [ElementType::I8, ElementType::U8, ElementType::I16] {
                    let form = form(element, axis);
                    let plan = IntegersPlan::in_order(form, &shape);
                    let mut recipe = IntegersRecipe::new(DataType::Float, &plan);
                    let bytes = tensor.float_bytes().unwrap();
                    let outputs = run_in_memory(&mut recipe, &bytes).unwrap();
                    let represented = form.represented();
                    let wanted = parameters(&tensor, axis, &represented, true).unwrap();
                    let scales = DataType::Float.bytes_of(wanted.scales.iter().copied());
                    assert!(outputs[1] == scales, "{shape:?} {axis:?} {element:?}");
                    let zero_points = encoded(wanted.element, wanted.zero_points.iter().copied());
                    assert_eq!(outputs[2], zero_points);
                    let integers = quantized(&tensor, "q", &wanted).unwrap().raw_data;
                    assert!(Some(outputs[0].as_slice()) == integers.as_deref());
                }
            }
        }
    }

    #[test]
    fn transposed_integers_do_not_depend_on_the_buffer() {
        let (matrices, rows, columns) = (2, 37, 21);
        let values = numbers(matrices * rows * columns);
        let bytes = DataType::Float.bytes_of(values.iter().copied());
        let shape = [matrices * rows, columns];
        let plain = IntegersPlan::in_order(form(ElementType::I8, Some(0)), &shape);
        let plan = IntegersPlan {
            integers: vec![matrices, columns, rows],
            transposed: Some([rows, columns]),
            ..plain.clone()
        };
        let run = |memory, plan| {
            let mut recipe = IntegersRecipe::within(memory, DataType::Float, plan);
            run_in_memory(&mut recipe, &bytes).unwrap()
        };
        let in_order = run(MEMORY, &plain);
        for memory in [1, 100, 300, MEMORY] {
            let outputs = run(memory, &plan);
            for (at, &integer) in in_order[0].iter().enumerate() {
                let (matrix, row, column) =
                    (at / columns / rows, at / columns % rows, at % columns);
                let there = (matrix * columns + column) * rows + row;
                assert_eq!(outputs[0][there], integer, "{memory}");
            }
            assert_eq!(outputs[1..], in_order[1..]);
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_an_error() {
        let plan = IntegersPlan::in_order(form(ElementType::I8, None), &[3]);
        let bytes = DataType::Float.bytes_of([1.0, f32::NAN, 2.0].into_iter());
        let mut recipe = IntegersRecipe::new(DataType::Float, &plan);
        assert_eq!(
            run_in_memory(&mut recipe, &bytes),
            Err(RecipeError::NotFinite)
        );
    }
}
