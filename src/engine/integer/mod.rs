//! Compiler for quantized models: from QDQ graphs to integer regions.
//!
//! [`fuse`] takes a model with QuantizeLinear/DequantizeLinear pairs or integer operators, from any
//! tool, and the shapes of one run. Matched nodes become regions. Each region is one operator for
//! tract. Inside, it uses eight-bit integers, channels-last layout and one arena. Unmatched nodes
//! stay float and are listed with the reason.

mod constants;
mod decompose;
pub(super) mod matmul_nbits;
pub(super) mod operator;
mod pattern;
mod program;
mod qdq_propagation;
mod quantization;
pub(super) mod quantize_linear;
mod region;
pub(super) mod sub_byte;

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
use pattern::{ElementKind, Ir, IrValue, Operand, Operation, Step};
pub(super) use program::{Program, wake_ahead};

/// Data that tract's graph refers to but does not contain.
#[derive(Default)]
pub(super) struct GraphData {
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
    pub(super) data: GraphData,
    pub(super) nodes: Vec<FusedNode>,
    /// For each region and each of its steps, the index into `nodes`.
    pub(super) steps: Vec<Vec<usize>>,
}

/// True if the model contains anything to fuse.
pub(super) fn has_integers(model: &Model) -> bool {
    decompose::has_integers(model) || has_integer_operators(model)
}

/// True if the model has operators defined on integers. These run on integers in every mode.
pub(super) fn has_integer_operators(model: &Model) -> bool {
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
pub(super) fn decomposed(model: &Model) -> Cow<'_, Model> {
    let theirs = |node: &NodeProto| node.domain.as_deref() == Some(MICROSOFT);
    if !model.graph.nodes.iter().any(theirs) {
        return Cow::Borrowed(model);
    }
    let mut written = model.clone();
    match decompose::decompose(&mut written) {
        0 => Cow::Borrowed(model),
        _ => Cow::Owned(written),
    }
}

/// The model for float execution: integer operators become QDQ pairs, dequantized constants become
/// float constants.
pub(super) fn in_float(model: &Model, watched: &[String]) -> (Model, GraphData) {
    let mut model = model.clone();
    let blocks = matmul_nbits::replace(&mut model, watched);
    decompose::decompose(&mut model);
    sub_byte::widen(&mut model);
    constants::fold_quantized(&mut model, watched);
    constants::fold(&mut model, watched);
    let programs = Vec::new();
    (model, GraphData { programs, blocks })
}

/// Compiles all matches for inputs of these types and shapes.
pub(super) fn fuse(
    model: &Model,
    inputs: &[Tensor],
    watched: &[String],
    scope: Scope,
) -> Result<Fused, EngineError> {
    let original = model;
    let mut model = original.clone();
    let blocks = matmul_nbits::replace(&mut model, watched);
    decompose::decompose(&mut model);
    sub_byte::widen(&mut model);
    constants::fold_quantized(&mut model, watched);
    qdq_propagation::propagate(&mut model, watched);
    let types = super::infer_types_of(&model, inputs)?;
    let mut refused: HashMap<usize, String> = HashMap::new();
    loop {
        let ir = pattern::build_ir(&model, &types, watched, &refused, scope);
        let regions = region::regions(&model.graph, &ir, watched);
        let mut programs = Vec::with_capacity(regions.len());
        let before = refused.len();
        for region in &regions {
            match Program::new(&ir, region) {
                Ok(program) => programs.push(Arc::new(program)),
                Err(error) => {
                    let nodes = &ir.steps[error.step].nodes;
                    refused.extend(nodes.iter().map(|&node| (node, error.reason.clone())));
                }
            }
        }
        // A step that cannot be compiled runs in float, and the remaining steps are partitioned
        // again.
        if refused.len() == before {
            let data = GraphData { programs, blocks };
            let mut fused = assemble(model, &ir, &regions, data, (&types, watched))?;
            // Nodes that this compiler inserted are not listed.
            let titles: HashSet<&str> = original.graph.nodes.iter().map(NodeProto::title).collect();
            for node in &mut fused.nodes {
                node.fused.retain(|title| titles.contains(title.as_str()));
            }
            return Ok(fused);
        }
    }
}

