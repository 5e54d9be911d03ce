//! The descriptor of an operator, and the setters that build one. An entry of the registry says
//! only what differs from the defaults.

use super::Treatment;
use super::decomposer::FusedDecomposition;
use super::elements::{OfFloats, OfIntegers};
use super::input_rule::InputRule;
use super::integer_forms::{DynamicForm, QLinearForm, QLinearInputs};
use super::node_context::Check;
use super::opset_context::Change;
use super::properties::{ChannelRole, Float16, MacRule, OutputType, Properties, Property};
use super::quantization::{FOREIGN, NO_INTEGER_FORM};
use super::sequence_rewriter::SequenceRewrite;
use super::shape_context::{SAME, ShapeContext, ShapeRule};
use crate::MICROSOFT;
use crate::inferred_value::InferredValue;

/// The value of a reduction of small integers; `None` if it does not fit.
type Reduction = fn(&[i64]) -> Option<i64>;

/// All that passes know about an operator.
#[derive(Debug)]
pub struct Operator {
    /// Name within its domain.
    pub name: &'static str,
    /// Domain; empty for ONNX's own.
    pub domain: &'static str,
    properties: Properties,
    /// Treatment when quantized; `None` if it always stays float.
    pub treatment: Option<Treatment>,
    /// True if ONNX Runtime's `quantize_static` quantizes it by default.
    pub is_onnx_runtime_default: bool,
    reason: &'static str,
    /// Inputs that hold weights, if they are constant.
    pub weight_slots: &'static [usize],
    /// Inputs whose values determine the output shape.
    pub shape_slots: &'static [usize],
    /// The number of first inputs that have the element type of all outputs; 0 if none is known.
    pub same_type_inputs: usize,
    /// The first opset in which ONNX Runtime applies it to 8-bit integers with the meaning that it
    /// has for floats; 0 if there is none.
    pub integer_opset: i64,
    /// Rule that counts multiply-accumulate operations.
    pub macs: MacRule,
    /// Treatment in a float16 model.
    pub float16: Float16,
    /// Source of the output's element type.
    pub output_type: OutputType,
    /// Role in equalization.
    pub channels: ChannelRole,
    pub(super) sequence_rewrite: Option<SequenceRewrite>,
    pub(super) decomposition: Option<FusedDecomposition>,
    /// The operator on integers that replaces it in the QOperator format.
    pub qlinear: Option<QLinearForm>,
    /// Its form in dynamic quantization.
    pub dynamic: Option<DynamicForm>,
    /// The default of the attribute `activations` for one direction of a recurrent layer.
    pub activations: &'static [&'static str],
    /// Changes of its form or meaning, and their opsets, in order.
    pub(crate) changes: &'static [(i64, Change)],
    pub(super) shape: ShapeRule,
    pub(super) inputs: InputRule,
    /// Check of attributes and constant inputs.
    pub(super) check: Option<Check>,
    /// Check that shapes fit each other.
    pub(super) check_shapes: Option<Check>,
    /// Reduces all elements of a small integer value to one.
    pub(super) reduces: Option<Reduction>,
    /// Functions that compute one element of small values.
    pub(super) arithmetic: (Option<OfIntegers>, Option<OfFloats>),
}

/// The number for [`Operator::same_type_inputs`] that stands for all inputs.
pub(super) const ALL_INPUTS: usize = usize::MAX;

impl Operator {
    const fn new(domain: &'static str, name: &'static str, reason: &'static str) -> Operator {
        Operator {
            name,
            domain,
            properties: Properties::NONE,
            treatment: None,
            is_onnx_runtime_default: false,
            reason,
            weight_slots: &[],
            shape_slots: &[],
            same_type_inputs: 0,
            integer_opset: 0,
            macs: MacRule::Zero,
            float16: Float16::Converts,
            output_type: OutputType::Implied,
            channels: ChannelRole::Blocks,
            sequence_rewrite: None,
            decomposition: None,
            qlinear: None,
            dynamic: None,
            activations: &[],
            changes: &[],
            shape: ShapeRule::Unknown,
            inputs: InputRule::DEFAULT,
            check: None,
            check_shapes: None,
            reduces: None,
            arithmetic: (None, None),
        }
    }

    /// An operator of ONNX without further properties.
    pub(super) const fn onnx(name: &'static str) -> Operator {
        Operator::new("", name, NO_INTEGER_FORM)
    }

    /// An operator of ONNX Runtime without further properties.
    pub(super) const fn microsoft(name: &'static str) -> Operator {
        let float16 = Float16::Stays(FOREIGN);
        Operator::new(MICROSOFT, name, FOREIGN).float16(float16)
    }

    /// Adds properties.
    pub(super) const fn with(mut self, properties: &[Property]) -> Operator {
        self.properties = self.properties.with(properties);
        self
    }

    /// Quantized, also by ONNX Runtime's `quantize_static`.
    pub(super) const fn quantized(mut self, treatment: Treatment) -> Operator {
        self.is_onnx_runtime_default = true;
        self.quantized_here(treatment)
    }

    /// Quantized here, but not by ONNX Runtime's `quantize_static`.
    pub(super) const fn quantized_here(mut self, treatment: Treatment) -> Operator {
        self.treatment = Some(treatment);
        self
    }

    /// Stays float for this reason.
    pub(super) const fn stays_float(mut self, reason: &'static str) -> Operator {
        self.reason = reason;
        self
    }

    /// Has weights in these inputs.
    pub(super) const fn weights(mut self, slots: &'static [usize]) -> Operator {
        self.weight_slots = slots;
        self
    }

    /// The values of these inputs determine the output shape.
    pub(super) const fn shape_from(mut self, slots: &'static [usize]) -> Operator {
        self.shape_slots = slots;
        self
    }

