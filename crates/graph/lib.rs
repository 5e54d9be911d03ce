//! The model's graph: nodes in topological order, values by name, producers and consumers.
//! `prepare` rewrites it from float to float.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod attribute;
mod bodies;
mod edit;
mod graph;
mod inferred_value;
mod initializers;
mod markers;
mod model;
mod node;
mod node_builder;
pub mod operators;
mod order;
pub mod prepare;
mod shapes;
mod sliding_window;
mod subgraph;
mod uses;
pub mod validate;
mod weight_layout;

pub use attribute::{Attribute, AttributeValue};
pub use bodies::FlatModel;
pub use edit::Names;
pub use graph::Graph;
pub use initializers::Initializers;
pub use model::Model;
pub use node::Node;
pub use node_builder::Steps;
pub use shapes::{is_random, is_shape_determined};
pub use sliding_window::{Around, SlidingWindow};
pub use subgraph::Subgraph;
pub use uses::{NodeId, Slot, Use};
pub use weight_layout::LayerWeightLayout;

pub use octet_onnx::{Dim, TensorType, tensor_type_of};

use octet_onnx::schema::OperatorSetIdProto;

/// Domain of ONNX Runtime's own operators.
pub const MICROSOFT: &str = "com.microsoft";

/// Errors in the graph of a model file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum GraphError {
    #[error("the model has no graph: the file is cut short or is not a model; export it again")]
    NoGraph,
    #[error("a constant of the model has no name, so nothing can use it: export the model again")]
    NamelessConstant,
    #[error("two constants are both named {value}: export the model again")]
    DuplicateConstant { value: String },
    #[error("node {node} has no operator type: the file is damaged; export the model again")]
    NoOperator { node: String },
    #[error("node {node} produces the value {value}, which already exists: export the model again")]
    ProducedTwice { value: String, node: String },
    #[error(
        "node {node} uses the value {value}, which nothing produces: the file is damaged or was extracted wrongly from a larger model; export it again"
    )]
    Dangling { value: String, node: String },
    #[error("no node produces the model's output {value}: export the model again")]
    NoOutput { value: String },
    #[error("node {node} depends on its own output: the graph has a cycle; export the model again")]
    Cycle { node: String },
}

/// The canonical name of a domain; ONNX's own domain has two.
pub(crate) fn domain_named(domain: Option<&str>) -> &str {
    match domain {
        None | Some("ai.onnx") => "",
        Some(domain) => domain,
    }
}

/// The imported version of a domain.
pub(crate) fn version_of(domain: &str, imports: &[OperatorSetIdProto]) -> Option<i64> {
    let mut imports = imports.iter();
    let of_domain = |import: &&OperatorSetIdProto| domain_named(import.domain.as_deref()) == domain;
    imports.find(of_domain)?.version
}
