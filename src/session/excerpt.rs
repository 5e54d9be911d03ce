//! Changed copies of a model file, for the search of a node that another runtime computes
//! differently: the model with inner values as outputs, and the part between given values.

use std::collections::HashSet;

use bytes::Bytes;
use serde::Deserialize;

use super::Error;
use crate::graph::{Dim, Model, TensorType};
use crate::onnx;
use crate::onnx::schema::{DataType, ValueInfoProto};

/// A value that was seen in a run. It becomes an input of an excerpt.
#[derive(Clone, Debug, Deserialize)]
pub struct SeenValue {
    /// Name of the value in the model.
    pub name: String,
    /// Element type, such as `float32`.
    pub element: String,
    /// Shape.
    pub shape: Vec<usize>,
}

/// The model with further outputs. Values that are outputs already stay once.
pub fn with_outputs(file: Bytes, values: &[String]) -> Result<Vec<u8>, Error> {
    let mut model = Model::from_proto(onnx::read(file)?)?;
    for name in values {
        require_value(&model, name)?;
        if !model.graph.is_output(name) {
            let port = match model.graph.tensor_type(name) {
                Some(known) => ValueInfoProto::new(name, &known),
                None => untyped(name),
            };
            model.graph.push_output(port);
        }
    }
    Ok(onnx::write(&model.to_proto())?)
}

/// The nodes between `inputs` and `outputs`, as a model of its own. The inputs get the types and
/// shapes of this run; constants come with the nodes.
pub fn excerpt(file: Bytes, inputs: &[SeenValue], outputs: &[String]) -> Result<Vec<u8>, Error> {
    let mut model = Model::from_proto(onnx::read(file)?)?;
    for name in outputs {
        require_value(&model, name)?;
    }
    let given: HashSet<&str> = inputs.iter().map(|value| value.name.as_str()).collect();
    let ports = inputs.iter().map(seen_port).collect::<Result<_, _>>()?;
    let graph = &mut model.graph;
    let mut wanted = vec![false; graph.nodes().len()];
    let mut open: Vec<usize> = outputs
        .iter()
        .filter_map(|name| graph.producer(name))
        .collect();
    while let Some(place) = open.pop() {
        if std::mem::replace(&mut wanted[place], true) {
            continue;
        }
        let node = &graph.nodes()[place];
        let captured = node.captured();
        let read = node.input.iter().chain(&captured);
        let read = read.filter(|name| !given.contains(name.as_str()));
        open.extend(read.filter_map(|name| graph.producer(name)));
    }
    let mut places = wanted.into_iter();
    let mut nodes = graph.take_nodes();
    nodes.retain(|_| places.next() == Some(true));
    for node in &mut nodes {
        // A node of which one output is given and another is computed.
        for name in &mut node.output {
            if given.contains(name.as_str()) {
                name.clear();
            }
        }
    }
    graph.inputs = ports;
    graph.replace_nodes(nodes);
    graph.set_outputs(outputs.iter().map(|name| untyped(name)).collect());
    graph.remove_unused();
    Ok(onnx::write(&model.to_proto())?)
}

fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto {
        name: Some(name.to_owned()),
        ..ValueInfoProto::default()
    }
}

fn require_value(model: &Model, name: &str) -> Result<(), Error> {
    match model.graph.producer(name) {
        Some(_) => Ok(()),
        None => Err(Error::NoSuchValue {
            name: name.to_owned(),
        }),
    }
}