    /// The first inputs and all outputs share an element type.
    pub(super) const fn same_type(mut self, inputs: usize) -> Operator {
        self.same_type_inputs = inputs;
        self
    }

    /// ONNX Runtime applies it to 8-bit integers since this opset.
    pub(super) const fn integers_since(mut self, opset: i64) -> Operator {
        self.integer_opset = opset;
        self
    }

    /// Counts multiply-accumulate operations by this rule.
    pub(super) const fn macs(mut self, rule: MacRule) -> Operator {
        self.macs = rule;
        self
    }

    /// Treatment in a float16 model.
    pub(super) const fn float16(mut self, treatment: Float16) -> Operator {
        self.float16 = treatment;
        self
    }

    /// Source of the output's element type.
    pub(super) const fn output_type(mut self, source: OutputType) -> Operator {
        self.output_type = source;
        self
    }

    /// Role in equalization.
    pub(super) const fn channels(mut self, role: ChannelRole) -> Operator {
        self.channels = role;
        self
    }

    /// Is rewritten where the elements of its sequences are known.
    pub(super) const fn rewrites_sequences(mut self, rewrite: SequenceRewrite) -> Operator {
        self.sequence_rewrite = Some(rewrite);
        self
    }

    /// Is decomposed into ONNX's basic operators.
    pub(super) const fn fused(self, decomposition: FusedDecomposition) -> Operator {
        self.with(&[Property::Fused]).decomposes(decomposition)
    }

    /// Is decomposed in opsets that lack it.
    pub(super) const fn decomposes(mut self, decomposition: FusedDecomposition) -> Operator {
        self.decomposition = Some(decomposition);
        self
    }

    /// Replaced by an operator of ONNX on integers.
    pub(super) const fn qlinear(mut self, name: &'static str, inputs: QLinearInputs) -> Operator {
        self.qlinear = Some(QLinearForm::onnx(name, inputs));
        self
    }

    /// Replaced by an operator of ONNX Runtime on integers.
    pub(super) const fn qlinear_microsoft(
        mut self,
        name: &'static str,
        inputs: QLinearInputs,
    ) -> Operator {
        self.qlinear = Some(QLinearForm::microsoft(name, inputs));
        self
    }

    /// Form in dynamic quantization.
    pub(super) const fn dynamic(mut self, form: DynamicForm) -> Operator {
        self.dynamic = Some(form);
        self
    }

    /// Activations of one direction, unless an attribute names others.
    pub(super) const fn activations(mut self, names: &'static [&'static str]) -> Operator {
        self.activations = names;
        self
    }

    /// Changed its form or meaning at these opsets, in ascending order.
    pub(super) const fn changed(mut self, changes: &'static [(i64, Change)]) -> Operator {
        self.changes = changes;
        self
    }

    /// Infers the first output by this rule.
    pub(super) const fn infers(
        mut self,
        rule: fn(&ShapeContext) -> Option<InferredValue>,
    ) -> Operator {
        self.shape = ShapeRule::First(rule);
        self
    }

    /// Infers all outputs by this rule.
    pub(super) const fn infers_all(
        mut self,
        rule: fn(&ShapeContext) -> Vec<Option<InferredValue>>,
    ) -> Operator {
        self.shape = ShapeRule::All(rule);
        self
    }

    /// The first output has type and shape of the first input.
    pub(super) const fn infers_same(mut self) -> Operator {
        self.shape = SAME;
        self
    }

    /// Computes elements of small integer and bool values.
    pub(super) const fn integers(mut self, compute: OfIntegers) -> Operator {
        self.arithmetic.0 = Some(compute);
        self
    }

    /// Reduces all elements of small integer values to one.
    pub(super) const fn reduces_integers(mut self, reduce: Reduction) -> Operator {
        self.reduces = Some(reduce);
        self
    }

    /// Computes elements of small `f32` values.
    pub(super) const fn floats(mut self, compute: OfFloats) -> Operator {
        self.arithmetic.1 = Some(compute);
        self
    }

    /// Requires this number of first inputs.
    pub(super) const fn requires(mut self, inputs: usize) -> Operator {
        self.inputs.least = inputs;
        self
    }

    /// Allows this number of inputs.
    pub(super) const fn at_most(mut self, inputs: usize) -> Operator {
        self.inputs.most = inputs;
        self
    }

    /// Requires one element in these inputs.
    pub(super) const fn scalars(mut self, slots: &'static [usize]) -> Operator {
        self.inputs.scalars = slots;
        self
    }

    /// Requires a least number of axes of these inputs.
    pub(super) const fn ranks(mut self, ranks: &'static [(usize, usize)]) -> Operator {
        self.inputs.ranks = ranks;
        self
    }

    /// Requires integers in the second input.
    pub(super) const fn integer_list(mut self) -> Operator {
        self.inputs.integers = true;
        self
    }

    /// Refuses attributes that became inputs at these opsets.
    pub(super) const fn moved(mut self, attributes: &'static [(&'static str, i64)]) -> Operator {
        self.inputs.moved = attributes;
        self
    }

    /// Checks attributes and constant inputs.
    pub(super) const fn checks(mut self, check: Check) -> Operator {
        self.check = Some(check);
        self
    }

    /// Checks that shapes fit each other.
    pub(super) const fn checks_shapes(mut self, check: Check) -> Operator {
        self.check_shapes = Some(check);
        self
    }

    /// True if the operator has the property.
    pub fn has(&self, property: Property) -> bool {
        self.properties.contains(property)
    }

    /// Reason why it stays float; `None` if it can be quantized.
    pub fn float_reason(&self) -> Option<&'static str> {
        self.treatment.is_none().then_some(self.reason)
    }
}
