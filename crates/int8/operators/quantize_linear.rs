//! QuantizeLinear and DequantizeLinear that remain at the border between integers and floats.

use std::sync::Arc;

use octet_onnx::schema::DataType;

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::{MemoryLayout, coincide};
use crate::lowering::compiler::{Compiler, scale};
use crate::lowering::conversions::DequantizeKernel;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::{slot, slot_out};
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher};
use crate::program::instruction::BufferElement;
use crate::values::{ElementKind, IrOperand};
use octet_graph::Node;

pub(super) const QUANTIZE: OperatorMatcher = OperatorMatcher {
    names: &["QuantizeLinear"],
    pass: MatchPass::Border,
    node: NodeMatcher::Steps(quantize),
};

pub(super) const DEQUANTIZE: OperatorMatcher = OperatorMatcher {
    names: &["DequantizeLinear"],
    pass: MatchPass::Border,
    node: NodeMatcher::Steps(dequantize),
};

/// Floats to integers.
struct QuantizeFloats;

/// Integers to floats.
struct DequantizeBytes;

/// Floats to the nearest reals of a 16-bit quantization.
struct RoundToInt16;

/// Reals of a 16-bit quantization as floats.
struct Int16ToFloats;

/// Every remaining QuantizeLinear is a step.
fn quantize(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let (input, output) = (slot(node, 0)?, slot_out(node)?);
    if matcher.reader.int16_parameters(node).is_ok() {
        let int16 = matcher.reader.hidden_int16(output)?;
        let shape = matcher.reader.shape(input)?;
        matcher.value(input, &shape, ElementKind::Float);
        matcher.value(output, &shape, ElementKind::Float);
        let operands = vec![IrOperand::Floats(input.to_owned())];
        let step = matcher.step(vec![index], Arc::new(RoundToInt16), operands, output);
        step.values.int16 = Some(int16);
        return Ok(());
    }
    let shape = matcher.reader.shape(input)?;
    let quantization = matcher.reader.quantization(node, output)?;
    let (output, bounds, clip) = matcher.clipped(output, quantization);
    require_float32(matcher, input)?;
    let signed = quantization.signed;
    matcher.value(input, &shape, ElementKind::Float);
    matcher.value(&output, &shape, ElementKind::Byte { signed });
    let operands = vec![IrOperand::Floats(input.to_owned())];
    let nodes = std::iter::once(index).chain(clip).collect();
    let step = matcher.step(nodes, Arc::new(QuantizeFloats), operands, &output);
    (step.values.quantization, step.values.bounds) = (Some(quantization), bounds);
    Ok(())
}

/// A DequantizeLinear is a step if a float node reads it.
fn dequantize(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    if !is_read_in_float(matcher, node) {
        return Ok(());
    }
    let (input, output) = (slot(node, 0)?, slot_out(node)?);
    if matcher.reader.int16_parameters(node).is_ok() {
        let int16 = matcher.reader.hidden_int16(input)?;
        let shape = matcher.reader.shape(input)?;
        matcher.value(input, &shape, ElementKind::Float);
        matcher.value(output, &shape, ElementKind::Float);
        let operands = vec![IrOperand::Int16(input.to_owned(), int16)];
        matcher.step(vec![index], Arc::new(Int16ToFloats), operands, output);
        return Ok(());
    }
    let shape = matcher.reader.shape(input)?;
    let quantization = matcher.reader.quantization(node, input)?;
    require_float32(matcher, output)?;
    let signed = quantization.signed;
    matcher.value(input, &shape, ElementKind::Byte { signed });
    matcher.value(output, &shape, ElementKind::Float);
    let operands = vec![IrOperand::Int8(input.to_owned(), quantization)];
    matcher.step(vec![index], Arc::new(DequantizeBytes), operands, output);
    Ok(())
}

fn is_read_in_float(matcher: &Matcher, node: &Node) -> bool {
    let Some(real) = node.output.first() else {
        return false;
    };
    let reader = &matcher.reader;
    let constant = node
        .input_at(0)
        .is_some_and(|name| reader.constant(name).is_some());
    let mut readers = reader.graph.consumers(real).iter();
    !constant
        && (reader.is_observed(real) || readers.any(|reader| !matcher.owned.contains(&reader.node)))
}

