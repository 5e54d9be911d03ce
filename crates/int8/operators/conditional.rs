//! The operator Where on two quantized values. The condition comes from outside the region or is a
//! constant.

use std::sync::Arc;

use octet_kernels::int8::{Arithmetic, Table};
use octet_onnx::schema::DataType;

use super::arithmetic::{min_max, of_sides, of_two};
use crate::error::{CompilerBug, ProgramError};
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::conversions::{ByteTable, RealsOfBytes};
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::{check_broadcast, slot, slot_out};
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher};
use crate::pattern::reader::Reader;
use crate::program::instruction::BufferElement;
use crate::quantization::Int8Quantization;
use crate::values::IrOperand;
use octet_graph::Node;

pub(super) const WHERE: OperatorMatcher = OperatorMatcher {
    names: &["Where"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(conditional),
};

/// The second operand if the condition, the first operand, is not zero; else the third.
struct Conditional;

/// Parameters of a condition's bytes: identity.
const TRUTH: Int8Quantization = Int8Quantization {
    scale: 1.0,
    zero_point: 0,
    signed: false,
};

fn conditional(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let output = slot_out(node)?;
    let end = matcher.quantized_destination(output)?;
    let inputs = operands(node, end.quantization(), &matcher.reader)?;
    matcher.push(index, Arc::new(Conditional), inputs, output, end)?;
    Ok(())
}

/// The condition and both values. Selection and rounding commute.
fn operands(
    node: &Node,
    to: Option<Int8Quantization>,
    reader: &Reader,
) -> Result<Vec<IrOperand>, FloatReason> {
    let output = reader.shape(slot_out(node)?)?;
    let name = slot(node, 0)?;
    let condition = match reader.constant(name) {
        Some(tensor) => IrOperand::Constant(reader.quantized(name, tensor, TRUTH)?),
        None if reader.element(name) == Some(DataType::Bool) => IrOperand::Bytes(name.to_owned()),
        None => return Err(FloatReason::ConditionType(name.to_owned())),
    };
    let mut operands = vec![condition];
    for at in [1, 2] {
        let name = slot(node, at)?;
        let rounded = to.and_then(|to| reader.rounded(name, to));
        operands.push(match rounded {
            Some(constant) => constant,
            None => reader.operand_or_reals(name)?,
        });
    }
    let endless = |value: &f32| !value.is_finite();
    for (name, operand) in node.input.iter().zip(&operands) {
        check_broadcast(name, &reader.shape(name)?, &output)?;
        if let IrOperand::Reals(_, values) = operand
            && values.iter().any(endless)
        {
            return Err(FloatReason::NotFinite(name.clone()));
        }
    }
    let mut values = operands[1..].iter();
    match values.all(|operand| operand.value().is_none()) {
        true => Err(FloatReason::BothConstant),
        false => Ok(operands),
    }
}

impl Operation for Conditional {
    fn name(&self) -> &'static str {
        "where"
    }

    fn preference(&self, own: MemoryLayout) -> MemoryLayout {
        own
    }

    fn input_type(&self, at: usize) -> Option<&'static str> {
        (at == 0).then(|| DataType::Bool.name())
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let [condition, values @ ..] = &step.values.inputs[..] else {
            return Err(CompilerBug::MissingOperand.into());
        };
        let layout = compiler.layout_of_two(step)?;
        match step.is_on_reals() {
            true => on_reals(compiler, step, layout, (condition, values)),
            false => on_bytes(compiler, step, layout, (condition, values)),
        }
    }
}

/// A condition becomes a mask byte of 0 or 255. The minimum of a value and 255 is the value, and so
/// is the maximum of the value and 0.
fn on_bytes<'a>(
    compiler: &mut Compiler<'a>,
    step: &LoweredStep<'a>,
    layout: MemoryLayout,
    (condition, values): (&'a IrOperand, &'a [IrOperand]),
) -> Result<(), ProgramError> {
    let mut parts = Vec::new();
    for (at, operand) in values.iter().enumerate() {
        let mut mask = [if at == 0 { u8::MAX } else { 0 }; 256];
        mask[0] = !mask[1];
        let kernel = Box::new(ByteTable(Table(mask)));
        let through = Some((kernel as _, BufferElement::Byte));
        let mask = compiler.side(condition, layout, step.output, through)?;
        let value = compiler.requantized_side(step, operand, layout)?;
        parts.push((min_max(compiler, [mask, value], true, step.output), 1));
    }
    let parts = <[_; 2]>::try_from(parts).map_err(|_| CompilerBug::MissingOperand)?;
    let result = min_max(compiler, parts, false, step.output);
    compiler.finish_clamped(step, layout, result);
    Ok(())
}

/// Finite reals: each value times 1 or 0, then the sum.
fn on_reals<'a>(
    compiler: &mut Compiler<'a>,
    step: &LoweredStep<'a>,
    layout: MemoryLayout,
    (condition, values): (&'a IrOperand, &'a [IrOperand]),
) -> Result<(), ProgramError> {
    let mut parts = Vec::new();
    for (at, operand) in values.iter().enumerate() {
        let mut mask = Box::new([1.0 - at as f32; 256]);
        mask[0] = at as f32;
        let kernel = Box::new(RealsOfBytes(mask));
        let through = Some((kernel as _, BufferElement::Float));
        let mask = compiler.side(condition, layout, step.output, through)?;
        let value = compiler.side_of_reals(operand, layout, step.output)?;
        let how = Arithmetic::Multiply;
        parts.push((of_two(compiler, how, [mask, value], None, step.output), 1));
    }
    of_sides(compiler, step, Arithmetic::Add, layout, parts)
}

#[cfg(test)]
mod tests {
    use octet_graph::Node;

    use crate::test_graph::TestGraph;

    #[test]
    fn a_condition_selects() {
        for wide in [false, true] {
            let mut graph = TestGraph::new(wide);
            let condition = graph.condition("c", &[2, 3]);
            let [a, b] = ["a", "b"].map(|name| graph.input(name, &[2, 3]));
            let node = Node::new("Where", "n", &["c", "a", "b"], &["y"]);
            graph.tested(node, &[&[2, 3]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), "where");
            let node = run.nodes.iter().find(|node| node.node == "n").unwrap();
            assert_eq!(node.inputs[0], "bool");
            let chosen = (0..6).map(|at| if condition[at] { a[at] } else { b[at] });
            run.assert_near(&chosen.collect::<Vec<f32>>(), 0.0);
        }
    }

    #[test]
    fn two_constants_are_a_reason() {
        let mut graph = TestGraph::new(false);
        graph.condition("c", &[3]);
        graph.constant("a", &[], &[1.0]);
        graph.constant("b", &[], &[2.0]);
        let node = Node::new("Where", "n", &["c", "a", "b"], &["y"]);
        graph.tested(node, &[&[3]]);
        assert_eq!(graph.reason("n"), "both of its values are constant");
    }
}
