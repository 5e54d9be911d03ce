//! The body of a control flow node, with the values it captures from the graphs around it.

use super::super::EngineError;
use super::super::execute::Run;
use super::{Form, Held, Piece, Said};
use crate::graph::Model;
use crate::onnx::schema::{AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto};
use crate::tensor::Tensor;

pub(super) struct Body {
    piece: Piece,
    /// Captured values of the enclosing graph; they follow the body's own inputs.
    captured: Vec<String>,
    /// The body's own inputs as declared in the file.
    pub(super) inputs: Vec<ValueInfoProto>,
    pub(super) outputs: Vec<ValueInfoProto>,
}

impl Body {
    /// Builds the body from an attribute of a node of this model.
    pub(super) fn new(
        model: &Model,
        node: &NodeProto,
        attribute: &str,
        form: Form,
    ) -> Result<Body, EngineError> {
        let said = Said::of(node);
        let graph = node.attribute(attribute).and_then(|a| a.g.as_ref());
        let Some(graph) = graph else {
            return Err(said.wrong(attribute, "missing", "a graph"));
        };
        let (inputs, outputs) = (graph.input.clone(), graph.output.clone());
        let mut names: Vec<String> = inputs.iter().filter_map(|v| v.name.clone()).collect();
        if names.len() != inputs.len() || outputs.iter().any(|output| output.name.is_none()) {
            let wanted = "a name for each input and output";
            return Err(said.wrong(attribute, "a graph without some names", wanted));
        }
        let mut whole = GraphProto {
            // Types of inputs are known only at a run.
            value_info: Vec::new(),
            ..graph.clone()
        };
        let own = whole.initializer.iter().map(|tensor| tensor.title());
        let own: Vec<String> = own.map(str::to_owned).collect();
        let mut captured = Vec::new();
        for name in graph.captured() {
            let constant = model.graph.initializers.get(&name);
            match constant.filter(|_| !own.contains(&name)) {
                Some(constant) => whole.initializer.push(constant.clone()),
                None => {
                    let port = ValueInfoProto {
                        name: Some(name.clone()),
                        ..ValueInfoProto::default()
                    };
                    whole.input.push(port);
                    captured.push(name);
                }
            }
        }
        let header = ModelProto {
            graph: Some(whole),
            ..model.header().clone()
        };
        let wrong = |error: crate::graph::GraphError| said.wrong(attribute, error, "a whole graph");
        let body = Model::from_proto(header).map_err(wrong)?;
        names.extend(captured.iter().cloned());
        Ok(Body {
            piece: Piece::body(body, names, form),
            captured,
            inputs,
            outputs,
        })
    }

    /// Fails unless the body has these numbers of inputs and outputs.
    pub(super) fn fits(
        &self,
        said: &Said,
        inputs: usize,
        outputs: usize,
    ) -> Result<(), EngineError> {
        let found = (self.inputs.len(), self.outputs.len());
        match found == (inputs, outputs) {
            true => Ok(()),
            false => {
                let words = |(inputs, outputs)| format!("of {inputs} inputs and {outputs} outputs");
                Err(said.wrong("the graph it holds", words(found), words((inputs, outputs))))
            }
        }
    }

    /// Runs the body on these inputs.
    pub(super) fn run(
        &self,
        said: &Said,
        mut fed: Vec<Tensor>,
        held: &Held,
        run: &mut Run,
    ) -> Result<Vec<Tensor>, EngineError> {
        for name in &self.captured {
            fed.push(said.held(held, name)?.clone());
        }
        let unseen = &mut |_: usize, _: &[&[f32]], _: &[usize]| {};
        self.piece.run(fed, run.inside(unseen))
    }
}

/// An integer list of a node with one entry for each of `values`; zeros if the attribute is absent.
pub(super) fn list(node: &NodeProto, key: &str, values: usize) -> Result<Vec<i64>, EngineError> {
    let Some(AttributeProto { ints, .. }) = node.attribute(key) else {
        return Ok(vec![0; values]);
    };
    match ints.len() == values {
        true => Ok(ints.clone()),
        false => Err(Said::of(node).wrong(key, format!("{ints:?}"), format!("{values} integers"))),
    }
}
