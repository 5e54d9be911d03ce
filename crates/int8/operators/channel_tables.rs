//! A byte lookup table per channel: BatchNormalization, and PRelu with one slope per channel.

use std::sync::Arc;

use octet_kernels::int8::Table;

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::{slot, slot_out};
use crate::pattern::destination::Destination;
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher};
use crate::pattern::reader::Reader;
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{InputSlice, OutputSlice, bytes_of};
use crate::program::split_rows::split_rows;
use crate::quantization::Int8Quantization;
use crate::values::IrOperand;
use octet_graph::Node;

pub(super) const BATCH_NORMALIZATION: OperatorMatcher = OperatorMatcher {
    names: &["BatchNormalization"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(batch_normalization),
};

/// A table per channel.
pub(super) struct ChannelTables {
    tables: Vec<[u8; 256]>,
}

/// Quantization and bounds of the bytes of a table.
pub(super) type TableOutput = (Int8Quantization, [u8; 2]);

fn batch_normalization(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let output = slot_out(node)?;
    let end = matcher.destination(output);
    let Destination::Int8 {
        quantization,
        bounds,
        ..
    } = &end
    else {
        return match end {
            Destination::Floats(reason) => Err(reason),
            _ => Err(FloatReason::OutputOf16Bits),
        };
    };
    let (operation, operand) = normalized(node, (*quantization, *bounds), &matcher.reader)?;
    let step = matcher.push(index, Arc::new(operation), vec![operand], output, end)?;
    // The tables clamp.
    step.values.bounds = [0, 255];
    Ok(())
}

/// BatchNormalization: each channel is a function of one integer.
fn normalized(
    node: &Node,
    output: TableOutput,
    reader: &Reader,
) -> Result<(ChannelTables, IrOperand), FloatReason> {
    let input = slot(node, 0)?;
    let operand = reader.operand(input)?;
    let from = operand.quantization().ok_or(FloatReason::FloatInput)?;
    let shape = reader.shape(input)?;
    let channels = *shape.get(1).ok_or(FloatReason::NoChannels)?;
    let numbers = |at: usize| -> Result<Vec<f32>, FloatReason> {
        let name = slot(node, at)?;
        let values = reader.reals(name).map(|(_, values)| values);
        values
            .filter(|values| values.len() == channels)
            .ok_or_else(|| FloatReason::ConstantOf(name.to_owned(), channels))
    };
    let (scale, shift, mean, variance) = (numbers(1)?, numbers(2)?, numbers(3)?, numbers(4)?);
    let training = node.int("training_mode").unwrap_or(0) != 0;
    if training || node.output.iter().skip(1).any(|name| !name.is_empty()) {
        return Err(FloatReason::Training);
    }
    let epsilon = node.float("epsilon").unwrap_or(1e-5);
    let table = |channel: usize| {
        let factor = scale[channel] / (variance[channel] + epsilon).sqrt();
        let real = |real: f32| (real - mean[channel]) * factor + shift[channel];
        table(from, output, &real)
    };
    let tables = (0..channels).map(table).collect();
    Ok((ChannelTables { tables }, operand))
}

/// PRelu with one slope per channel.
pub(super) fn slopes(
    node: &Node,
    output: TableOutput,
    reader: &Reader,
) -> Result<(ChannelTables, IrOperand), FloatReason> {
    let (input, name) = (slot(node, 0)?, slot(node, 1)?);
    let operand = reader.operand(input)?;
    let from = operand.quantization().ok_or(FloatReason::FloatInput)?;
    let shape = reader.shape(input)?;
    let slopes = reader.per_channel(name, &shape, 1);
    let slopes = slopes.filter(|slopes| Some(&slopes.len()) == shape.get(1));
    let slopes = slopes.ok_or(FloatReason::Slopes)?;
    let bent = |real: f32, slope: f32| if real < 0.0 { real * slope } else { real };
    let tables = slopes
        .iter()
        .map(|&slope| table(from, output, &|real| bent(real, slope)))
        .collect();
    Ok((ChannelTables { tables }, operand))
}

/// The integers of a function, for all integers of its operand.
fn table(
    from: Int8Quantization,
    (to, [low, high]): TableOutput,
    function: &dyn Fn(f32) -> f32,
) -> [u8; 256] {
    let mut table = [0; 256];
    for (integer, entry) in (0..=255u8).zip(&mut table) {
        let real = function(from.real(integer));
        *entry = to.integer(real).clamp(low, high.max(low));
    }
    table
}

impl Operation for ChannelTables {
    fn name(&self) -> &'static str {
        "per-channel table"
    }

    fn preference(&self, own: MemoryLayout) -> MemoryLayout {
        own
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let layout = compiler.current_layout(step.first, step.preference);
        let source = compiler.operand(step.first, layout)?;
        let together = match layout {
            MemoryLayout::Plain => step.shape[2..].iter().product::<usize>().max(1),
            MemoryLayout::ChannelsLast => 1,
        };
        let tables = self.tables.iter().map(|table| Table(*table)).collect();
        let kernel = Box::new(ChannelTablesKernel { tables, together });
        let result = compiler.bytes(kernel, vec![source], step.output);
        compiler.put(step, layout, result);
        Ok(())
    }
}

