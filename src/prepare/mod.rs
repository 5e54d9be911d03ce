//! Float to float: rewrites models of any age and style into a form that later stages can rely on.
//!
//! After [`prepare`]:
//!
//! - calls of the model's functions are inlined where possible;
//! - an If with a known condition is replaced by its branch;
//! - 16-bit floats are float32;
//! - every constant is an initializer, and none is an input;
//! - the opset is at least 13;
//! - fused operators are decomposed;
//! - shape arithmetic on known operands is computed;
//! - nodes without effect are gone;
//! - batch norms that follow a convolution or matrix product are folded into it;
//! - `value_info` holds only inferred entries.
//!
//! Outputs keep their names and values.

mod affine;
mod choices;
mod constants;
pub mod equalize;
pub(crate) mod fold;
mod functions;
mod fused;
mod half;
mod identity;
mod opset;
mod sequences;
mod shapes;

pub(crate) use affine::by_channel;
pub use functions::Functions;
pub use fused::is_fused;
pub use half::Half;
pub use opset::{raise_opset, raise_to_blocks};
pub(crate) use shapes::{Known, Types, count, cut, infer, infer_from, made_by, position};

use crate::graph::{GraphError, Model};
use crate::onnx::tensor::TensorError;

/// The opset that per-channel quantization needs; every prepared model has at least this one.
pub const OPSET: i64 = 13;

/// Reasons why a model can't be prepared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum PrepareError {
    #[error(
        "node {node} ({operator}) can't be raised from opset {from} to {to}: {reason}; export the model with opset {to} or newer"
    )]
    Opset {
        node: String,
        operator: String,
        from: i64,
        to: i64,
        reason: String,
    },
    #[error(
        "node {node} reads the bits of numbers in a model of float16 or bfloat16, which it can't once these are float32; export the model \
         in float32"
    )]
    HalfBits { node: String },
    #[error(
        "the model's input or output {value} holds tensors of float16 or bfloat16 in a sequence or the like, which can't be made of float32 \
         there; export the model in float32"
    )]
    HalfPort { value: String },
    #[error(
        "node {node} calls the model's function {function}, which {reason}; export the model again"
    )]
    Function {
        node: String,
        function: String,
        reason: String,
    },
    #[error(
        "node {node} is still a call of the model's function {function}: {reason}; write the functions out with onnx.inliner \
         (convert_version=True), or export the model with one operator set"
    )]
    FunctionLeft {
        node: String,
        function: String,
        reason: String,
    },
    #[error("two functions of the model are both named {function}: export the model again")]
    TwoFunctions { function: String },
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// A prepared model and a record of the changes.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The prepared model.
    pub model: Model,
    /// One sentence for each pass that changed something.
    pub done: Vec<String>,
    /// Result of inlining the model's functions.
    pub functions: Functions,
    /// Record of the 16-bit floats that were upcast.
    pub half: Half,
}

/// Counts of the rewrites that keep a model's meaning.
#[derive(Default)]
struct Written {
    inputs: usize,
    choices: usize,
    sequences: usize,
    constants: usize,
    fused: usize,
    shapes: usize,
}

impl Written {
    /// Rewrites everything that is known before a run. Inlining an If may expose more, so it
    /// repeats.
    fn out(model: &mut Model) -> Result<Written, PrepareError> {
        let mut written = Written {
            inputs: constants::inputs(&mut model.graph),
            ..Written::default()
        };
        loop {
            written.sequences += sequences::write_out(&mut model.graph);
            written.constants += constants::nodes(&mut model.graph)?;
            written.fused += fused::write_out(model);
            written.shapes += fold::fold(&mut model.graph);
            match choices::write_out(&mut model.graph)? {
                0 => return Ok(written),
                choices => written.choices += choices,
            }
        }
    }
}

/// Runs all passes.
pub fn prepare(mut model: Model) -> Result<Prepared, PrepareError> {
    let functions = Functions::write_out(&mut model)?;
    let half = Half::raise(&mut model)?;
    let mut done = functions.said();
    done.extend(half.said());
    let from = model.opset();
    raise_opset(&mut model, OPSET)?;
    if model.opset() != from {
        done.push(format!("Raised the opset from {from} to {}", model.opset()));
    }
    let written = Written::out(&mut model)?;
    let graph = &mut model.graph;
    let mut note = |count: usize, one: &str, many: &str| {
        if count > 0 {
            done.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    };
    note(
        written.inputs,
        "input that is a constant is no input any more",
        "inputs that are constants are no inputs any more",
    );
    note(
        written.choices,
        "If whose condition is known written as the branch it takes",
        "Ifs whose conditions are known written as the branches they take",
    );
    note(
        written.sequences,
        "operator of a sequence or an optional value written as one of tensors",
        "operators of sequences and optional values written as those of tensors",
    );
    note(
        written.constants,
        "Constant node became an initializer",
        "Constant nodes became initializers",
    );
    note(
        written.fused,
        "operator that stands for several written as those",
        "operators that stand for several written as those",
    );
    note(
        written.shapes,
        "node of shape arithmetic computed",
        "nodes of shape arithmetic computed",
    );
    note(
        identity::remove(graph),
        "node that does nothing removed",
        "nodes that do nothing removed",
    );
    let folded = affine::fold(graph)?;
    note(folded.norms, "batch norm folded", "batch norms folded");
    note(
        folded.constants,
        "multiplication or addition of a constant folded",
        "multiplications and additions of constants folded",
    );
    note(
        graph.remove_unused(),
        "node that nothing uses removed",
        "nodes that nothing uses removed",
    );
    shapes::annotate(graph);
    Ok(Prepared {
        model,
        done,
        functions,
        half,
    })
}
