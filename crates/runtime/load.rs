//! Translates our model to tract's: the graph without weights is parsed, then the weights are
//! added.
//!
//! tract reads an older schema, so it gets only nodes, inputs and outputs, encoded again without
//! the initializers. The initializers appear to tract as unknown sources. A run replaces each by a
//! constant. Type inference replaces each by its type and shape alone, so no weight is copied.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use prost::Message;
use tract_onnx::pb;
use tract_onnx::prelude::{InferenceModel, OutletId};
use tract_onnx::tract_hir::infer::{DimFact, InferenceFact, ShapeFactoid};
use tract_onnx::tract_hir::internal::{DatumType, IntoArcTensor, TDim, Tensor, TractResult};
use tract_onnx::tract_hir::ops::konst::Const;
use tract_onnx::tract_hir::ops::unimpl::UnimplementedOp;

use super::int8::matmul_nbits::{self, BlockProduct};
use super::int8::region::{self, RegionOperator};
use super::int8::{GraphData, quantize_linear};
use super::invariant::EngineInvariant;
use super::operators::NativeOperator;
use super::weights::{self, SharedWeight};
use super::{
    EngineError, Watched, chain, cut_points, observe, operators, tract_graph, validate, values,
};
use octet_graph::operators::{ChannelRole, Operator};
use octet_graph::prepare::{InferredValue, Types, fold_shapes};
use octet_graph::{Dim, Model, Node, Use};
use octet_onnx::in_memory;
use octet_onnx::schema::{DataType, TensorProto};

/// Constants up to this size are always passed with their values: shapes and axes steer the
/// inference.
const SMALL: usize = 4096;

/// The form in which tract gets the weights.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WeightMode {
    /// With their values. Large weights of products, sums and row lookups share the model's bytes;
    /// all others are copied into tract's tensors. Weights of convolutions on our kernels share the
    /// bytes too, except the smallest.
    Values {
        /// Our float kernels run the convolutions.
        kernels: bool,
    },
    /// Only type and shape, except of small constants.
    Types,
}

/// A model in tract's inference form, with the outlet of each named value.
pub(super) struct Loaded {
    pub(super) model: InferenceModel,
    pub(super) outlets: HashMap<String, OutletId>,
    /// Types that our own shape rules derive from the inputs.
    pub(super) types: Types,
}

/// Loads a prepared model, for inputs of these shapes where they are known. It places an observer
/// behind each value of `watched` that a node computes, and connects the programs of integer
/// regions and the block-wise products.
///
/// tract gets sizes as numbers or not at all. With symbolic sizes it computes for minutes where
/// shapes don't fit.
pub(super) fn load(
    model: &Model,
    watched: &[Watched],
    weights: WeightMode,
    beside: &GraphData,
    inputs: Option<&[in_memory::Tensor]>,
) -> Result<Loaded, EngineError> {
    let plan_error = |error| EngineError::Plan {
        detail: chain(&error),
    };
    let types = validate::validate(model, inputs)?;
    let model = match inputs {
        Some(_) => fold_shapes(model, &types, watched),
        None => Cow::Borrowed(model),
    };
    let model = &*model;
    let tract_graph = tract_graph::view(model, watched);
    let decoded =
        pb::ModelProto::decode(tract_graph.encode_to_vec().as_slice()).map_err(|error| {
            EngineError::Plan {
                detail: error.to_string(),
            }
        })?;
    let mut onnx = tract_onnx::onnx().with_ignore_value_info(true);
    onnx.op_register.insert(observe::OPERATOR, observe::build);
    onnx.op_register.insert(octet_int8::REGION, region::build);
    onnx.op_register
        .insert(octet_int8::BLOCK_PRODUCT, matmul_nbits::build);
    operators::register(&mut onnx, weights == WeightMode::Types);
    quantize_linear::register(&mut onnx);
    let parsed = onnx.parse(&decoded, None).map_err(plan_error)?;
    let mut tract = parsed.model;
    reject_unknown(&tract)?;
    for node in &mut tract.nodes {
        if let Some(region) = node.op_as::<RegionOperator>() {
            let (place, program) = (region.place, beside.programs.get(region.place).cloned());
            let unread = node
                .outputs
                .iter()
                .map(|output| output.successors.is_empty());
            node.op = Box::new(RegionOperator {
                place,
                program,
                unread_outputs: unread.collect(),
            });
        } else if let Some(product) = node.op_as::<BlockProduct>() {
            let weights = beside.blocks.get(product.place).cloned();
            node.op = Box::new(BlockProduct {
                weights,
                ..product.clone()
            });
        } else if let Some(native) = node.op_as::<NativeOperator>() {
            let nodes = tract_graph.graph.iter().flat_map(|graph| &graph.node);
            let mut original =
                nodes.filter(|original| original.name.as_deref() == Some(&node.name));
            let original = original.next().cloned();
            let native = native.of(original.map(Node::from_proto).unwrap_or_default());
            node.op = Box::new(native);
        }
    }
    for name in &parsed.unresolved_inputs {
        let outlet = parsed.outlets_by_name[name];
        let tensor = model
            .graph
            .initializers
            .get(name)
            .ok_or_else(|| EngineInvariant::Producer(name.clone()))?;
        if let WeightMode::Values { kernels } = weights
            && let Some(weight) = shared(model, tensor, kernels)
        {
            let fact = InferenceFact::dt_shape(DatumType::F32, dims(tensor));
            tract.nodes[outlet.node].op = Box::new(weight);
            tract.set_outlet_fact(outlet, fact).map_err(plan_error)?;
            continue;
        }
        set_constant(&mut tract, outlet, tensor, weights)?;
    }
    let outlets: Vec<OutletId> = model
        .graph
        .inputs
        .iter()
        .filter_map(|input| parsed.outlets_by_name.get(input.name.as_deref()?).copied())
        .collect();
    tract.set_input_outlets(&outlets).map_err(plan_error)?;
    for (index, input) in inputs.unwrap_or_default().iter().enumerate() {
        let fact = InferenceFact::dt_shape(values::datum_type(input), input.shape());
        tract.set_input_fact(index, fact).map_err(plan_error)?;
    }
    if weights == WeightMode::Types {
        let made = model.graph.nodes().iter().flat_map(|node| &node.output);
        for name in made {
            if let (Some(&outlet), Some(known)) =
                (parsed.outlets_by_name.get(name), types.get(name))
            {
                let fact = to_fact(known);
                tract.set_outlet_fact(outlet, fact).map_err(plan_error)?;
            }
        }
    }
    Ok(Loaded {
        model: tract,
        outlets: parsed.outlets_by_name,
        types,
    })
}

