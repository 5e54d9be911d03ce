//! Native operators: those that tract lacks, or that make it panic, as functions from inputs to
//! outputs.
//!
//! The output shape comes from the shape rules of `prepare`, so there is one rule for both. The
//! attributes have been validated before.

mod attention;
mod block_gather;
mod cumulative;
mod data_movement;
pub(super) mod gate_functions;
mod gate_weights;
mod grid;
mod group_query;
mod kernel;
mod multi_head;
pub(super) mod recurrent;
mod recurrent_cells;
mod regions;
mod rms_norm;
mod rotary;
mod windows;

use tract_onnx::Onnx;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::infer::{InferenceResult, InferenceRulesOp, Solver, TensorProxy};
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::to_typed;

use kernel::NativeFunction::{Bytes, Floats, Several};
use kernel::NativeKernel;

use crate::datum;
use crate::operator_inputs::{BuildResult, integers};
use octet_graph::prepare::{InferredValue, Types, infer_node};
use octet_graph::{Dim, Node};

/// The native operators.
fn kernels() -> impl Iterator<Item = &'static NativeKernel> {
    let files: [&[NativeKernel]; 11] = [
        block_gather::KERNELS,
        cumulative::KERNELS,
        data_movement::KERNELS,
        grid::KERNELS,
        group_query::KERNELS,
        multi_head::KERNELS,
        recurrent::KERNELS,
        regions::KERNELS,
        rms_norm::KERNELS,
        rotary::KERNELS,
        windows::KERNELS,
    ];
    files.into_iter().flatten()
}

pub(super) fn register(onnx: &mut Onnx) {
    for kernel in kernels() {
        onnx.op_register.insert(kernel.known_as, build);
    }
}

fn build(context: &ParsingContext, node: &pb::NodeProto) -> BuildResult {
    let kernel = kernels().find(|kernel| kernel.known_as == node.op_type);
    let operator = NativeOperator {
        kernel: kernel.context("an operator without an implementation")?,
        opset: context.onnx_operator_set_version,
        outputs: named(&node.output).count(),
        node: Arc::default(),
    };
    Ok((Box::new(operator), vec![]))
}

/// The outputs or inputs that are not omitted.
fn named(names: &[String]) -> impl Iterator<Item = &String> {
    names.iter().filter(|name| !name.is_empty())
}

/// The place of a slot among those that are not omitted; `None` if the slot is.
fn place(names: &[String], slot: usize) -> Option<usize> {
    let given = names.get(slot).is_some_and(|name| !name.is_empty());
    given.then(|| named(&names[..slot]).count())
}

/// One node; its attributes are added after parsing.
#[derive(Clone, Debug)]
pub(crate) struct NativeOperator {
    kernel: &'static NativeKernel,
    opset: i64,
    /// Number of named outputs.
    outputs: usize,
    pub(crate) node: Arc<Node>,
}

impl NativeOperator {
    /// The operator with the attributes of its node.
    pub(crate) fn of(&self, mut node: Node) -> NativeOperator {
        node.op_type = self.kernel.operator.to_owned();
        NativeOperator {
            node: Arc::new(node),
            ..self.clone()
        }
    }
}

impl PartialEq for NativeOperator {
    fn eq(&self, other: &NativeOperator) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }
}

impl Eq for NativeOperator {}

/// Element type and shape of an output.
type OutputFact = (DatumType, TVec<TDim>);

/// The known facts of an input.
struct KnownInput {
    element: DatumType,
    shape: TVec<TDim>,
    value: Option<Arc<Tensor>>,
}

/// A longer list doesn't determine a shape.
const MAX_SHAPE_LENGTH: usize = 64;

