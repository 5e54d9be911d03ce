//! Compiler for quantized models: from QDQ graphs to integer regions.
//!
//! [`compile`] takes a model with QuantizeLinear/DequantizeLinear pairs or integer operators, from
//! any tool, and the shapes of one run. Matched nodes become regions. Each region is one operator
//! of the result. Inside, it uses eight-bit integers, channels-last layout and one arena. Unmatched
//! nodes stay float and are listed with the reason.
//!
//! This crate has no float engine. A [`FloatEvaluator`] runs the float nodes of which it makes
//! lookup tables.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(clippy::type_complexity)]

mod constants;
mod decompose;
mod error;
mod float_evaluator;
mod float_reason;
mod ir;
mod layout;
mod lower_region;
mod lowering;
mod operation;
mod operators;
mod pattern;
mod processor;
mod program;
mod qdq_propagation;
mod quantization;
mod region;
mod resize_geometry;
mod sub_byte;
mod table_functions;
#[cfg(test)]
mod test_graph;
mod values;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use octet_graph::{Attribute, Dim, GraphError, MICROSOFT, Model, Node, TensorType};

pub use error::{CompilerBug, ProgramError};
pub use float_evaluator::FloatEvaluator;
use ir::{Ir, IrStep};
use lower_region::LoweringError;
pub use operators::{BLOCK_PRODUCT, MATMUL_NBITS};
pub use pattern::Scope;
use pattern::matcher::MatcherInput;
pub use processor::Processor;
pub use program::{
    InstructionClock, OutputSlice, Program, RegionInput, cost_of_product, is_worker,
    parallel_operators, pieces, run_pieces, split_rows, threads, wake_ahead, with_pool,
    with_threads,
};
pub use resize_geometry::{ResizeError, ResizeSampling, ResizeTarget};
pub use sub_byte::quantized;
use values::IrOperand;
pub use values::{ElementKind, IrValue};

/// Operator name of a region in the result; exported models never contain it.
pub const REGION: &str = "OctetIntegers";

/// Attribute with the index of the region.
pub const PLACE: &str = "place";

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

/// A model with one node per region, and the programs of these nodes.
pub struct Fused {
    /// The model; its nodes [`REGION`] have the index of their program in [`PLACE`].
    pub model: Model,
    /// Programs of the integer regions.
    pub programs: Vec<Arc<Program>>,
    /// All nodes of the compiled model, with the way they run.
    pub nodes: Vec<FusedNode>,
    /// For each region and each of its steps, the index into `nodes`.
    pub steps: Vec<Vec<usize>>,
}

/// True if the model contains anything to fuse.
pub fn has_integers(model: &Model) -> bool {
    decompose::has_integers(model) || has_integer_operators(model)
}

/// True if the model has operators defined on integers. These run on integers in every mode.
pub fn has_integer_operators(model: &Model) -> bool {
    let mut nodes = model.graph.nodes().iter();
    nodes.any(|node| {
        let operator = node.op_type.as_str();
        operators::is_defined_on_integers(operator) || decompose::is_dynamic_product(operator)
    })
}

/// Rewrites ONNX Runtime's own operators as ONNX operators, which tract knows. Value names stay the
/// same.
pub fn decomposed(model: &Model) -> Cow<'_, Model> {
    let theirs = |node: &Node| node.domain.as_deref() == Some(MICROSOFT);
    if !model.graph.nodes().iter().any(theirs) {
        return Cow::Borrowed(model);
    }
    let mut written = model.clone();
    match decompose::decompose(&mut written) {
        0 => Cow::Borrowed(model),
        _ => Cow::Owned(written),
    }
}

/// Rewrites a model for float execution: integer operators become QDQ pairs, dequantized constants
/// become float constants.
pub fn rewrite_for_floats(model: &mut Model, watched: &[String]) {
    decompose::decompose(model);
    sub_byte::widen(model);
    constants::fold_quantized(model, watched);
    constants::fold(model, watched);
}

/// Rewrites a model in the form that [`compile`] takes: integer operators become QDQ pairs, which
/// are propagated across data movement.
pub fn rewrite_for_integers(model: &mut Model, watched: &[String]) {
    decompose::decompose(model);
    sub_byte::widen(model);
    constants::fold_quantized(model, watched);
    qdq_propagation::propagate(model, watched);
}

