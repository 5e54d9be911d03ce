//! From our model to tract's: a light view of the graph, its weights handed over beside it.
//!
//! tract reads an older schema, so it is given only what it needs: nodes, inputs and outputs,
//! re-encoded without the initializers. Those appear to tract as unknown sources, and each is then
//! replaced by a constant (to run) or by a bare fact (to infer types: no weight is copied).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use prost::Message;
use tract_onnx::pb;
use tract_onnx::prelude::{InferenceModel, OutletId};
use tract_onnx::tract_hir::infer::InferenceFact;
use tract_onnx::tract_hir::internal::{DatumType, IntoArcTensor, Tensor, TractResult};
use tract_onnx::tract_hir::ops::konst::Const;
use tract_onnx::tract_hir::ops::unimpl::UnimplementedOp;

use super::integer::blocks::{self, Product};
use super::integer::operator::{self, Integers};
use super::integer::{Beside, linear};
use super::operators::Direct;
use super::weights::{self, Weight};
use super::{EngineError, Watched, chain, checks, observe, operators, steps};
use crate::graph::{MICROSOFT, Model, Uses};
use crate::onnx::schema::{
    AttributeProto, AttributeType, DataType, GraphProto, ModelProto, NodeProto, TensorProto,
    ValueInfoProto,
};

/// Constants up to this size are always given whole: shapes, axes and the like steer inference.
const SMALL: usize = 4096;

/// How the weights are given to tract.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Weights {
    /// Copied into tract's tensors, but for those of products, sums and tables of rows, which are shared: large ones, and of convolutions that our
    /// kernels run all but the smallest.
    Values {
        /// Whether they run convolutions.
        kernels: bool,
    },
    /// Only type and shape, but for small constants.
    Types,
}

/// A model in tract's first form, and where each named value is in it.
pub(super) struct Loaded {
    pub(super) model: InferenceModel,
    pub(super) outlets: HashMap<String, OutletId>,
}

/// Loads a prepared model for these inputs, where they are known, with an observer behind each value of `watched` that a node makes, and what its integer regions and
/// products with blocks run.
pub(super) fn load(
    model: &Model,
    watched: &[Watched],
    weights: Weights,
    beside: &Beside,
    inputs: Option<&[crate::tensor::Tensor]>,
) -> Result<Loaded, EngineError> {
    let plan_error = |error| EngineError::Plan {
        detail: chain(&error),
    };
    checks::check(model, inputs)?;
    let light = light_view(model, watched);
    let decoded = pb::ModelProto::decode(light.encode_to_vec().as_slice()).map_err(|error| {
        EngineError::Plan {
            detail: error.to_string(),
        }
    })?;
    let mut onnx = tract_onnx::onnx().with_ignore_value_info(true);
    onnx.op_register.insert(observe::OPERATOR, observe::build);
    onnx.op_register.insert(operator::OPERATOR, operator::build);
    onnx.op_register.insert(blocks::OPERATOR, blocks::build);
    operators::register(&mut onnx);
    onnx.op_register.insert("QuantizeLinear", linear::quantize);
    onnx.op_register
        .insert("DequantizeLinear", linear::dequantize);
    let parsed = onnx.parse(&decoded, None).map_err(plan_error)?;
    let mut tract = parsed.model;
    refuse_unknown(&tract)?;
    for node in &mut tract.nodes {
        if let Some(region) = node.op_as::<Integers>() {
            let (place, program) = (region.place, beside.programs.get(region.place).cloned());
            let unread = node
                .outputs
                .iter()
                .map(|output| output.successors.is_empty());
            node.op = Box::new(Integers {
                place,
                program,
                leaving: unread.collect(),
            });
        } else if let Some(product) = node.op_as::<Product>() {
            let weights = beside.blocks.get(product.place).cloned();
            node.op = Box::new(Product {
                weights,
                ..product.clone()
            });
        } else if let Some(direct) = node.op_as::<Direct>() {
            let nodes = light.graph.iter().flat_map(|graph| &graph.node);
            let mut said = nodes.filter(|said| said.name.as_deref() == Some(&node.name));
            let mut direct = direct.clone();
            direct.node = Arc::new(said.next().cloned().unwrap_or_default());
            node.op = Box::new(direct);
        }
    }
    let uses = model.graph.uses();
    for name in &parsed.unresolved_inputs {
        let outlet = parsed.outlets_by_name[name];
        let tensor = model
            .graph
            .initializers
            .get(name)
            .ok_or_else(|| EngineError::Plan {
                detail: format!("the value `{name}` is used but nothing makes it"),
            })?;
        if let Weights::Values { kernels } = weights
            && let Some(weight) = shared(model, &uses, tensor, kernels)
        {
            let fact = InferenceFact::dt_shape(DatumType::F32, dims(tensor));
            tract.nodes[outlet.node].op = Box::new(weight);
            tract.set_outlet_fact(outlet, fact).map_err(plan_error)?;
            continue;
        }
        give_constant(&mut tract, outlet, tensor, weights)?;
    }
    let inputs: Vec<OutletId> = model
        .graph
        .inputs
        .iter()
        .filter_map(|input| parsed.outlets_by_name.get(input.name.as_deref()?).copied())
        .collect();
    tract.set_input_outlets(&inputs).map_err(plan_error)?;
    Ok(Loaded {
        model: tract,
        outlets: parsed.outlets_by_name,
    })
}