fn seen_port(value: &SeenValue) -> Result<ValueInfoProto, Error> {
    let known = (0..=64).filter_map(|code| DataType::try_from(code).ok());
    let element = known
        .into_iter()
        .find(|element| element.name() == value.element);
    let element = element.ok_or_else(|| Error::NoSuchElement {
        name: value.name.clone(),
        element: value.element.clone(),
    })?;
    let shape = value.shape.iter().map(|&size| Dim::Known(size)).collect();
    let known = TensorType {
        element,
        shape: Some(shape),
    };
    Ok(ValueInfoProto::new(&value.name, &known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{GraphView, ModelFile, Session};
    use crate::tensor::{Tensor, Values};

    fn file() -> Bytes {
        let model = octet_test_models::qdq::network();
        Bytes::from(onnx::write(&model.to_proto()).unwrap())
    }

    fn run(file: &[u8], inputs: Vec<Tensor>) -> Vec<(String, Tensor)> {
        let session = Session::open(ModelFile::new("test", Bytes::copy_from_slice(file))).unwrap();
        session.runner().unwrap().run(inputs, &()).unwrap()
    }

    fn input() -> Tensor {
        let values = (0..5 * 8 * 8).map(|i| ((i * 7) % 19) as f32 / 9.0 - 1.0);
        Tensor::new(vec![1, 5, 8, 8], Values::F32(values.collect())).unwrap()
    }

    /// Equal but for the rounding of sums: the whole model runs on integers.
    fn alike(one: &Tensor, other: &Tensor) -> bool {
        let far = |a: f32, b: f32| (a - b).abs() > 1e-4 * b.abs().max(0.1);
        one.shape() == other.shape()
            && match (one.values(), other.values()) {
                (Values::F32(a), Values::F32(b)) => !a.iter().zip(b).any(|(&a, &b)| far(a, b)),
                (Values::U8(a), Values::U8(b)) => !a.iter().zip(b).any(|(a, b)| a.abs_diff(*b) > 1),
                (Values::I8(a), Values::I8(b)) => !a.iter().zip(b).any(|(a, b)| a.abs_diff(*b) > 1),
                _ => false,
            }
    }

    #[test]
    fn the_part_between_two_values_computes_what_the_whole_model_does() {
        let graph = GraphView::from_file(file()).unwrap();
        let computed: Vec<String> = graph
            .nodes
            .iter()
            .flat_map(|node| node.outputs.clone())
            .collect();
        let whole = with_outputs(file(), &computed).unwrap();
        let values = run(&whole, vec![input()]);
        assert!(values.len() >= computed.len() && computed.len() > 6);
        let value = |name: &str| &values.iter().find(|(n, _)| n == name).unwrap().1;
        let mut compared = 0;
        for node in &graph.nodes {
            let fed: Vec<&String> = node
                .inputs
                .iter()
                .filter(|name| computed.contains(name))
                .collect();
            if fed.is_empty() {
                continue;
            }
            let seen: Vec<SeenValue> = fed
                .iter()
                .map(|name| SeenValue {
                    name: (*name).clone(),
                    element: value(name).element_type().name().to_owned(),
                    shape: value(name).shape().to_vec(),
                })
                .collect();
            let part = excerpt(file(), &seen, &node.outputs).unwrap();
            let view = GraphView::from_file(Bytes::from(part.clone())).unwrap();
            assert_eq!(view.nodes.len(), 1, "{}", node.name);
            let fed: Vec<Tensor> = fed.iter().map(|name| value(name).clone()).collect();
            let (alone, whole) = (&run(&part, fed)[0].1, value(&node.outputs[0]));
            assert!(alike(alone, whole), "{}", node.name);
            compared += 1;
        }
        assert!(compared > 4);
    }

    #[test]
    fn values_and_types_that_do_not_exist_are_refused() {
        let missing = with_outputs(file(), &["nowhere".to_owned()]).unwrap_err();
        assert!(missing.to_string().contains("`nowhere`"), "{missing}");
        let graph = GraphView::from_file(file()).unwrap();
        let seen = SeenValue {
            name: graph.nodes[0].outputs[0].clone(),
            element: "colour".into(),
            shape: vec![1],
        };
        let last = graph.outputs.clone();
        let refused = excerpt(file(), &[seen], &last).unwrap_err();
        assert!(refused.to_string().contains("colour"), "{refused}");
    }
}