/// Replaces sizes that follow from the shapes of the inputs by constants, and also the values that
/// they are computed from. Other floats stay: tract would drop an operator whose result it knows,
/// and an observer behind that must run.
fn fold_shapes<'a>(model: &'a Model, types: &Types, watched: &[Watched]) -> Cow<'a, Model> {
    let watched: HashSet<&str> = watched
        .iter()
        .flat_map(|one| std::iter::once(&one.value).chain(&one.beside))
        .map(String::as_str)
        .collect();
    let shape_values = cut_points::shape_values(model.graph.nodes().iter());
    let stays = |name: &str| {
        let known = types.get(name);
        let floats = known.is_some_and(|known| known.element == DataType::Float);
        floats && (watched.contains(name) || !shape_values.contains(name))
    };
    let found = fold_shapes::known_results(&model.graph, types, stays);
    if found.is_empty() {
        return Cow::Borrowed(model);
    }
    let mut folded = model.clone();
    fold_shapes::replace_by_constants(&mut folded.graph, found);
    Cow::Owned(folded)
}

/// A type of our shape rules as tract's fact; a symbolic size stays open.
fn to_fact(known: &InferredValue) -> InferenceFact {
    let mut fact = InferenceFact::new();
    // tract has its own type for sizes, where ONNX has int64.
    if known.element != DataType::Int64
        && let Ok(theirs) = pb::tensor_proto::DataType::try_from(known.element as i32)
        && let Ok(datum) = DatumType::try_from(theirs)
    {
        fact = fact.with_datum_type(datum);
    }
    if let Some(shape) = &known.shape {
        let dim = |dim: &Dim| match dim {
            Dim::Known(size) => DimFact::from(TDim::from(*size)),
            _ => DimFact::default(),
        };
        fact = fact.with_shape(ShapeFactoid::closed(shape.iter().map(dim).collect()));
    }
    fact
}

/// The shared weight for this tensor, if products, additions or row lookups are its only readers
/// and it is large enough.
fn shared(model: &Model, tensor: &TensorProto, kernels: bool) -> Option<SharedWeight> {
    let raw = tensor.raw_data.as_ref()?;
    let name = tensor.name.as_deref()?;
    let readers = model.graph.consumers(name);
    let node = |reader: &Use| &model.graph.nodes()[reader.node];
    let reads_there = |reader: &Use| {
        let node = node(reader);
        match reader.input() {
            Some(0) if node.is("Gather") => node.int("axis").unwrap_or(0) == 0,
            Some(1) if is_layer(node) && !node.is("ConvTranspose") => true,
            _ => node.is("Add"),
        }
    };
    // Our kernels read the weights in place, which costs nothing.
    let least = match kernels && readers.iter().all(|reader| node(reader).is("Conv")) {
        true => SMALL,
        false => weights::MIN_SHARED_BYTES,
    };
    let wanted = raw.len() >= least
        && tensor.data_type == Some(DataType::Float as i32)
        && !readers.is_empty()
        && readers.iter().all(reads_there)
        && !model.graph.is_output(name);
    wanted.then(|| SharedWeight::new(raw.clone(), &dims(tensor)))?
}

/// True for operators whose second input is a weight between input and output channels.
fn is_layer(node: &Node) -> bool {
    matches!(Operator::of(node).channels, ChannelRole::Layer(_))
}

fn set_constant(
    tract: &mut InferenceModel,
    outlet: OutletId,
    tensor: &TensorProto,
    weights: WeightMode,
) -> Result<(), EngineError> {
    let plan_error = |error| EngineError::Plan {
        detail: chain(&error),
    };
    let bytes = tensor.raw_data.as_ref().map_or(0, bytes::Bytes::len);
    let datum = datum_type(tensor);
    if weights == WeightMode::Types && (bytes > SMALL || datum.is_err()) {
        let shape = dims(tensor);
        // tract has no integers below 8 bits; their readers may have a type nevertheless.
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

/// A constant as a tract tensor; copies its bytes once.
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
                "it has {} bytes, but its shape needs {wanted}",
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

fn reject_unknown(tract: &InferenceModel) -> Result<(), EngineError> {
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