struct ChannelTablesKernel {
    tables: Vec<Table>,
    /// Number of adjacent elements of one channel.
    together: usize,
}

impl InstructionKernel for ChannelTablesKernel {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (from, output) = (bytes_of(inputs, 0)?, output.bytes()?);
        let ChannelTablesKernel { tables, together } = self;
        let (image, length) = (tables.len() * together, output.len());
        split_rows(output, image, length, |part, output| {
            let from = &from[part.start * image..part.end * image];
            if *together == 1 {
                let pixels = from.chunks_exact(image).zip(output.chunks_exact_mut(image));
                for (from, to) in pixels {
                    for ((to, &from), table) in to.iter_mut().zip(from).zip(tables) {
                        *to = table.0[usize::from(from)];
                    }
                }
                return Ok(());
            }
            let runs = from.chunks(*together).zip(output.chunks_mut(*together));
            for ((from, to), table) in runs.zip(tables.iter().cycle()) {
                table.apply(from, to)?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::Node;

    use crate::test_graph::{TestGraph, rounded};

    #[test]
    fn each_channel_has_a_function() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[1, 2, 2, 2]);
        for (name, values) in [
            ("scale", [1.0, 0.5]),
            ("shift", [0.25, -1.0]),
            ("mean", [0.5, 0.0]),
            ("variance", [4.0, 1.0]),
        ] {
            graph.constant(name, &[2], &values);
        }
        let inputs = ["x", "scale", "shift", "mean", "variance"];
        let node = Node::new("BatchNormalization", "n", &inputs, &["y"]);
        graph.tested(node, &[&[1, 2, 2, 2]]);
        let run = graph.run();
        assert_eq!(run.operation("n"), "per-channel table");
        let of = |(at, real): (usize, &f32)| match at < 4 {
            true => (real - 0.5) / (4.0f32 + 1e-5).sqrt() + 0.25,
            false => real * (0.5 / (1.0f32 + 1e-5).sqrt()) - 1.0,
        };
        run.assert_near(&rounded(x.iter().enumerate().map(of)), 1.0);
    }

    #[test]
    fn slopes_of_channels() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[1, 2, 2, 2]);
        graph.constant("slope", &[2, 1, 1], &[0.5, 2.0]);
        let node = Node::new("PRelu", "n", &["x", "slope"], &["y"]);
        graph.tested(node, &[&[1, 2, 2, 2]]);
        let run = graph.run();
        assert_eq!(run.operation("n"), "per-channel table");
        let slope = |at: usize| if at < 4 { 0.5 } else { 2.0 };
        let of = |(at, &real): (usize, &f32)| if real < 0.0 { real * slope(at) } else { real };
        run.assert_near(&rounded(x.iter().enumerate().map(of)), 0.0);
    }

    #[test]
    fn an_output_of_16_bits_is_a_reason() {
        let mut graph = TestGraph::new(true);
        graph.input("x", &[1, 2, 2, 2]);
        for name in ["scale", "shift", "mean", "variance"] {
            graph.constant(name, &[2], &[1.0, 1.0]);
        }
        let inputs = ["x", "scale", "shift", "mean", "variance"];
        let node = Node::new("BatchNormalization", "n", &inputs, &["y"]);
        graph.tested(node, &[&[1, 2, 2, 2]]);
        let reason = "its result is not quantized to eight bits: \
                      QuantizeLinear_y_result has integers of type uint16";
        assert_eq!(graph.reason("n"), reason);
    }
}
