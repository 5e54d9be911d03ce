//! Softmax over one axis, or over several trailing axes as one, as defined before opset 13.
//!
//! Newer opsets express the latter as Flatten, Softmax and Reshape, without quantization in
//! between.

use std::ops::Range;
use std::sync::Arc;

use octet_kernels::int8::{self as kernels, Scale};

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::{MemoryLayout, is_still};
use crate::lowering::compiler::{Compiler, scale};
use crate::lowering::lowered_step::LoweredStep;
use crate::lowering::moves::Permute;
use crate::operation::Operation;
use crate::pattern::attributes::axis;
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OneOperand, OperatorMatcher};
use crate::program::instruction::{BufferElement, InstructionKernel};
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of};
use crate::program::split_rows::split_rows;
use crate::values::IrOperand;
use octet_graph::Node;

pub(super) const SOFTMAX: OperatorMatcher = OperatorMatcher {
    names: &["Softmax"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(softmax),
};

/// Over one axis, or over several trailing axes as one.
struct Softmax {
    axes: Range<usize>,
}

fn softmax(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    match flattened(matcher, index) {
        Some(()) => Ok(()),
        None => matcher.one_operand(index, of_one),
    }
}

fn of_one(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let rank = one.shape.len();
    let newer = one.reader.opset >= 13;
    let axis = one.node.int("axis").unwrap_or(if newer { -1 } else { 1 });
    let axis = self::axis(axis, rank)?;
    // Before opset 13, Softmax ran over all axes from this one on.
    let end = if newer { axis + 1 } else { rank };
    one.require_output(one.shape == one.output)?;
    Ok(Arc::new(Softmax { axes: axis..end }))
}

/// Matches a Softmax of rows between a Flatten and the inverse Reshape as one step; `None` without
/// a match.
fn flattened(matcher: &mut Matcher, index: usize) -> Option<()> {
    let reader = &matcher.reader;
    let node = matcher.node(index);
    let rows = node.input_at(0)?;
    let flatten = reader.graph.producer(rows)?;
    let unflatten = reader.only_reader(node.output.first()?)?;
    let (before, behind) = (
        unmatched(matcher, flatten, "Flatten")?,
        unmatched(matcher, unflatten, "Reshape")?,
    );
    // The Softmax must run over the last of two axes.
    let alone = reader.only_reader(rows) == Some(index);
    if !alone || !matches!(node.int("axis"), None | Some(-1 | 1)) {
        return None;
    }
    let (input, output) = (before.input_at(0)?, behind.output.first()?);
    let operand = reader.operand_or_int16(input).ok()?;
    let shape = reader.shape(operand.value()?).ok()?;
    if reader.shape(output).ok()? != shape {
        return None;
    }
    let first = axis(before.int("axis").unwrap_or(1), shape.len()).ok()?;
    let end = matcher.quantized_destination(output).ok()?;
    let mut around = vec![flatten, unflatten];
    // A Shape node that only feeds the Reshape.
    let asked = behind.input_at(1)?;
    if let Some(shape) = reader.graph.producer(asked)
        && unmatched(matcher, shape, "Shape").is_some()
        && reader.graph.consumers(asked).len() == 1
        && !reader.is_observed(asked)
    {
        around.push(shape);
    }
    let axes = first..shape.len();
    let operation = Arc::new(Softmax { axes });
    matcher
        .push(index, operation, vec![operand], output, end)
        .ok()?;
    matcher.extend_step(&around);
    Some(())
}

/// An unmatched node of this ONNX operator.
fn unmatched<'a>(matcher: &Matcher<'a>, index: usize, operator: &str) -> Option<&'a Node> {
    let node = matcher.unmatched(index);
    node.filter(|node| node.is(operator))
}

impl Operation for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn preference(&self, _own: MemoryLayout) -> MemoryLayout {
        match self.axes == (1..2) {
            true => MemoryLayout::ChannelsLast,
            false => MemoryLayout::Plain,
        }
    }

    fn is_on_reals(&self, _inputs: &[IrOperand]) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (shape, first, axes) = (step.shape, step.first, &self.axes);
        let rank = shape.len();
        let on_reals = step.is_on_reals();
        let layout = match *axes == (1..2) && rank >= 3 {
            true => MemoryLayout::ChannelsLast,
            false => MemoryLayout::Plain,
        };
        let (mut source, element) = match on_reals {
            true => (compiler.reals(first, layout)?, BufferElement::Float),
            false => (compiler.operand(first, layout)?, BufferElement::Byte),
        };
        let sizes = layout.sizes(shape);
        let places: Vec<usize> = axes.clone().map(|axis| layout.place(axis, rank)).collect();
        // The Softmax axes move to the end, and back afterwards.
        let mut order: Vec<usize> = (0..rank).filter(|a| !places.contains(a)).collect();
        order.extend(places);
        let moves = !is_still(&sizes, &order);
        if moves {
            let kernel = Box::new(Permute {
                sizes: sizes.clone(),
                order: order.clone(),
            });
            source = compiler.add(kernel, vec![source], element, shape);
        }
        let length = shape[axes.clone()].iter().product();
        let kernel: Box<dyn InstructionKernel> = match on_reals {
            true => Box::new(SoftmaxOfReals(length)),
            false => Box::new(SoftmaxOfBytes {
                length,
                from: step.from()?.scale,
                to: scale(step.to()?),
            }),
        };
        let mut result = compiler.add(kernel, vec![source], element, shape);
        if moves {
            let mut back: Vec<usize> = (0..rank).collect();
            back.sort_by_key(|&a| order[a]);
            let sizes = order.iter().map(|&a| sizes[a]).collect();
            let kernel = Box::new(Permute { sizes, order: back });
            result = compiler.add(kernel, vec![result], element, shape);
        }
        match on_reals {
            true => compiler.finish_reals(step, layout, result),
            false => compiler.finish_clamped(step, layout, result),
        }
        Ok(())
    }
}