fn require_float32(matcher: &Matcher, reals: &str) -> Result<(), FloatReason> {
    match matcher.reader.element(reals) {
        Some(DataType::Float) => Ok(()),
        _ => Err(FloatReason::NotFloat32(reals.to_owned())),
    }
}

impl Operation for QuantizeFloats {
    fn name(&self) -> &'static str {
        "quantize"
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let layout = compiler.current_layout(step.first, MemoryLayout::Plain);
        let source = compiler.operand(step.first, layout)?;
        compiler.quantize(step, Some(scale(step.to()?)), (layout, vec![source]));
        Ok(())
    }
}

impl Operation for DequantizeBytes {
    fn name(&self) -> &'static str {
        "dequantize"
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (shape, output) = (step.shape, step.output);
        let layout = compiler.current_layout(step.first, MemoryLayout::Plain);
        let source = compiler.operand(step.first, layout)?;
        let image = output.len() >= 3 && !coincide(output);
        let turns = layout == MemoryLayout::ChannelsLast && image;
        let kernel = Box::new(DequantizeKernel {
            from: scale(step.from()?),
            image: turns.then(|| [shape[1], shape[2..].iter().product()]),
        });
        let result = compiler.add(kernel, vec![source], BufferElement::Float, output);
        compiler.put(step, MemoryLayout::Plain, result);
        Ok(())
    }
}

impl Operation for RoundToInt16 {
    fn name(&self) -> &'static str {
        "quantize to 16 bits"
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
        compiler.finish_reals(step, layout, source);
        Ok(())
    }
}

impl Operation for Int16ToFloats {
    fn name(&self) -> &'static str {
        "dequantize from 16 bits"
    }

    fn preference(&self, own: MemoryLayout) -> MemoryLayout {
        own
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        // The reals do not change, only the name.
        let layout = compiler.current_layout(step.first, step.preference);
        let source = compiler.operand(step.first, layout)?;
        compiler.put(step, layout, source);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::Node;

    use crate::test_graph::{TestGraph, rounded};

    #[test]
    fn floats_are_rounded_at_the_border() {
        let reals = [0.03, -0.04, 9.0, -100.0, 1.0, 0.03125];
        for (wide, names) in [
            (false, ["quantize", "dequantize"]),
            (true, ["quantize to 16 bits", "dequantize from 16 bits"]),
        ] {
            let mut graph = TestGraph::new(wide);
            graph.floats("x", &[6], &reals);
            graph.pair("x", "y", &[6]);
            graph.output("y");
            let run = graph.run();
            assert_eq!(run.operation("QuantizeLinear_y"), names[0]);
            assert_eq!(run.operation("DequantizeLinear_y"), names[1]);
            let steps = if wide { 1.0 } else { 0.0 };
            run.assert_near(&rounded(reals), steps);
        }
    }

    #[test]
    fn integers_that_another_node_reads_are_a_reason() {
        let mut graph = TestGraph::new(true);
        graph.floats("x", &[2], &[1.0, 2.0]);
        graph.pair("x", "y", &[2]);
        graph.output("y");
        graph.output("y_integers");
        let reason = "its 16-bit integers y_integers are watched or an output of the graph";
        assert_eq!(graph.reason("QuantizeLinear_y"), reason);
    }

    #[test]
    fn an_unknown_operator_is_a_reason() {
        let mut graph = TestGraph::new(false);
        graph.input("x", &[2]);
        graph.tested(Node::new("Unheard", "n", &["x"], &["y"]), &[&[2]]);
        assert_eq!(graph.reason("n"), "it has no integer implementation");
        let mut graph = TestGraph::new(false);
        graph.input("x", &[2]);
        let mut node = Node::new("Relu", "n", &["x"], &["y"]);
        node.domain = Some("com.example".into());
        graph.tested(node, &[&[2]]);
        assert_eq!(graph.reason("n"), "it is not a standard ONNX operator");
    }
}
