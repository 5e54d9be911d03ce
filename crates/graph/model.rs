//! A model: its main graph, and the rest of the file.

use octet_onnx::schema::{ModelProto, OperatorSetIdProto};

use crate::{Graph, GraphError, version_of};

/// A model: its main graph, and the unchanged rest of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    header: ModelProto,
    /// Main graph.
    pub graph: Graph,
}

impl Model {
    /// Builds a model from its message; tensor bytes are shared. Checks that each value is produced
    /// once, and sorts the nodes topologically if necessary. Trailing empty input and output names
    /// of nodes are removed.
    pub fn from_proto(mut header: ModelProto) -> Result<Model, GraphError> {
        let graph = Graph::from_proto(header.graph.take().ok_or(GraphError::NoGraph)?)?;
        Ok(Model { header, graph })
    }

    /// Converts the model to its message; tensor bytes are shared.
    pub fn to_proto(&self) -> ModelProto {
        let mut header = self.header.clone();
        header.graph = Some(self.graph.to_proto());
        header
    }

    /// The model's message without its graph.
    pub fn header(&self) -> &ModelProto {
        &self.header
    }

    /// Mutable access to the model's message without its graph.
    pub fn header_mut(&mut self) -> &mut ModelProto {
        &mut self.header
    }

    /// The opset of ONNX's own operators; 1 if the file names none, as ONNX defines.
    pub fn opset(&self) -> i64 {
        version_of("", &self.header.opset_import).unwrap_or(1)
    }

    /// Adds an operator set of another domain, unless it is imported already.
    pub fn import(&mut self, domain: &str, version: i64) {
        let imports = &mut self.header.opset_import;
        if !imports.iter().any(|o| o.domain.as_deref() == Some(domain)) {
            imports.push(OperatorSetIdProto {
                domain: Some(domain.into()),
                version: Some(version),
            });
        }
    }
}
