//! Visits every tensor of a model: initializers, attributes, subgraphs, functions.

use super::schema::{
    AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto,
};

/// Calls `visit` for every tensor in the order of the file, until it returns an error.
pub fn each<E>(
    model: &ModelProto,
    visit: &mut impl FnMut(&TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    model.graph.iter().try_for_each(|g| graph(g, visit))?;
    for training in &model.training_info {
        let graphs = training.initialization.iter().chain(&training.algorithm);
        graphs.into_iter().try_for_each(|g| graph(g, visit))?;
    }
    for function in &model.functions {
        function
            .attribute_proto
            .iter()
            .try_for_each(|a| attribute(a, visit))?;
        function.node.iter().try_for_each(|n| node(n, visit))?;
    }
    Ok(())
}

fn graph<E>(
    graph: &GraphProto,
    visit: &mut impl FnMut(&TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    graph.initializer.iter().try_for_each(&mut *visit)?;
    graph
        .sparse_initializer
        .iter()
        .try_for_each(|s| sparse(s, visit))?;
    graph.node.iter().try_for_each(|n| node(n, visit))
}

fn node<E>(
    node: &NodeProto,
    visit: &mut impl FnMut(&TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    node.attribute.iter().try_for_each(|a| attribute(a, visit))
}

fn attribute<E>(
    attribute: &AttributeProto,
    visit: &mut impl FnMut(&TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    attribute
        .t
        .iter()
        .chain(&attribute.tensors)
        .try_for_each(&mut *visit)?;
    let sparses = attribute
        .sparse_tensor
        .iter()
        .chain(&attribute.sparse_tensors);
    sparses.into_iter().try_for_each(|s| sparse(s, visit))?;
    attribute
        .g
        .iter()
        .chain(&attribute.graphs)
        .try_for_each(|g| graph(g, visit))
}

fn sparse<E>(
    sparse: &SparseTensorProto,
    visit: &mut impl FnMut(&TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    sparse
        .values
        .iter()
        .chain(&sparse.indices)
        .try_for_each(visit)
}

/// Calls `visit` for every tensor with mutable access, until it returns an error.
pub fn each_mut<E>(
    model: &mut ModelProto,
    visit: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    model
        .graph
        .iter_mut()
        .try_for_each(|g| graph_mut(g, visit))?;
    for training in &mut model.training_info {
        training
            .initialization
            .iter_mut()
            .try_for_each(|g| graph_mut(g, visit))?;
        training
            .algorithm
            .iter_mut()
            .try_for_each(|g| graph_mut(g, visit))?;
    }
    for function in &mut model.functions {
        function
            .attribute_proto
            .iter_mut()
            .try_for_each(|a| attribute_mut(a, visit))?;
        function
            .node
            .iter_mut()
            .try_for_each(|n| node_mut(n, visit))?;
    }
    Ok(())
}

fn graph_mut<E>(
    graph: &mut GraphProto,
    visit: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    graph.initializer.iter_mut().try_for_each(&mut *visit)?;
    graph
        .sparse_initializer
        .iter_mut()
        .try_for_each(|s| sparse_mut(s, visit))?;
    graph.node.iter_mut().try_for_each(|n| node_mut(n, visit))
}

fn node_mut<E>(
    node: &mut NodeProto,
    visit: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    node.attribute
        .iter_mut()
        .try_for_each(|a| attribute_mut(a, visit))
}

fn attribute_mut<E>(
    attribute: &mut AttributeProto,
    visit: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    attribute.t.iter_mut().try_for_each(&mut *visit)?;
    attribute.tensors.iter_mut().try_for_each(&mut *visit)?;
    attribute
        .sparse_tensor
        .iter_mut()
        .try_for_each(|s| sparse_mut(s, visit))?;
    attribute
        .sparse_tensors
        .iter_mut()
        .try_for_each(|s| sparse_mut(s, visit))?;
    attribute
        .g
        .iter_mut()
        .try_for_each(|g| graph_mut(g, visit))?;
    attribute
        .graphs
        .iter_mut()
        .try_for_each(|g| graph_mut(g, visit))
}

fn sparse_mut<E>(
    sparse: &mut SparseTensorProto,
    visit: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    sparse.values.iter_mut().try_for_each(&mut *visit)?;
    sparse.indices.iter_mut().try_for_each(visit)
}
