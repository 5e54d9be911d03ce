//! Concat: values and constants side by side along one axis.

use std::sync::Arc;

use octet_kernels::int8::{self as kernels, Table};

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::{axis, slot_out};
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher, check_16_bits};
use crate::pattern::reader::Reader;
use crate::program::instruction::{BufferElement, InstructionKernel};
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of};
use crate::program::split_rows::split_rows;
use crate::quantization::Int8Quantization;
use crate::values::IrOperand;
use octet_graph::Node;

pub(super) const CONCAT: OperatorMatcher = OperatorMatcher {
    names: &["Concat"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(concat),
};

/// Concatenation along one axis.
struct Concat {
    axis: usize,
}

fn concat(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let output = slot_out(node)?;
    let end = matcher.quantized_destination(output)?;
    let (operation, inputs) = operands(node, end.quantization(), &matcher.reader)?;
    check_16_bits(&operation, &inputs, &end)?;
    matcher.push(index, Arc::new(operation), inputs, output, end)?;
    Ok(())
}

fn operands(
    node: &Node,
    to: Option<Int8Quantization>,
    reader: &Reader,
) -> Result<(Concat, Vec<IrOperand>), FloatReason> {
    let output = reader.shape(slot_out(node)?)?;
    let axis = axis(
        node.int("axis").ok_or(FloatReason::AxisMissing)?,
        output.len(),
    )?;
    let mut operands = Vec::new();
    let mut joined = 0;
    for name in node.input.iter().filter(|name| !name.is_empty()) {
        let shape = reader.shape(name)?;
        let fits = shape.len() == output.len()
            && (0..shape.len()).all(|a| a == axis || shape[a] == output[a]);
        if !fits {
            return Err(FloatReason::ConcatShape(shape, name.clone(), output));
        }
        joined += shape[axis];
        operands.push(match reader.operand_or_int16(name) {
            Ok(operand) => operand,
            // A constant takes the output's quantization.
            Err(reason) => match to {
                Some(to) => reader.rounded(name, to).ok_or(reason)?,
                None => reader.operand_or_reals(name)?,
            },
        });
    }
    if operands.is_empty() || joined != output[axis] {
        return Err(FloatReason::ConcatSum(output));
    }
    if operands.iter().all(|operand| operand.value().is_none()) {
        return Err(FloatReason::AllConstant);
    }
    Ok((Concat { axis }, operands))
}

impl Operation for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn preference(&self, own: MemoryLayout) -> MemoryLayout {
        own
    }

    fn is_on_reals(&self, _inputs: &[IrOperand]) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (inputs, output) = (&step.values.inputs, step.output);
        // The majority of the inputs decides the layout.
        let lying = inputs.iter().filter(|o| o.value().is_some());
        let last = lying
            .filter(|o| compiler.current_layout(o, step.preference) == MemoryLayout::ChannelsLast)
            .count();
        let layout = if 2 * last >= inputs.len() {
            MemoryLayout::ChannelsLast
        } else {
            MemoryLayout::Plain
        };
        let place = layout.place(self.axis, output.len());
        let inner: usize = layout.sizes(output)[place + 1..].iter().product();
        let on_reals = step.is_on_reals();
        let (mut sources, mut parts) = (Vec::new(), Vec::new());
        for operand in inputs {
            let width = compiler.shape_of(operand)?[self.axis] * inner;
            let (source, table) = match on_reals {
                true => (compiler.reals(operand, layout)?, None),
                false => {
                    let table = operand.quantized()?.table_to(&step.to()?);
                    let table = table.map(|table| Table(*table));
                    (compiler.operand(operand, layout)?, table)
                }
            };
            sources.push(source);
            parts.push((width, table));
        }
        let kernel = Box::new(ConcatRows { parts });
        if on_reals {
            let result = compiler.add(kernel, sources, BufferElement::Float, output);
            compiler.finish_reals(step, layout, result);
        } else {
            let result = compiler.bytes(kernel, sources, output);
            compiler.finish_clamped(step, layout, result);
        }
        Ok(())
    }
}

