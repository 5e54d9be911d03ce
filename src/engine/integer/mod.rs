//! Compiler for quantized models: from QDQ graphs to integer regions.
//!
//! [`fuse`] takes a model with QuantizeLinear/DequantizeLinear pairs or integer operators, from any
//! tool, and the shapes of one run. Matched nodes become regions. Each region is one operator for
//! tract. Inside, it uses eight-bit integers, channels-last layout and one arena. Unmatched nodes
//! stay float and are listed with the reason.

pub(super) mod blocks;
mod constants;
mod expand;
pub(super) mod few;
pub(super) mod linear;
pub(super) mod operator;
mod pattern;
mod program;
mod quantization;
mod region;
mod spread;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use octet_kernels::int8::BlockWeights;
use serde::Serialize;

use super::EngineError;
use crate::graph::{Dim, MICROSOFT, Model, TensorType};
use crate::onnx::schema::{AttributeProto, DataType, NodeProto};
use crate::tensor::Tensor;
pub(super) use pattern::Scope;
use pattern::{Kind, Network, Operand, Operation, Step, Value};
pub(super) use program::{Program, call_ahead};

/// Data that tract's graph refers to but does not contain.
#[derive(Default)]
pub(super) struct Beside {
    /// Programs of the integer regions.
    pub(super) programs: Vec<Arc<Program>>,
    /// Weights of the block-wise products.
    pub(super) blocks: Vec<Arc<BlockWeights>>,
}

/// Execution of one node of a quantized model.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FusedNode {
    /// Display name of the node.
    pub node: String,
    /// Operator of the node.
    pub operator: String,
    /// Nodes that run as part of it: Relu, QuantizeLinear and the like.
    pub fused: Vec<String>,
    /// Operation inside a region; empty for a float node.
    pub operation: String,
    /// Index of its region.
    pub region: Option<usize>,
    /// ISA and algorithm of the kernel, for kernels with variants.
    pub kernel: Option<String>,
    /// Element types of the inputs.
    pub inputs: Vec<String>,
    /// Element type of the output.
    pub output: String,
    /// Shapes of the inputs.
    pub input_shapes: Vec<Vec<usize>>,
    /// Shape of the output.
    pub output_shape: Vec<usize>,
    /// Reason for the fallback to float; `None` for integer nodes.
    pub reason: Option<String>,
}

/// A model with one node per region, and the data of these nodes.
pub(super) struct Fused {
    pub(super) model: Model,
    pub(super) beside: Beside,
    pub(super) nodes: Vec<FusedNode>,
    /// For each region and each of its steps, the index into `nodes`.
    pub(super) steps: Vec<Vec<usize>>,
}

/// True if the model contains anything to fuse.
pub(super) fn has_integers(model: &Model) -> bool {
    expand::has_integers(model) || has_defined(model)
}

/// True if the model has operators defined on integers. These run on integers in every mode.
pub(super) fn has_defined(model: &Model) -> bool {
    let defined = [
        "DynamicQuantizeLinear",
        "MatMulInteger",
        "ConvInteger",
        "DynamicQuantizeMatMul",
        "MatMulIntegerToFloat",
    ];
    let mut nodes = model.graph.nodes.iter();
    nodes.any(|node| defined.contains(&node.op_type.as_deref().unwrap_or_default()))
}

/// Rewrites ONNX Runtime's own operators as ONNX operators, which tract knows. Value names stay the
/// same.
pub(super) fn written_out(model: &Model) -> Cow<'_, Model> {
    let theirs = |node: &NodeProto| node.domain.as_deref() == Some(MICROSOFT);
    if !model.graph.nodes.iter().any(theirs) {
        return Cow::Borrowed(model);
    }
    let mut written = model.clone();
    match expand::expand(&mut written) {
        0 => Cow::Borrowed(model),
        _ => Cow::Owned(written),
    }
}

/// The model for float execution: integer operators become QDQ pairs, dequantized constants become
/// float constants.
pub(super) fn in_float(model: &Model, watched: &[String]) -> (Model, Beside) {
    let mut model = model.clone();
    let blocks = blocks::replace(&mut model, watched);
    expand::expand(&mut model);
    few::widen(&mut model);
    constants::fold_quantized(&mut model, watched);
    constants::fold(&mut model, watched);
    let programs = Vec::new();
    (model, Beside { programs, blocks })
}

/// Compiles all matches for inputs of these types and shapes.
pub(super) fn fuse(
    model: &Model,
    inputs: &[Tensor],
    watched: &[String],
    scope: Scope,
) -> Result<Fused, EngineError> {
    let given = model;
    let mut model = given.clone();
    let blocks = blocks::replace(&mut model, watched);
    expand::expand(&mut model);
    few::widen(&mut model);
    constants::fold_quantized(&mut model, watched);
    spread::spread(&mut model, watched);
    let types = super::infer_types_of(&model, inputs)?;
    let mut refused: HashMap<usize, String> = HashMap::new();
    loop {
        let network = pattern::network(&model, &types, watched, &refused, scope);
        let regions = region::regions(&model.graph, &network, watched);
        let mut programs = Vec::with_capacity(regions.len());
        let before = refused.len();
        for region in &regions {
            match Program::new(&network, region) {
                Ok(program) => programs.push(Arc::new(program)),
                Err(error) => {
                    let nodes = &network.steps[error.step].nodes;
                    refused.extend(nodes.iter().map(|&node| (node, error.reason.clone())));
                }
            }
        }
        // A step that cannot be compiled runs in float, and the remaining steps are partitioned
        // again.
        if refused.len() == before {
            let beside = Beside { programs, blocks };
            let mut fused = finished(model, &network, &regions, beside, (&types, watched))?;
            // Nodes that this compiler inserted are not listed.
            let titles: HashSet<&str> = given.graph.nodes.iter().map(NodeProto::title).collect();
            for node in &mut fused.nodes {
                node.fused.retain(|title| titles.contains(title.as_str()));
            }
            return Ok(fused);
        }
    }
}