/// Compiles all matches of a [rewritten](rewrite_for_integers) model, for values of these types. The
/// products are those of the `processor`.
pub fn compile(
    model: Model,
    types: &BTreeMap<String, TensorType>,
    watched: &[String],
    (scope, processor): (Scope, Processor),
    floats: &dyn FloatEvaluator,
) -> Result<Fused, GraphError> {
    let mut refused: HashMap<usize, ProgramError> = HashMap::new();
    loop {
        let input = MatcherInput {
            model: &model,
            types,
            watched,
            floats,
            operators: operators::ALL,
        };
        let ir = pattern::build_ir(&input, scope, &refused);
        let regions = region::regions(&model.graph, &ir, watched);
        let mut programs = Vec::with_capacity(regions.len());
        let before = refused.len();
        for region in &regions {
            match lower_region::lower_region(&ir, region, processor) {
                Ok(program) => programs.push(Arc::new(program)),
                Err(LoweringError { step, error }) => {
                    let nodes = &ir.steps[step].nodes;
                    refused.extend(nodes.iter().map(|&node| (node, error.clone())));
                }
            }
        }
        // A step that cannot be compiled runs in float, and the remaining steps are partitioned
        // again.
        if refused.len() == before {
            return assemble(model, &ir, &regions, programs, (types, watched));
        }
    }
}

/// The node list of a model without regions; one reason applies to all nodes.
pub fn all_float(model: &Model, reason: &str) -> Vec<FusedNode> {
    let nodes = model.graph.nodes().iter();
    nodes
        .map(|node| float_node(node, reason, &BTreeMap::new()))
        .collect()
}

fn assemble(
    mut model: Model,
    ir: &Ir,
    regions: &[region::Region],
    programs: Vec<Arc<Program>>,
    (types, watched): (&BTreeMap<String, TensorType>, &[String]),
) -> Result<Fused, GraphError> {
    let mut nodes = Vec::new();
    let mut steps = Vec::with_capacity(regions.len());
    let taken = ir
        .steps
        .iter()
        .flat_map(|step| step.nodes.iter().copied())
        .collect();
    for (place, (region, program)) in regions.iter().zip(&programs).enumerate() {
        let mut places = Vec::with_capacity(region.steps.len());
        for &index in &region.steps {
            places.push(nodes.len());
            let step = &ir.steps[index];
            nodes.push(integer_node(step, place, program.form(index), &model, ir));
        }
        steps.push(places);
    }
    for (index, reason) in &ir.floats {
        nodes.push(float_node(
            &model.graph.nodes()[*index],
            &reason.to_string(),
            types,
        ));
    }
    model.graph.remove_nodes(&taken);
    for (place, region) in regions.iter().enumerate() {
        let name = |list: &[String]| list.iter().map(String::clone).collect();
        model.graph.push(Node {
            name: Some(format!("{}/{place}", REGION)),
            op_type: REGION.into(),
            input: name(&region.inputs),
            output: name(&region.outputs),
            attributes: vec![Attribute::int(PLACE, place as i64)],
            ..Node::default()
        });
    }
    model.graph.remove_unused_except(watched);
    constants::fold(&mut model, watched);
    model.graph.remove_unused_except(watched);
    // `from_proto` sorts the nodes topologically.
    let model = Model::from_proto(model.to_proto())?;
    Ok(Fused {
        model,
        programs,
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
    step: &IrStep,
    region: usize,
    form: Option<String>,
    model: &Model,
    ir: &Ir,
) -> FusedNode {
    let titles = step
        .nodes
        .iter()
        .map(|&node| model.graph.nodes()[node].title().to_owned());
    let value = |operand: &IrOperand| match operand {
        IrOperand::Constant(constant) => (
            constant.quantization.type_name().to_owned(),
            constant.shape.clone(),
        ),
        IrOperand::Reals(shape, _) => ("float32".to_owned(), shape.clone()),
        IrOperand::Int16(name, int16) => {
            let value = ir.values.get(name);
            let shape = value.map(|value| value.shape.clone());
            (int16.type_name().to_owned(), shape.unwrap_or_default())
        }
        IrOperand::Int8(name, _) | IrOperand::Bytes(name) | IrOperand::Floats(name) => {
            let value = ir.values.get(name);
            let shape = value.map(|value| value.shape.clone());
            (type_name(value), shape.unwrap_or_default())
        }
    };
    let (mut inputs, input_shapes): (Vec<String>, _) = step.values.inputs.iter().map(value).unzip();
    for (at, input) in inputs.iter_mut().enumerate() {
        if let Some(name) = step.operation.input_type(at) {
            *input = name.to_owned();
        }
    }
    let output = ir.values.get(&step.values.output);
    FusedNode {
        node: step.node.clone(),
        operator: step.operator.clone(),
        fused: titles.filter(|title| *title != step.node).collect(),
        operation: step.operation.name().to_owned(),
        region: Some(region),
        kernel: form,
        inputs,
        output: match step.values.int16 {
            Some(int16) => int16.type_name().to_owned(),
            None => type_name(output),
        },
        input_shapes,
        output_shape: output.map(|value| value.shape.clone()).unwrap_or_default(),
        reason: None,
    }
}

fn float_node(node: &Node, reason: &str, types: &BTreeMap<String, TensorType>) -> FusedNode {
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
        operator: match node.is(BLOCK_PRODUCT) {
            true => MATMUL_NBITS.to_owned(),
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