/// Softmax of rows of bytes.
struct SoftmaxOfBytes {
    length: usize,
    from: f32,
    to: Scale,
}

impl InstructionKernel for SoftmaxOfBytes {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (input, output) = (bytes_of(inputs, 0)?, output.bytes()?);
        let (row, cost) = (self.length, output.len() * 4);
        split_rows(output, row, cost, |rows, output| {
            let input = &input[rows.start * row..rows.end * row];
            kernels::softmax(input, row, self.from, self.to, output)
        })?;
        Ok(())
    }
}

/// Softmax of rows of this length.
struct SoftmaxOfReals(usize);

impl InstructionKernel for SoftmaxOfReals {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (reals, output) = (floats_of(inputs, 0)?, output.floats()?);
        let (row, cost) = (self.0, output.len() * 8);
        split_rows(output, row, cost, |part, output| {
            kernels::softmax_reals(&reals[part.start * row..part.end * row], row, output)
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::Attribute;
    use octet_graph::Node;
    use octet_onnx::schema::DataType;

    use crate::test_graph::{TestGraph, assert_near};

    /// Softmax of rows of this length.
    fn expected(x: &[f32], length: usize) -> Vec<f32> {
        let rows = x.chunks(length).map(|row| {
            let sum: f32 = row.iter().map(|real| real.exp()).sum();
            row.iter().map(move |real| real.exp() / sum)
        });
        rows.flatten().collect()
    }

    #[test]
    fn the_last_axis_and_channels() {
        for wide in [false, true] {
            let mut graph = TestGraph::new(wide);
            let x = graph.input("x", &[2, 3, 4]);
            let node = Node::new("Softmax", "n", &["x"], &["y"]);
            graph.tested(node, &[&[2, 3, 4]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), "softmax");
            run.assert_near(&expected(&x, 4), 0.51);
        }
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[1, 3, 2, 2]);
        let node = Node::new("Softmax", "n", &["x"], &["y"]);
        graph.tested(node.with(Attribute::int("axis", 1)), &[&[1, 3, 2, 2]]);
        let pixel = |at: usize| [x[at], x[at + 4], x[at + 8]];
        let pixels: Vec<Vec<f32>> = (0..4).map(|at| expected(&pixel(at), 3)).collect();
        let planes = (0..3).flat_map(|channel| pixels.iter().map(move |pixel| pixel[channel]));
        graph.run().assert_near(&planes.collect::<Vec<f32>>(), 0.51);
    }

    #[test]
    fn a_softmax_between_flatten_and_reshape_is_one_step() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[2, 3, 2]);
        let flatten = Node::new("Flatten", "flatten", &["x"], &["rows"]);
        graph.node(flatten, DataType::Float, &[&[2, 6]]);
        let softmax = Node::new("Softmax", "n", &["rows"], &["result"]);
        graph.node(softmax, DataType::Float, &[&[2, 6]]);
        graph.integers("shape", &[2, 3, 2]);
        let reshape = Node::new("Reshape", "reshape", &["result", "shape"], &["y"]);
        graph.tested(reshape, &[&[2, 3, 2]]);
        let run = graph.run();
        let node = run.nodes.iter().find(|node| node.node == "n").unwrap();
        for other in ["flatten", "reshape"] {
            assert!(node.fused.iter().any(|title| title == other), "{node:?}");
        }
        assert_near(&run.results[0], &expected(&x, 6), 0.04);
    }

    #[test]
    fn before_opset_13_all_axes_from_the_first_on() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[2, 3, 2]);
        graph.opset(12);
        graph.tested(Node::new("Softmax", "n", &["x"], &["y"]), &[&[2, 3, 2]]);
        graph.run().assert_near(&expected(&x, 6), 0.51);
    }
}