/// The node list of a model without regions; one reason applies to all nodes.
pub(super) fn all_float(model: &Model, reason: &str) -> Vec<FusedNode> {
    let nodes = model.graph.nodes.iter();
    nodes
        .map(|node| float_node(node, reason, &BTreeMap::new()))
        .collect()
}

fn assemble(
    mut model: Model,
    ir: &Ir,
    regions: &[region::Region],
    data: GraphData,
    (types, watched): (&BTreeMap<String, TensorType>, &[String]),
) -> Result<Fused, EngineError> {
    let mut nodes = Vec::new();
    let mut steps = Vec::with_capacity(regions.len());
    let taken = ir
        .steps
        .iter()
        .flat_map(|step| step.nodes.iter().copied())
        .collect();
    for (place, (region, program)) in regions.iter().zip(&data.programs).enumerate() {
        let mut places = Vec::with_capacity(region.steps.len());
        for &index in &region.steps {
            places.push(nodes.len());
            let step = &ir.steps[index];
            nodes.push(integer_node(step, place, program.form(index), &model, ir));
        }
        steps.push(places);
    }
    for (index, reason) in &ir.floats {
        nodes.push(float_node(&model.graph.nodes[*index], reason, types));
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
    model.graph.remove_unused_except(watched);
    constants::fold(&mut model, watched);
    model.graph.remove_unused_except(watched);
    // `from_proto` sorts the nodes topologically.
    let model = Model::from_proto(model.to_proto()).map_err(|error| EngineError::Plan {
        detail: format!("the graph with integer regions is not valid: {error}"),
    })?;
    Ok(Fused {
        model,
        data,
        nodes,
        steps,
    })
}

fn type_name(value: Option<&IrValue>) -> String {
    match value.map(|value| value.kind) {
        Some(ElementKind::Byte { signed: true }) => "int8".into(),
        Some(ElementKind::Byte { signed: false }) => "uint8".into(),
        Some(ElementKind::Accumulator) => "int32".into(),
        Some(ElementKind::Float) | None => "float32".into(),
    }
}

fn integer_node(
    step: &Step,
    region: usize,
    form: Option<String>,
    model: &Model,
    ir: &Ir,
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
        Operand::Int16(name, int16) => {
            let value = ir.values.get(name);
            let shape = value.map(|value| value.shape.clone());
            (int16.type_name().to_owned(), shape.unwrap_or_default())
        }
        Operand::Int8(name, _) | Operand::Bytes(name) | Operand::Floats(name) => {
            let value = ir.values.get(name);
            let shape = value.map(|value| value.shape.clone());
            (type_name(value), shape.unwrap_or_default())
        }
    };
    let (mut inputs, input_shapes): (Vec<String>, _) = step.inputs.iter().map(value).unzip();
    if let (Operation::Where, Some(condition)) = (&step.operation, inputs.first_mut()) {
        *condition = DataType::Bool.name().to_owned();
    }
    let output = ir.values.get(&step.output);
    FusedNode {
        node: step.node.clone(),
        operator: step.operator.clone(),
        fused: titles.filter(|title| *title != step.node).collect(),
        operation: step.operation.name().to_owned(),
        region: Some(region),
        kernel: form,
        inputs,
        output: match step.int16 {
            Some(int16) => int16.type_name().to_owned(),
            None => type_name(output),
        },
        input_shapes,
        output_shape: output.map(|value| value.shape.clone()).unwrap_or_default(),
        reason: None,
    }
}

fn float_node(node: &NodeProto, reason: &str, types: &BTreeMap<String, TensorType>) -> FusedNode {
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
        operator: match node.is(matmul_nbits::OPERATOR) {
            true => matmul_nbits::REPLACED.to_owned(),
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
