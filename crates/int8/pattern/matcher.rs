//! The matcher's state, and the steps that it adds for nodes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use octet_graph::{Model, Node, TensorType};

use super::attributes::{slot, slot_out};
use super::destination::Destination;
use super::reader::Reader;
use crate::error::ProgramError;
use crate::float_evaluator::FloatEvaluator;
use crate::float_reason::FloatReason;
use crate::ir::{Ir, IrStep};
use crate::operation::Operation;
use crate::values::{ElementKind, IrOperand, IrValue, StepValues};

/// Matches the nodes of some operators.
pub(crate) struct OperatorMatcher {
    /// Operators, with their domain if it is not ONNX's own: `Concat`, `com.microsoft::Gelu`.
    pub(crate) names: &'static [&'static str],
    pub(crate) pass: MatchPass,
    pub(crate) node: NodeMatcher,
}

/// The pass in which nodes are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchPass {
    /// Operators defined on integers, in the order of the graph. They are matched in every scope.
    Defined,
    /// All operators, in the order of the graph.
    Quantized,
    /// Conversions between integers and floats that are part of no step so far.
    Border,
}

/// Matches one node. The result is an added step, or a reason.
pub(crate) enum NodeMatcher {
    /// Adds steps itself.
    Steps(fn(&mut Matcher, usize) -> Result<(), FloatReason>),
    /// Reads the operation of a node with one operand and one output.
    OneOperand(fn(&OneOperand) -> Result<Arc<dyn Operation>, FloatReason>),
}

/// A node with one operand and one output.
pub(crate) struct OneOperand<'m, 'a> {
    pub(crate) node: &'a Node,
    pub(crate) reader: &'m Reader<'a>,
    pub(crate) operand: IrOperand,
    /// Shape of the operand.
    pub(crate) shape: Vec<usize>,
    /// Shape of the output.
    pub(crate) output: Vec<usize>,
}

impl OneOperand<'_, '_> {
    /// Requires that the output shape follows from the shape of the operand.
    pub(crate) fn require_output(&self, follows: bool) -> Result<(), FloatReason> {
        match follows {
            true => Ok(()),
            false => Err(FloatReason::OutputShape(
                self.output.clone(),
                self.shape.clone(),
            )),
        }
    }

    /// True if input and output have equally many values.
    pub(crate) fn is_as_large(&self) -> bool {
        let count = |shape: &[usize]| shape.iter().product::<usize>();
        count(&self.shape) == count(&self.output)
    }
}

/// A prepared model, and what the matcher needs beside it.
pub(crate) struct MatcherInput<'a> {
    pub(crate) model: &'a Model,
    /// Types for the shapes of the run.
    pub(crate) types: &'a BTreeMap<String, TensorType>,
    /// Values that are watched from outside.
    pub(crate) watched: &'a [String],
    pub(crate) floats: &'a dyn FloatEvaluator,
    pub(crate) operators: &'a [&'a OperatorMatcher],
}

