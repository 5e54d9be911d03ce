//! Compiling products: weights packed, factors brought together.

use std::sync::Arc;

use octet_kernels::int8::{
    ConvShape, ConvWeights, DepthwiseWeights, Error, Layout as MatrixLayout, Plane, Target,
    TransposedWeights, Weights as Packed,
};

use super::compile::{Compiler, MISSING, ratio, target};
use super::instruction::{Convolution, Element, Epilogue, Kernel, Source, Work};
use super::layout::{Layout, coincide};
use super::steps::plane_of;
use crate::engine::integer::pattern::{Operand, Operation, Step};

impl<'a> Compiler<'a> {
    pub(super) fn product(
        &mut self,
        step: &'a Step,
        shape: &'a [usize],
        output: &'a [usize],
    ) -> Result<(), Error> {
        let Operation::Product {
            weights,
            columns_first,
            bias,
            factor,
        } = &step.operation
        else {
            return Err(MISSING);
        };
        let first = step.inputs.first().ok_or(MISSING)?;
        let (layout, depth, columns) = match columns_first {
            true => (
                MatrixLayout::ColumnAfterColumn,
                weights.shape[1],
                weights.shape[0],
            ),
            false => (MatrixLayout::DepthFirst, weights.shape[0], weights.shape[1]),
        };
        let packed = Arc::new(Packed::pack(
            self.form,
            &weights.integers,
            layout,
            [depth, columns],
            &weights.zero_points,
        )?);
        let rows = shape.iter().product::<usize>() / depth.max(1);
        let factors = Factors {
            scales: &weights.scales,
            other: *factor,
            columns,
        };
        let made = self.summed(
            step,
            first,
            Layout::Plain,
            output,
            (bias, factors),
            |part| Work::Product {
                weights: packed.clone(),
                bias: part.bias,
                rows,
                zero_point: part.zero_point,
                epilogue: part.epilogue,
            },
        )?;
        self.put(step, Layout::Plain, made);
        Ok(())
    }

    /// Products with weights: one of bytes, or for 16 bits one of each of their two, brought together.
    fn summed(
        &mut self,
        step: &'a Step,
        first: &'a Operand,
        layout: Layout,
        output: &[usize],
        (bias, factors): (&[i32], Factors),
        work: impl Fn(Part) -> Work,
    ) -> Result<Source, Error> {
        let bias = (!bias.is_empty()).then(|| bias.to_vec());
        if let Operand::Wide(_, wide) = first {
            let sources = self.planes(first, layout)?;
            let scale = wide.grid.scale;
            let mut products = Vec::new();
            for (plane, source) in [Plane::High, Plane::Low].into_iter().zip(sources) {
                let part = Part {
                    // Counted once, where a step is the accumulator's.
                    bias: bias.clone().filter(|_| plane == Plane::Low),
                    zero_point: wide.grid.zero_of(plane),
                    epilogue: factors.epilogue(step, &[scale, plane.weight()], None),
                };
                products.push(self.add(work(part), vec![source], Element::Float, output));
            }
            let [high, low] = [products[0].clone(), products[1].clone()];
            return Ok(self.joined(step, [high, low], output));
        }
        let source = self.operand(first, layout)?;
        let from = first.quantization().ok_or(MISSING)?;
        let to = step.quantization.map(|to| target(to, step.bounds));
        let part = Part {
            bias,
            zero_point: from.zero_point,
            epilogue: factors.epilogue(step, &[from.scale], to),
        };
        let made = self.add(work(part), vec![source], element_of(step), output);
        Ok(match step.wide {
            Some(wide) => self.add(Work::Snap(wide.grid), vec![made], Element::Float, output),
            None => made,
        })
    }