/// The node list of a model without regions; one reason applies to all nodes.
pub(super) fn unfused(model: &Model, reason: &str) -> Vec<FusedNode> {
    let nodes = model.graph.nodes.iter();
    nodes
        .map(|node| in_words(node, reason, &BTreeMap::new()))
        .collect()
}

fn finished(
    mut model: Model,
    network: &Network,
    regions: &[region::Region],
    beside: Beside,
    (types, watched): (&BTreeMap<String, TensorType>, &[String]),
) -> Result<Fused, EngineError> {
    let mut nodes = Vec::new();
    let mut steps = Vec::with_capacity(regions.len());
    let taken = network
        .steps
        .iter()
        .flat_map(|step| step.nodes.iter().copied())
        .collect();
    for (place, (region, program)) in regions.iter().zip(&beside.programs).enumerate() {
        let mut places = Vec::with_capacity(region.steps.len());
        for &index in &region.steps {
            places.push(nodes.len());
            let step = &network.steps[index];
            nodes.push(listed(step, place, program.form(index), &model, network));
        }
        steps.push(places);
    }
    for (index, reason) in &network.floats {
        nodes.push(in_words(&model.graph.nodes[*index], reason, types));
    }
    model.graph.remove_nodes(&taken);
    for (place, region) in regions.iter().enumerate() {
        let name = |list: &[String]| list.iter().map(String::clone).collect();
        model.graph.nodes.push(NodeProto {
            name: Some(format!("{}/{place}", operator::OPERATOR)),
            op_type: Some(operator::OPERATOR.into()),
            input: name(&region.inputs),
            output: name(&region.outputs),
            attribute: vec![AttributeProto::int(operator::PLACE, place as i64)],
            ..NodeProto::default()
        });
    }
    model.graph.sweep_around(watched);
    constants::fold(&mut model, watched);
    model.graph.sweep_around(watched);
    // `from_proto` sorts the nodes topologically.
    let model = Model::from_proto(model.to_proto()).map_err(|error| EngineError::Plan {
        detail: format!("the integer regions don't fit the graph: {error}"),
    })?;
    Ok(Fused {
        model,
        beside,
        nodes,
        steps,
    })
}

fn type_name(value: Option<&Value>) -> String {
    match value.map(|value| value.kind) {
        Some(Kind::Byte { signed: true }) => "int8".into(),
        Some(Kind::Byte { signed: false }) => "uint8".into(),
        Some(Kind::Sum) => "int32".into(),
        Some(Kind::Float) | None => "float32".into(),
    }
}

fn listed(
    step: &Step,
    region: usize,
    form: Option<String>,
    model: &Model,
    network: &Network,
) -> FusedNode {
    let titles = step
        .nodes
        .iter()
        .map(|&node| model.graph.nodes[node].title().to_owned());
    let value = |operand: &Operand| match operand {
        Operand::Constant(constant) => (
            constant.quantization.type_name().to_owned(),
            constant.shape.clone(),
        ),
        Operand::Reals(shape, _) => ("float32".to_owned(), shape.clone()),
        Operand::Wide(name, wide) => {
            let value = network.values.get(name);
            let shape = value.map(|value| value.shape.clone());
            (wide.type_name().to_owned(), shape.unwrap_or_default())
        }
        Operand::Integers(name, _) | Operand::Bytes(name) | Operand::Floats(name) => {
            let value = network.values.get(name);
            let shape = value.map(|value| value.shape.clone());
            (type_name(value), shape.unwrap_or_default())
        }
    };
    let (mut inputs, input_shapes): (Vec<String>, _) = step.inputs.iter().map(value).unzip();
    if let (Operation::Choice, Some(condition)) = (&step.operation, inputs.first_mut()) {
        *condition = DataType::Bool.name().to_owned();
    }
    let output = network.values.get(&step.output);
    FusedNode {
        node: step.node.clone(),
        operator: step.operator.clone(),
        fused: titles.filter(|title| *title != step.node).collect(),
        operation: step.operation.name().to_owned(),
        region: Some(region),
        kernel: form,
        inputs,
        output: match step.wide {
            Some(wide) => wide.type_name().to_owned(),
            None => type_name(output),
        },
        input_shapes,
        output_shape: output.map(|value| value.shape.clone()).unwrap_or_default(),
        reason: None,
    }
}

fn in_words(node: &NodeProto, reason: &str, types: &BTreeMap<String, TensorType>) -> FusedNode {
    let size = |dim: &Dim| match dim {
        Dim::Known(size) => *size,
        _ => 0,
    };
    let known = |name: &String| {
        let found = types.get(name);
        let shape = found.and_then(|found| found.shape.as_ref());
        (
            found.map_or("unknown".to_owned(), |found| {
                found.element.name().to_owned()
            }),
            shape
                .map(|shape| shape.iter().map(size).collect())
                .unwrap_or_default(),
        )
    };
    let (inputs, input_shapes) = node
        .input
        .iter()
        .filter(|n| !n.is_empty())
        .map(known)
        .unzip();
    let (output, output_shape) = node.output.first().map(known).unwrap_or_default();
    FusedNode {
        node: node.title().to_owned(),
        operator: match node.is(blocks::OPERATOR) {
            true => blocks::REPLACED.to_owned(),
            false => node.operator(),
        },
        fused: Vec::new(),
        operation: String::new(),
        region: None,
        kernel: None,
        inputs,
        output,
        input_shapes,
        output_shape,
        reason: Some(reason.to_owned()),
    }
}