/// Concatenates rows of these widths, bytes each through its table.
struct ConcatRows {
    parts: Vec<(usize, Option<Table>)>,
}

impl InstructionKernel for ConcatRows {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        match output {
            OutputSlice::Bytes(output) => self.bytes(inputs, output),
            output => self.reals(inputs, output.floats()?),
        }
    }
}

impl ConcatRows {
    fn width(&self) -> usize {
        self.parts.iter().map(|(width, _)| width).sum()
    }

    fn bytes(&self, inputs: &[InputSlice], output: &mut [u8]) -> Result<(), ProgramError> {
        let (width, length) = (self.width(), output.len());
        for at in 0..self.parts.len() {
            bytes_of(inputs, at)?;
        }
        split_rows(output, width, length, |rows, output| {
            let mut first = 0;
            for (at, (part, table)) in self.parts.iter().enumerate() {
                // The kernel refuses an input that is too short.
                let from = bytes_of(inputs, at).unwrap_or_default();
                let from = from.get(rows.start * part..).unwrap_or_default();
                let to = output.get_mut(first..).unwrap_or_default();
                let size = [rows.len(), *part];
                kernels::copy_rows(from, *part, size, table.as_ref(), to, width)?;
                first += part;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn reals(&self, inputs: &[InputSlice], output: &mut [f32]) -> Result<(), ProgramError> {
        let (width, length) = (self.width(), output.len());
        for at in 0..self.parts.len() {
            floats_of(inputs, at)?;
        }
        split_rows(output, width, length, |rows, output| {
            for (row, mut output) in rows.zip(output.chunks_exact_mut(width.max(1))) {
                for (at, &(part, _)) in self.parts.iter().enumerate() {
                    let from = floats_of(inputs, at).unwrap_or_default().get(row * part..);
                    let (to, rest) = output.split_at_mut(part);
                    for (to, &from) in to.iter_mut().zip(from.unwrap_or_default()) {
                        *to = from;
                    }
                    output = rest;
                }
            }
            Ok(())
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::Attribute;
    use octet_graph::Node;

    use crate::test_graph::TestGraph;

    fn node(inputs: &[&str]) -> Node {
        Node::new("Concat", "n", inputs, &["y"]).with(Attribute::int("axis", 1))
    }

    #[test]
    fn values_and_constants_are_joined() {
        for wide in [false, true] {
            let mut graph = TestGraph::new(wide);
            let (a, b) = (graph.input("a", &[2, 3]), graph.input("b", &[2, 1]));
            graph.constant("c", &[2, 1], &[0.5, -0.25]);
            graph.tested(node(&["a", "c", "b"]), &[&[2, 5]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), "concat");
            let rows = [(0, 0.5), (1, -0.25)];
            let rows = rows.map(|(at, constant)| [&a[at * 3..][..3], &[constant, b[at]]].concat());
            run.assert_near(&rows.concat(), 0.0);
        }
    }

    #[test]
    fn images_are_joined_by_channels() {
        let mut graph = TestGraph::new(false);
        let (a, b) = (
            graph.input("a", &[1, 2, 2, 2]),
            graph.input("b", &[1, 1, 2, 2]),
        );
        graph.tested(node(&["a", "b"]), &[&[1, 3, 2, 2]]);
        graph.run().assert_near(&[a, b].concat(), 0.0);
    }

    #[test]
    fn shapes_that_do_not_fit_are_a_reason() {
        let mut graph = TestGraph::new(false);
        graph.input("a", &[2, 3]);
        graph.input("b", &[3, 1]);
        graph.tested(node(&["a", "b"]), &[&[2, 4]]);
        let reason = "the shape [3, 1] of its input b does not fit the output shape [2, 4]";
        assert_eq!(graph.reason("n"), reason);
    }
}