/// The weight that a tensor is, of products, sums or rows that are looked up, if it is nothing else and worth to be shared.
fn shared(model: &Model, uses: &Uses, tensor: &TensorProto, kernels: bool) -> Option<Weight> {
    let raw = tensor.raw_data.as_ref()?;
    let name = tensor.name.as_deref()?;
    let readers = uses.consumers(name);
    let node = |&(node, _): &(usize, usize)| &model.graph.nodes[node];
    let reads_there = |reader: &(usize, usize)| {
        let node = node(reader);
        match reader.1 {
            0 if node.is("Gather") => node.int("axis").unwrap_or(0) == 0,
            1 if node.is("MatMul") || node.is("Gemm") || node.is("Conv") => true,
            _ => node.is("Add"),
        }
    };
    // Our kernels read weights where they lie, which costs nothing.
    let least = match kernels && readers.iter().all(|reader| node(reader).is("Conv")) {
        true => SMALL,
        false => weights::LEAST,
    };
    let wanted = raw.len() >= least
        && tensor.data_type == Some(DataType::Float as i32)
        && !readers.is_empty()
        && readers.iter().all(reads_there)
        && !uses.is_output(name);
    wanted.then(|| Weight::new(raw.clone(), &dims(tensor)))?
}

fn give_constant(
    tract: &mut InferenceModel,
    outlet: OutletId,
    tensor: &TensorProto,
    weights: Weights,
) -> Result<(), EngineError> {
    let plan_error = |error| EngineError::Plan {
        detail: chain(&error),
    };
    let bytes = tensor.raw_data.as_ref().map_or(0, bytes::Bytes::len);
    let datum = datum_type(tensor);
    if weights == Weights::Types && (bytes > SMALL || datum.is_err()) {
        let shape = dims(tensor);
        // tract has no integers of few bits; what reads them may have a type all the same.
        let fact = match datum {
            Ok(datum) => InferenceFact::dt_shape(datum, shape),
            Err(_) => InferenceFact::shape(shape),
        };
        return tract.set_outlet_fact(outlet, fact).map_err(plan_error);
    }
    let value = constant(tensor)?.into_arc_tensor();
    let fact = InferenceFact::try_from(&value).map_err(plan_error)?;
    tract.nodes[outlet.node].op = Box::new(Const::new(value).map_err(plan_error)?);
    tract.set_outlet_fact(outlet, fact).map_err(plan_error)
}

fn dims(tensor: &TensorProto) -> Vec<usize> {
    tensor
        .dims
        .iter()
        .map(|&d| usize::try_from(d).unwrap_or(0))
        .collect()
}

fn datum_type(tensor: &TensorProto) -> Result<DatumType, EngineError> {
    pb::tensor_proto::DataType::try_from(tensor.data_type.unwrap_or(0))
        .map_err(|error| error.to_string())
        .and_then(|t| DatumType::try_from(t).map_err(|error| error.to_string()))
        .map_err(|reason| EngineError::Constant {
            name: tensor.name.clone().unwrap_or_default(),
            reason,
        })
}

/// tract's tensor of a constant: one copy of its bytes.
pub(super) fn constant(tensor: &TensorProto) -> Result<Tensor, EngineError> {
    let named = |reason: String| EngineError::Constant {
        name: tensor.name.clone().unwrap_or_default(),
        reason,
    };
    let datum = datum_type(tensor)?;
    if let Some(raw) = tensor.raw_data.as_ref().filter(|_| datum.is_number()) {
        let shape = dims(tensor);
        let wanted = shape
            .iter()
            .product::<usize>()
            .saturating_mul(datum.size_of());
        if raw.len() != wanted {
            return Err(named(format!(
                "it holds {} bytes where its shape needs {wanted}",
                raw.len()
            )));
        }
        // SAFETY: every bit pattern is a value of a number type, and the length was checked.
        return unsafe { Tensor::from_raw_dt(datum, &shape, raw) }.map_err(|e| named(chain(&e)));
    }
    let theirs = pb::TensorProto::decode(tensor.encode_to_vec().as_slice())
        .map_err(|error| named(error.to_string()))?;
    let provider = tract_onnx::data_resolver::default();
    let loaded: TractResult<Tensor> = tract_onnx::tensor::load_tensor(&*provider, &theirs, None);
    loaded.map_err(|error| named(chain(&error)))
}