impl NativeOperator {
    /// The element type and the shape of each named output.
    fn output_types(&self, facts: &[KnownInput]) -> TractResult<TVec<OutputFact>> {
        let &NativeKernel {
            operator, function, ..
        } = self.kernel;
        let of_floats = facts
            .first()
            .is_some_and(|x| x.element == f32::datum_type());
        ensure!(
            of_floats
                || !matches!(function, Floats(_)) && facts.iter().all(|one| one.element.is_copy()),
            "{operator} supports 32-bit floats only"
        );
        let mut types = Types::new();
        for (name, one) in named(&self.node.input).zip(facts) {
            let element = datum::element_type(one.element);
            let shape = one.shape.iter().map(datum::dim).collect();
            let mut known = InferredValue::new(
                element.context("its input has an element type that ONNX does not define")?,
                Some(shape),
            );
            let listed = one
                .value
                .as_ref()
                .filter(|value| value.len() <= MAX_SHAPE_LENGTH);
            let listed = listed.and_then(|value| integers(value).ok());
            known.integers = listed.map(|list| list.into_iter().map(Some).collect());
            types.insert(name.clone(), known);
        }
        let mut inferred = infer_node(&self.node, &types);
        inferred.resize(inferred.len().max(self.node.output.len()), None);
        let all = self.node.output.iter().zip(inferred);
        all.filter(|(name, _)| !name.is_empty())
            .map(|(_, made)| {
                let made = made.and_then(|known| Some((known.element, known.shape?)));
                let (element, shape) = made.with_context(|| {
                    format!("the output shape of {operator} does not follow from its inputs")
                })?;
                let mut elements = facts.iter().map(|one| one.element);
                let element = elements.find(|&one| datum::element_type(one) == Some(element));
                let element = element
                    .context("its output has an element type that none of its inputs has")?;
                let sizes = shape.iter().map(|dim| match dim {
                    Dim::Known(size) => Some(size.to_dim()),
                    Dim::Named(name) => {
                        let mut all = facts.iter().flat_map(|one| &one.shape);
                        all.find(|dim| dim.to_string() == *name).cloned()
                    }
                    Dim::Unknown => None,
                });
                let sizes: Option<TVec<TDim>> = sizes.collect();
                let sizes = sizes.with_context(|| {
                    format!("the output shape of {operator} depends on values of the run")
                })?;
                Ok((element, sizes))
            })
            .collect()
    }
}

/// Arguments of a native operator.
struct NativeCall<'a> {
    node: &'a Node,
    opset: i64,
    inputs: &'a [TValue],
    /// The shape of the output.
    output_shape: &'a [usize],
}

impl<'a> NativeCall<'a> {
    /// An input, unless it is omitted.
    fn input(&self, slot: usize) -> Option<&'a Tensor> {
        let place = place(&self.node.input, slot)?;
        self.inputs.get(place).map(|value| &**value)
    }

    fn tensor(&self, slot: usize) -> TractResult<&'a Tensor> {
        let input = self.input(slot);
        input.with_context(|| format!("its input {slot} is missing"))
    }

    fn floats(&self, slot: usize) -> TractResult<&'a [f32]> {
        self.tensor(slot)?.try_as_plain_ram()?.as_slice()
    }

    /// The shape of an input with `RANK` axes.
    fn sizes<const RANK: usize>(&self, slot: usize) -> TractResult<[usize; RANK]> {
        let shape = self.tensor(slot)?.shape();
        let sizes = shape.try_into().ok();
        sizes.with_context(|| format!("its input {slot} of shape {shape:?} must have {RANK} axes"))
    }

    fn integers(&self, slot: usize) -> TractResult<Vec<i64>> {
        integers(self.tensor(slot)?)
    }

    /// The floats of an input, unless it is omitted.
    fn optional_floats(&self, slot: usize) -> TractResult<Option<&'a [f32]>> {
        let given = self.input(slot).is_some();
        given.then(|| self.floats(slot)).transpose()
    }

    /// The place of an output among the named ones.
    fn output_place(&self, slot: usize) -> Option<usize> {
        place(&self.node.output, slot)
    }

    /// Fills an output with these floats, if it is named.
    fn fill(&self, made: &mut [Tensor], slot: usize, floats: &[f32]) -> TractResult<()> {
        let Some(place) = self.output_place(slot) else {
            return Ok(());
        };
        let mut output = made[place].try_as_plain_ram_mut()?;
        let output = output.as_slice_mut::<f32>()?;
        ensure!(
            output.len() == floats.len(),
            "its output {slot} has another size than its inputs make it"
        );
        output.copy_from_slice(floats);
        Ok(())
    }

    /// True if the attribute is set to another number than 0.
    fn is_set(&self, attribute: &str) -> bool {
        self.node.int(attribute).unwrap_or(0) != 0
    }
}

