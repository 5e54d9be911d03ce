//! Visits every tensor of a model: initializers, attributes, subgraphs, functions.

use super::schema::{
    AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto,
};

/// Calls `see` for every tensor in the order of the file, until it returns an error.
pub(crate) fn each<E>(
    model: &ModelProto,
    see: &mut impl FnMut(&TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    model.graph.iter().try_for_each(|g| graph(g, see))?;
    for training in &model.training_info {
        let graphs = training.initialization.iter().chain(&training.algorithm);
        graphs.into_iter().try_for_each(|g| graph(g, see))?;
    }
    for function in &model.functions {
        function
            .attribute_proto
            .iter()
            .try_for_each(|a| attribute(a, see))?;
        function.node.iter().try_for_each(|n| node(n, see))?;
    }
    Ok(())
}

fn graph<E>(
    graph: &GraphProto,
    see: &mut impl FnMut(&TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    graph.initializer.iter().try_for_each(&mut *see)?;
    graph
        .sparse_initializer
        .iter()
        .try_for_each(|s| sparse(s, see))?;
    graph.node.iter().try_for_each(|n| node(n, see))
}

fn node<E>(node: &NodeProto, see: &mut impl FnMut(&TensorProto) -> Result<(), E>) -> Result<(), E> {
    node.attribute.iter().try_for_each(|a| attribute(a, see))
}

fn attribute<E>(
    attribute: &AttributeProto,
    see: &mut impl FnMut(&TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    attribute
        .t
        .iter()
        .chain(&attribute.tensors)
        .try_for_each(&mut *see)?;
    let sparses = attribute
        .sparse_tensor
        .iter()
        .chain(&attribute.sparse_tensors);
    sparses.into_iter().try_for_each(|s| sparse(s, see))?;
    attribute
        .g
        .iter()
        .chain(&attribute.graphs)
        .try_for_each(|g| graph(g, see))
}

fn sparse<E>(
    sparse: &SparseTensorProto,
    see: &mut impl FnMut(&TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    sparse
        .values
        .iter()
        .chain(&sparse.indices)
        .try_for_each(see)
}

/// Calls `see` for every tensor with mutable access, until it returns an error.
pub(super) fn each_mut<E>(
    model: &mut ModelProto,
    see: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    model.graph.iter_mut().try_for_each(|g| graph_mut(g, see))?;
    for training in &mut model.training_info {
        training
            .initialization
            .iter_mut()
            .try_for_each(|g| graph_mut(g, see))?;
        training
            .algorithm
            .iter_mut()
            .try_for_each(|g| graph_mut(g, see))?;
    }
    for function in &mut model.functions {
        function
            .attribute_proto
            .iter_mut()
            .try_for_each(|a| attribute_mut(a, see))?;
        function
            .node
            .iter_mut()
            .try_for_each(|n| node_mut(n, see))?;
    }
    Ok(())
}

fn graph_mut<E>(
    graph: &mut GraphProto,
    see: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    graph.initializer.iter_mut().try_for_each(&mut *see)?;
    graph
        .sparse_initializer
        .iter_mut()
        .try_for_each(|s| sparse_mut(s, see))?;
    graph.node.iter_mut().try_for_each(|n| node_mut(n, see))
}

fn node_mut<E>(
    node: &mut NodeProto,
    see: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    node.attribute
        .iter_mut()
        .try_for_each(|a| attribute_mut(a, see))
}

fn attribute_mut<E>(
    attribute: &mut AttributeProto,
    see: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    attribute.t.iter_mut().try_for_each(&mut *see)?;
    attribute.tensors.iter_mut().try_for_each(&mut *see)?;
    attribute
        .sparse_tensor
        .iter_mut()
        .try_for_each(|s| sparse_mut(s, see))?;
    attribute
        .sparse_tensors
        .iter_mut()
        .try_for_each(|s| sparse_mut(s, see))?;
    attribute.g.iter_mut().try_for_each(|g| graph_mut(g, see))?;
    attribute
        .graphs
        .iter_mut()
        .try_for_each(|g| graph_mut(g, see))
}

fn sparse_mut<E>(
    sparse: &mut SparseTensorProto,
    see: &mut impl FnMut(&mut TensorProto) -> Result<(), E>,
) -> Result<(), E> {
    sparse.values.iter_mut().try_for_each(&mut *see)?;
    sparse.indices.iter_mut().try_for_each(see)
}
