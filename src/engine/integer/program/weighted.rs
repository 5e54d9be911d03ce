//! Compiling products: weights packed, factors brought together.

use octet_kernels::int8::{
    ConvShape, ConvWeights, DepthwiseWeights, Error, Layout as MatrixLayout, TransposedWeights,
    Weights as Packed,
};

use super::compile::{Compiler, MISSING, plane_of, ratio, target};
use super::instruction::{Convolution, Element, Epilogue, Kernel, Work};
use super::layout::{Layout, coincide};
use crate::engine::integer::pattern::{Operation, Step};

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
        let source = self.operand(first, Layout::Plain)?;
        let from = first.quantization().ok_or(MISSING)?;
        let (layout, depth, columns) = match columns_first {
            true => (
                MatrixLayout::ColumnAfterColumn,
                weights.shape[1],
                weights.shape[0],
            ),
            false => (MatrixLayout::DepthFirst, weights.shape[0], weights.shape[1]),
        };
        let packed = Packed::pack(
            self.form,
            &weights.integers,
            layout,
            [depth, columns],
            &weights.zero_points,
        )?;
        let work = Work::Product {
            weights: packed,
            bias: (!bias.is_empty()).then(|| bias.clone()),
            rows: shape.iter().product::<usize>() / depth.max(1),
            zero_point: from.zero_point,
            epilogue: epilogue(step, &weights.scales, &[from.scale, *factor], columns),
        };
        let made = self.add(work, vec![source], element_of(step), output);
        self.put(step, Layout::Plain, made);
        Ok(())
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
        let source = self.operand(first, Layout::ChannelsLast)?;
        let from = first.quantization().ok_or(MISSING)?;
        let (inputs, outputs, groups) = (shape[1], output[1], *groups);
        let of = ConvShape {
            inputs,
            outputs,
            kernel: window.kernel,
            groups,
        };
        let (values, zeros) = (&weights.integers, &weights.zero_points);
        let kernel = if *transposed {
            Kernel::Transposed(TransposedWeights::pack(
                self.form, values, of, window, zeros,
            )?)
        } else if groups > 1 && groups == inputs && groups == outputs {
            let packed = DepthwiseWeights::pack(self.form, values, outputs, window.kernel, zeros)?;
            Kernel::Depthwise(packed)
        } else {
            Kernel::Dense(ConvWeights::pack(self.form, values, of, zeros)?)
        };
        let work = Work::Convolution(Box::new(Convolution {
            kernel,
            bias: (!bias.is_empty()).then(|| bias.clone()),
            window: window.clone(),
            images: output[0],
            from: plane_of(shape),
            to: plane_of(output),
            zero_point: from.zero_point,
            epilogue: epilogue(step, &weights.scales, &[from.scale], outputs),
        }));
        let mut made = self.add(work, vec![source], element_of(step), output);
        let mut layout = Layout::ChannelsLast;
        if step.quantization.is_none() {
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

/// What sums become: a factor a column, the weight's scale times the others, over the output's.
fn epilogue(step: &Step, scales: &[f32], others: &[f32], columns: usize) -> Epilogue {
    let below = step.quantization.map_or(1.0, |to| to.scale);
    let factor = |column: usize| {
        let own = scales[if scales.len() == 1 { 0 } else { column }];
        ratio(&[others, &[own]].concat(), below)
    };
    Epilogue {
        factors: (0..columns).map(factor).collect(),
        to: step.quantization.map(|to| target(to, step.bounds)),
    }
}

fn element_of(step: &Step) -> Element {
    match step.quantization {
        Some(_) => Element::Byte,
        None => Element::Float,
    }
}