impl Op for NativeOperator {
    fn name(&self) -> StaticName {
        self.kernel.operator.into()
    }

    op_as_typed_op!();
}

impl EvalOp for NativeOperator {
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let facts: Vec<KnownInput> = inputs
            .iter()
            .map(|value| KnownInput {
                element: value.datum_type(),
                shape: value.shape().iter().map(|size| size.to_dim()).collect(),
                value: (value.len() <= MAX_SHAPE_LENGTH).then(|| value.clone().into_arc_tensor()),
            })
            .collect();
        let mut made: TVec<Tensor> = tvec!();
        for (element, sizes) in self.output_types(&facts)? {
            let sizes = sizes.iter().map(TDim::to_usize);
            let sizes = sizes.collect::<Result<TVec<usize>, _>>()?;
            made.push(Tensor::zero_dt(element, &sizes)?);
        }
        let first = made.first_mut().context("it has no output")?;
        let shape: TVec<usize> = first.shape().into();
        let call = NativeCall {
            node: &self.node,
            opset: self.opset,
            inputs: &inputs,
            output_shape: &shape,
        };
        match self.kernel.function {
            Floats(function) => function(&call, first.try_as_plain_ram_mut()?.as_slice_mut()?)?,
            Bytes(function) => function(&call, first.try_as_plain_ram_mut()?.as_bytes_mut())?,
            Several(function) => function(&call, &mut made)?,
        }
        Ok(made.into_iter().map(Tensor::into_tvalue).collect())
    }
}

impl TypedOp for NativeOperator {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let facts: Vec<KnownInput> = inputs
            .iter()
            .map(|fact| KnownInput {
                element: fact.datum_type,
                shape: fact.shape.to_tvec(),
                value: fact.konst.clone(),
            })
            .collect();
        let outputs = self.output_types(&facts)?.into_iter();
        Ok(outputs
            .map(|(element, sizes)| element.fact(sizes))
            .collect())
    }

    as_op!();
}

impl InferenceRulesOp for NativeOperator {
    fn nboutputs(&self) -> TractResult<usize> {
        Ok(self.outputs)
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        let types = inputs.iter().map(|input| &input.datum_type);
        solver.given_all(types, move |solver, types: Vec<DatumType>| {
            let shapes = inputs.iter().map(|input| &input.shape);
            solver.given_all(shapes, move |solver, shapes: Vec<TVec<TDim>>| {
                // Places of these slots among the inputs that are not omitted.
                let slots = self.kernel.shape_slots().iter();
                let places = slots.filter_map(|&slot| place(&self.node.input, slot));
                let places: TVec<usize> = places.collect();
                let determining = places.iter().filter_map(|&place| inputs.get(place));
                let types = types.clone();
                solver.given_all(
                    determining.map(|input| &input.value).collect::<Vec<_>>(),
                    move |solver, mut values: Vec<Arc<Tensor>>| {
                        let mut facts = Vec::with_capacity(types.len());
                        for (at, (element, shape)) in types.iter().zip(&shapes).enumerate() {
                            let tells = places.contains(&at);
                            facts.push(KnownInput {
                                element: *element,
                                shape: shape.clone(),
                                value: tells.then(|| values.remove(0)),
                            });
                        }
                        // The rule runs again when more is known.
                        let Ok(types) = self.output_types(&facts) else {
                            return Ok(());
                        };
                        for (output, (element, shape)) in outputs.iter().zip(types) {
                            solver.equals(&output.datum_type, element)?;
                            solver.equals(&output.shape, shape)?;
                        }
                        Ok(())
                    },
                )
            })
        })
    }

    as_op!();
    to_typed!();
}
