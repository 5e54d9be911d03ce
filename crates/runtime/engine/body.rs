//! The body of a control flow node, with the values it captures from the graphs around it.

use super::control_node::{LiveValues, NodeLabel};
use super::submodel::{ExecutionMode, Submodel};
use crate::EngineError;
use crate::run_context::RunContext;
use octet_graph::{Model, Node};
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::{ModelProto, ValueInfoProto};

pub(super) struct BodyGraph {
    submodel: Submodel,
    /// Captured values of the enclosing graph; they follow the body's own inputs.
    captured: Vec<String>,
    /// The body's own inputs as declared in the file.
    pub(super) inputs: Vec<ValueInfoProto>,
    pub(super) outputs: Vec<ValueInfoProto>,
}

impl BodyGraph {
    /// Builds the body from an attribute of a node of this model.
    pub(super) fn new(
        model: &Model,
        node: &Node,
        attribute: &str,
        mode: ExecutionMode,
    ) -> Result<BodyGraph, EngineError> {
        let label = NodeLabel::new(node);
        let graph = node.attribute(attribute).map(|a| a.graphs());
        let Some([graph]) = graph else {
            return Err(label.error(attribute, "missing", "a graph"));
        };
        let (inputs, outputs) = (graph.inputs.clone(), graph.outputs.clone());
        let mut names: Vec<String> = inputs.iter().filter_map(|v| v.name.clone()).collect();
        if names.len() != inputs.len() || outputs.iter().any(|output| output.name.is_none()) {
            let expected = "a name for each input and output";
            return Err(label.error(attribute, "a graph without some names", expected));
        }
        let mut whole = graph.clone();
        // Types of inputs are known only at a run.
        whole.value_info.clear();
        let own = whole.initializers.iter().map(|tensor| tensor.title());
        let own: Vec<String> = own.map(str::to_owned).collect();
        let mut captured = Vec::new();
        for name in graph.captured() {
            let constant = model.graph.initializers.get(&name);
            match constant.filter(|_| !own.contains(&name)) {
                Some(constant) => whole.initializers.push(constant.clone()),
                None => {
                    let port = ValueInfoProto {
                        name: Some(name.clone()),
                        ..ValueInfoProto::default()
                    };
                    whole.inputs.push(port);
                    captured.push(name);
                }
            }
        }
        let header = ModelProto {
            graph: Some(whole.to_proto()),
            ..model.header().clone()
        };
        let invalid =
            |error: octet_graph::GraphError| label.error(attribute, error, "a whole graph");
        let body = Model::from_proto(header).map_err(invalid)?;
        names.extend(captured.iter().cloned());
        Ok(BodyGraph {
            submodel: Submodel::body(body, names, mode),
            captured,
            inputs,
            outputs,
        })
    }

    /// Fails unless the body has these numbers of inputs and outputs.
    pub(super) fn fits(
        &self,
        label: &NodeLabel,
        inputs: usize,
        outputs: usize,
    ) -> Result<(), EngineError> {
        let actual = (self.inputs.len(), self.outputs.len());
        match actual == (inputs, outputs) {
            true => Ok(()),
            false => {
                let words = |(inputs, outputs)| format!("of {inputs} inputs and {outputs} outputs");
                Err(label.error("its graph", words(actual), words((inputs, outputs))))
            }
        }
    }

    /// Runs the body on these inputs.
    pub(super) fn run(
        &self,
        label: &NodeLabel,
        mut fed: Vec<Tensor>,
        live: &LiveValues,
        run: &mut RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        for name in &self.captured {
            fed.push(label.input(live, name)?.clone());
        }
        let unseen = &mut |_: usize, _: &[&[f32]], _: &[usize]| {};
        self.submodel.run(fed, run.inside(unseen))
    }
}

/// An integer list of a node with one entry for each of `values`; zeros if the attribute is absent.
pub(super) fn list(node: &Node, key: &str, values: usize) -> Result<Vec<i64>, EngineError> {
    let Some(ints) = node.ints(key) else {
        return Ok(vec![0; values]);
    };
    match ints.len() == values {
        true => Ok(ints.to_vec()),
        false => {
            Err(NodeLabel::new(node).error(key, format!("{ints:?}"), format!("{values} integers")))
        }
    }
}