    pub(super) fn convolution(
        &mut self,
        step: &'a Step,
        shape: &'a [usize],
        output: &'a [usize],
    ) -> Result<(), Error> {
        let Operation::Convolution {
            weights,
            bias,
            window,
            groups,
            transposed,
        } = &step.operation
        else {
            return Err(MISSING);
        };
        let first = step.inputs.first().ok_or(MISSING)?;
        let (inputs, outputs, groups) = (shape[1], output[1], *groups);
        let of = ConvShape {
            inputs,
            outputs,
            kernel: window.kernel,
            groups,
        };
        let (values, zeros) = (&weights.integers, &weights.zero_points);
        let kernel = Arc::new(if *transposed {
            Kernel::Transposed(TransposedWeights::pack(
                self.form, values, of, window, zeros,
            )?)
        } else if groups > 1 && groups == inputs && groups == outputs {
            let packed = DepthwiseWeights::pack(self.form, values, outputs, window.kernel, zeros)?;
            Kernel::Depthwise(packed)
        } else {
            Kernel::Dense(ConvWeights::pack(self.form, values, of, zeros)?)
        });
        let factors = Factors {
            scales: &weights.scales,
            other: 1.0,
            columns: outputs,
        };
        let (from, to) = (plane_of(shape), plane_of(output));
        let lying = Layout::ChannelsLast;
        let mut made = self.summed(step, first, lying, output, (bias, factors), |part| {
            Work::Convolution(Box::new(Convolution {
                kernel: kernel.clone(),
                bias: part.bias,
                window: window.clone(),
                images: output[0],
                from,
                to,
                zero_point: part.zero_point,
                epilogue: part.epilogue,
            }))
        })?;
        let mut layout = Layout::ChannelsLast;
        if step.quantization.is_none() && step.wide.is_none() {
            // Floats leave as ONNX has them.
            if !coincide(output) {
                let size = [output[1], output[2..].iter().product()];
                made = self.add(
                    Work::FloatsToFirst(size),
                    vec![made],
                    Element::Float,
                    output,
                );
            }
            layout = Layout::Plain;
        }
        self.put(step, layout, made);
        Ok(())
    }

    pub(super) fn pair(&mut self, step: &'a Step, output: &'a [usize]) -> Result<(), Error> {
        let [left, right] = &step.inputs[..] else {
            return Err(MISSING);
        };
        let (a, b) = (self.shape_of(left)?, self.shape_of(right)?);
        let sources = vec![
            self.operand(left, Layout::Plain)?,
            self.operand(right, Layout::Plain)?,
        ];
        let (of_left, of_right) = (
            left.quantization().ok_or(MISSING)?,
            right.quantization().ok_or(MISSING)?,
        );
        let to = step.quantization.ok_or(MISSING)?;
        let stack = |shape: &[usize]| shape[..shape.len() - 2].iter().product::<usize>();
        let [rows, depth] = [a[a.len() - 2], a[a.len() - 1]];
        let work = Work::Pair {
            stacks: stack(a).max(stack(b)),
            stacked: [stack(a) > 1, stack(b) > 1],
            sizes: [rows, depth, b[b.len() - 1]],
            zero_points: [of_left.zero_point, of_right.zero_point],
            factor: ratio(&[of_left.scale, of_right.scale], to.scale),
            to: target(to, step.bounds),
        };
        let made = self.bytes(work, sources, output);
        self.put(step, Layout::Plain, made);
        Ok(())
    }
}

/// What differs between the products of a step.
struct Part {
    bias: Option<Vec<i32>>,
    zero_point: u8,
    epilogue: Epilogue,
}

/// The factors of a product's sums that don't depend on what goes in.
#[derive(Clone, Copy)]
struct Factors<'w> {
    /// Of the weights: one, or one a column.
    scales: &'w [f32],
    other: f32,
    columns: usize,
}

impl Factors<'_> {
    /// What sums become: a factor a column, the weight's scale times the others, over the output's.
    fn epilogue(&self, step: &Step, others: &[f32], to: Option<Target>) -> Epilogue {
        let below = step.quantization.map_or(1.0, |to| to.scale);
        let factor = |column: usize| {
            let own = self.scales[if self.scales.len() == 1 { 0 } else { column }];
            ratio(&[others, &[self.other, own]].concat(), below)
        };
        Epilogue {
            factors: (0..self.columns).map(factor).collect(),
            to,
        }
    }
}

fn element_of(step: &Step) -> Element {
    match step.quantization {
        Some(_) => Element::Byte,
        None => Element::Float,
    }
}
