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

mod constants;
mod decompose;
pub mod equalize;
mod error;
mod fold_affine;
pub mod fold_shapes;
mod functions;
mod identity;
mod inline_if;
mod opset;
mod sequences;
mod upcast_f16;

pub use decompose::is_fused;
pub use error::{OPSET, PrepareError};
pub use fold_affine::constant_per_channel;
pub use functions::Functions;
pub use opset::{raise_opset, raise_to_blocks};
pub use upcast_f16::Upcast;

use crate::Model;
pub use crate::inferred_value::{InferredValue, Types, count, position};
pub use crate::operators::slice_bounds;
use crate::shapes;
pub use crate::shapes::{infer, infer_from, infer_node};

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
    pub upcast: Upcast,
}

/// Counts of the rewrites that keep a model's meaning.
#[derive(Default)]
struct RewriteCounts {
    inputs: usize,
    inlined_ifs: usize,
    sequences: usize,
    constants: usize,
    decomposed: usize,
    shapes: usize,
}

impl RewriteCounts {
    /// Rewrites everything that is known before a run. Inlining an If may expose more, so it
    /// repeats.
    fn rewrite(model: &mut Model) -> Result<RewriteCounts, PrepareError> {
        let mut rewrites = RewriteCounts {
            inputs: constants::inputs(&mut model.graph),
            ..RewriteCounts::default()
        };
        loop {
            rewrites.sequences += sequences::rewrite(&mut model.graph);
            rewrites.constants += constants::nodes(&mut model.graph)?;
            rewrites.decomposed += decompose::decompose(model);
            rewrites.shapes += fold_shapes::fold(&mut model.graph);
            match inline_if::inline(&mut model.graph)? {
                0 => return Ok(rewrites),
                count => rewrites.inlined_ifs += count,
            }
        }
    }
}

/// Prepares a model whose large constants are still in files, by passes that read none of them: 16-bit
/// floats, the opset, constants in nodes and in inputs, and the types of all values. The other passes
/// of [`prepare`] are left out.
///
/// 16-bit floats in files keep their bytes: such a constant has the type float32, and notes its own
/// ([`octet_onnx::schema::TensorProto::widened_from`]).
pub fn prepare_without_weights(model: &mut Model) -> Result<Upcast, PrepareError> {
    let upcast = Upcast::apply(model)?;
    raise_opset(model, OPSET)?;
    constants::inputs(&mut model.graph);
    constants::nodes(&mut model.graph)?;
    shapes::annotate(&mut model.graph);
    Ok(upcast)
}

/// Runs all passes.
pub fn prepare(mut model: Model) -> Result<Prepared, PrepareError> {
    let functions = Functions::inline(&mut model)?;
    let upcast = Upcast::apply(&mut model)?;
    let mut done = functions.notes();
    done.extend(upcast.note());
    let from = model.opset();
    raise_opset(&mut model, OPSET)?;
    if model.opset() != from {
        done.push(format!("Raised the opset from {from} to {}", model.opset()));
    }
    let rewrites = RewriteCounts::rewrite(&mut model)?;
    let graph = &mut model.graph;
    let mut note = |count: usize, one: &str, many: &str| {
        if count > 0 {
            done.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    };
    note(
        rewrites.inputs,
        "constant removed from the inputs",
        "constants removed from the inputs",
    );
    note(
        rewrites.inlined_ifs,
        "If with a known condition replaced by its branch",
        "Ifs with known conditions replaced by their branches",
    );
    note(
        rewrites.sequences,
        "operator on a sequence or optional value replaced by tensor operators",
        "operators on sequences and optional values replaced by tensor operators",
    );
    note(
        rewrites.constants,
        "Constant node became an initializer",
        "Constant nodes became initializers",
    );
    note(
        rewrites.decomposed,
        "fused operator decomposed",
        "fused operators decomposed",
    );
    note(
        rewrites.shapes,
        "node of shape arithmetic computed",
        "nodes of shape arithmetic computed",
    );
    note(
        identity::remove(graph),
        "node without effect removed",
        "nodes without effect removed",
    );
    let folded = fold_affine::fold(graph)?;
    note(folded.norms, "batch norm folded", "batch norms folded");
    note(
        folded.constants,
        "multiplication or addition of a constant folded",
        "multiplications and additions of constants folded",
    );
    note(
        graph.remove_unused(),
        "unused node removed",
        "unused nodes removed",
    );
    shapes::annotate(graph);
    Ok(Prepared {
        model,
        done,
        functions,
        upcast,
    })
}