fn refuse_unknown(tract: &InferenceModel) -> Result<(), EngineError> {
    let unknown: BTreeSet<String> = tract
        .nodes
        .iter()
        .filter(|n| n.op_is::<UnimplementedOp>())
        .map(|n| {
            let name = n.op.name();
            let operator = name
                .trim_start_matches("Unimplemented(")
                .trim_end_matches(')');
            format!("{operator} (node `{}`)", n.name)
        })
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let more = unknown.len().saturating_sub(3);
    let mut operators = unknown.into_iter().take(3).collect::<Vec<_>>().join(", ");
    if more > 0 {
        operators.push_str(&format!(" and {more} more"));
    }
    Err(EngineError::UnknownOperators { operators })
}

/// The model without weights and declared inner types, with the observers put in.
fn light_view(model: &Model, watched: &[Watched]) -> ModelProto {
    let graph = &model.graph;
    let uses = graph.uses();
    let mut nodes = graph.nodes.clone();
    for (node, name) in nodes.iter_mut().zip(steps::unique_names(graph)) {
        node.name = Some(name);
        // tract goes by the name alone: what another domain has under it is another operator.
        let foreign = match node.domain.as_deref() {
            None | Some("" | "ai.onnx" | "ai.onnx.ml") => false,
            Some(MICROSOFT) => node.op_type.as_deref() == Some("Attention"),
            Some(_) => true,
        };
        if foreign {
            node.op_type = Some(node.operator());
        }
        // tract takes the pads where both are said, and ONNX Runtime what pads by itself.
        if node.text("auto_pad").is_some_and(|pad| pad != "NOTSET") {
            node.take("pads");
        }
    }
    let mut outputs = graph.outputs.clone();
    for output in outputs.iter_mut().filter_map(|o| o.name.as_mut()) {
        // tract looks an output up among what nodes make and inputs bring.
        if uses.producer(output).is_none() && graph.initializers.contains(output) {
            let copy = format!("{output}/copy");
            nodes.push(node("Identity", output, &copy));
            *output = copy;
        }
    }
    let mut observers = Vec::new();
    for (slot, Watched { value, beside }) in watched.iter().enumerate() {
        let made = uses.producer(value);
        let others = beside.iter().filter_map(|other| uses.producer(other));
        // Behind all that it sees; a value that is fed can be seen beside one that is made.
        let Some(producer) = made
            .filter(|_| beside.is_empty())
            .or(others.chain(made).max())
        else {
            continue;
        };
        let seen = format!("{value}/observed");
        let mut observer = node(observe::OPERATOR, value, &seen);
        observer.input.extend(beside.iter().cloned());
        observer.attribute.push(AttributeProto {
            name: Some("slot".into()),
            r#type: Some(AttributeType::Int as i32),
            i: Some(slot as i64),
            ..Default::default()
        });
        for &(consumer, input) in uses.consumers(value) {
            if let Some(name) = nodes[consumer].input.get_mut(input) {
                name.clone_from(&seen);
            }
        }
        for output in outputs.iter_mut().filter_map(|o| o.name.as_mut()) {
            if output == value {
                output.clone_from(&seen);
            }
        }
        // What only the observer reads would not be run: it leaves the graph, behind the model's own outputs.
        if uses.consumers(value).is_empty() && !uses.is_output(value) {
            outputs.push(ValueInfoProto {
                name: Some(seen.clone()),
                ..ValueInfoProto::default()
            });
        }
        observers.push((producer, observer));
    }
    // Right behind its producer, so that the order stays topological.
    observers.sort_by_key(|(producer, _)| *producer);
    let mut ordered = Vec::with_capacity(nodes.len() + observers.len());
    let mut waiting = observers.into_iter().peekable();
    for (index, node) in nodes.into_iter().enumerate() {
        ordered.extend(operators::in_order(node));
        while let Some((_, observer)) = waiting.next_if(|(producer, _)| *producer == index) {
            ordered.push(observer);
        }
    }
    ModelProto {
        ir_version: model.header().ir_version,
        opset_import: model.header().opset_import.clone(),
        graph: Some(GraphProto {
            node: ordered,
            input: graph.inputs.clone(),
            output: outputs,
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn node(operator: &str, input: &str, output: &str) -> NodeProto {
    NodeProto {
        name: Some(output.to_string()),
        op_type: Some(operator.to_string()),
        input: vec![input.to_string()],
        output: vec![output.to_string()],
        ..Default::default()
    }
}