/// Steps so far, and what is known of the other nodes.
pub(crate) struct Matcher<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) ir: Ir,
    /// Nodes that belong to steps.
    pub(crate) owned: HashSet<usize>,
    pub(crate) reasons: HashMap<usize, FloatReason>,
    operators: &'a [&'a OperatorMatcher],
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(
        input: &MatcherInput<'a>,
        refused: &HashMap<usize, ProgramError>,
    ) -> Matcher<'a> {
        let reasons = refused.iter();
        let reasons = reasons.map(|(&node, error)| (node, FloatReason::from(error.clone())));
        Matcher {
            reader: Reader::new(
                input.model,
                input.types,
                input.watched,
                refused.keys().copied().collect(),
                input.floats,
            ),
            ir: Ir::default(),
            owned: HashSet::new(),
            reasons: reasons.collect(),
            operators: input.operators,
        }
    }

    pub(crate) fn node(&self, index: usize) -> &'a Node {
        &self.reader.graph.nodes()[index]
    }

    fn operator(&self, node: &Node) -> Option<&'a OperatorMatcher> {
        let name = node.operator();
        let mut operators = self.operators.iter().copied();
        operators.find(|operator| operator.names.contains(&name.as_str()))
    }

    /// True for a node that only the last pass matches.
    pub(crate) fn is_of_border(&self, node: &Node) -> bool {
        let operator = self.operator(node);
        operator.is_some_and(|operator| operator.pass == MatchPass::Border)
    }

    /// Matches a node in one of the passes.
    pub(crate) fn visit(&mut self, index: usize, pass: MatchPass) {
        let node = self.node(index);
        if self.owned.contains(&index) || self.reader.refused.contains(&index) {
            return;
        }
        let matched = match self.operator(node) {
            Some(operator)
                if operator.pass == pass
                    || (operator.pass, pass) == (MatchPass::Defined, MatchPass::Quantized) =>
            {
                match operator.node {
                    NodeMatcher::Steps(matches) => matches(self, index),
                    NodeMatcher::OneOperand(read) => self.one_operand(index, read),
                }
            }
            Some(_) => return,
            None if pass == MatchPass::Border => return,
            None if !is_standard(node) => Err(FloatReason::OtherDomain),
            None if pass == MatchPass::Defined => return,
            None => Err(FloatReason::NotImplemented),
        };
        if let Err(reason) = matched {
            self.reasons.insert(index, reason);
        }
    }

    /// Adds a step for a node with one operand and one output.
    pub(crate) fn one_operand(
        &mut self,
        index: usize,
        read: fn(&OneOperand) -> Result<Arc<dyn Operation>, FloatReason>,
    ) -> Result<(), FloatReason> {
        let node = self.node(index);
        let output = slot_out(node)?;
        let end = self.quantized_destination(output)?;
        let input = slot(node, 0)?;
        let reader = &self.reader;
        let one = OneOperand {
            node,
            reader,
            operand: reader.operand_or_int16(input)?,
            shape: reader.shape(input)?,
            output: reader.shape(output)?,
        };
        let operation = read(&one)?;
        let inputs = vec![one.operand];
        check_16_bits(&*operation, &inputs, &end)?;
        self.push(index, operation, inputs, output, end)?;
        Ok(())
    }

    /// A node of an ONNX operator that no step contains yet.
    pub(crate) fn unmatched(&self, index: usize) -> Option<&'a Node> {
        let taken = self.owned.contains(&index) || self.reader.refused.contains(&index);
        let node = self.node(index);
        (is_standard(node) && !taken).then_some(node)
    }

    /// The only reader of a value, if it is this binary operator, with its other input.
    pub(crate) fn partner(&self, value: &str, operator: &str) -> Option<(usize, &'a str)> {
        let reader = self.reader.graph.only_consumer(value)?;
        let slot = reader.input().filter(|&slot| slot < 2)?;
        let reader = reader.node;
        let node = self.unmatched(reader).filter(|node| node.is(operator))?;
        let other = node.input_at(1 - slot)?;
        (!self.reader.is_observed(value)).then_some((reader, other))
    }

    /// True if a value is the float output of a step whose output arithmetic may read.
    pub(crate) fn is_float_output(&self, name: &str) -> bool {
        let mut steps = self.ir.steps.iter();
        steps.any(|step| {
            let values = &step.values;
            let float = values.quantization.is_none() && values.int16.is_none();
            step.operation.has_float_output() && values.output == name && float
        })
    }

    /// Records the type of a value that a step reads or writes.
    pub(crate) fn value(&mut self, name: &str, shape: &[usize], kind: ElementKind) {
        let shape = shape.to_vec();
        let value = IrValue { shape, kind };
        self.ir.values.insert(name.to_owned(), value);
    }

    /// Adds a step for a node and the nodes of its destination.
    pub(crate) fn push(
        &mut self,
        index: usize,
        operation: Arc<dyn Operation>,
        inputs: Vec<IrOperand>,
        real: &str,
        end: Destination,
    ) -> Result<&mut IrStep, FloatReason> {
        let node = self.node(index);
        let shape = self.reader.shape(real)?;
        for (operand, name) in inputs
            .iter()
            .zip(node.input.iter().filter(|n| !n.is_empty()))
        {
            let Some(value) = operand.value() else {
                continue;
            };
            let shape = self
                .reader
                .shape(value)
                .or_else(|_| self.reader.shape(name))?;
            let kind = match operand {
                IrOperand::Bytes(_) => ElementKind::Byte { signed: false },
                _ => ElementKind::from_quantization(operand.quantization()),
            };
            self.value(value, &shape, kind);
        }
        let mut nodes = vec![index];
        let (output, quantization, int16, bounds) = match end {
            Destination::Int8 {
                output,
                quantization,
                bounds,
                nodes: more,
            } => {
                nodes.extend(more);
                (output, Some(quantization), None, bounds)
            }
            Destination::Int16 {
                output,
                int16,
                nodes: more,
            } => {
                nodes.extend(more);
                (output, None, Some(int16), [0, 255])
            }
            Destination::Floats(_) => (real.to_owned(), None, None, [0, 255]),
        };
        let kind = ElementKind::from_quantization(quantization);
        self.value(&output, &shape, kind);
        let step = self.step(nodes, operation, inputs, &output);
        let values = &mut step.values;
        (values.quantization, values.int16, values.bounds) = (quantization, int16, bounds);
        Ok(step)
    }

    /// Adds a step for these nodes, named by the first. Its output is float until set otherwise.
    pub(crate) fn step(
        &mut self,
        nodes: Vec<usize>,
        operation: Arc<dyn Operation>,
        inputs: Vec<IrOperand>,
        output: &str,
    ) -> &mut IrStep {
        let node = self.node(nodes[0]);
        self.own(&nodes);
        let step = IrStep {
            node: node.title().to_owned(),
            operator: node.operator(),
            nodes,
            operation,
            values: StepValues::new(inputs, output),
        };
        let at = self.ir.steps.len();
        self.ir.steps.push(step);
        &mut self.ir.steps[at]
    }

    /// Adds nodes to the step that was added last.
    pub(crate) fn extend_step(&mut self, nodes: &[usize]) {
        self.own(nodes);
        if let Some(step) = self.ir.steps.last_mut() {
            step.nodes.extend(nodes);
        }
    }

    fn own(&mut self, nodes: &[usize]) {
        self.owned.extend(nodes);
        for member in nodes {
            self.reasons.remove(member);
        }
    }
}

/// Fails if a 16-bit value is involved and the operation has no implementation on reals.
pub(crate) fn check_16_bits(
    operation: &dyn Operation,
    inputs: &[IrOperand],
    end: &Destination,
) -> Result<(), FloatReason> {
    let wide = inputs.iter().any(IrOperand::is_int16) || matches!(end, Destination::Int16 { .. });
    match wide && !operation.is_on_reals(inputs) {
        true => Err(FloatReason::NotOn16Bits(operation.name())),
        false => Ok(()),
    }
}

/// True for an operator of ONNX's own domain.
fn is_standard(node: &Node) -> bool {
    matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"))
}
