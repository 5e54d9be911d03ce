//! Inlines the branch of every If whose condition is known. Its nodes are then quantized like all
//! others, and the other branch is dropped.
//!
//! Exporters write an If wherever a shape decides; PyTorch does for each squeeze of a size it
//! doesn't know. Functions that serve several ranks contain them too. An If whose condition depends
//! on the run stays, as does one inside a Loop.

use std::collections::HashMap;

use crate::inferred_value::Types;
use crate::{Graph, GraphError, Names, Node, Subgraph, shapes};
use octet_onnx::schema::TensorProto;

/// Replaces each such If by the nodes of its branch, in place. Returns the number of Ifs.
pub(super) fn inline(graph: &mut Graph) -> Result<usize, GraphError> {
    if !graph.nodes().iter().any(|node| node.is("If")) {
        return Ok(0);
    }
    let types = shapes::infer(graph);
    let mut names = graph.names();
    let mut count = 0;
    let mut nodes = Vec::with_capacity(graph.nodes().len());
    for mut node in graph.take_nodes() {
        match take_branch(&mut node, &types) {
            Some(branch) => {
                count += 1;
                let constants = write(&node, branch, &mut names, &mut nodes);
                for tensor in constants {
                    graph.initializers.insert(tensor);
                }
            }
            None => nodes.push(node),
        }
    }
    // `set_nodes` applies the checks of a loaded graph to the inlined nodes.
    graph.set_nodes(nodes)?;
    Ok(count)
}

/// Takes out the branch that an If runs. `None` if the condition is unknown or the branch lacks an
/// output of the node.
fn take_branch(node: &mut Node, types: &Types) -> Option<Subgraph> {
    let condition = node.input_at(0).filter(|_| node.is("If"))?;
    let &[condition] = types.get(condition)?.all_integers()?.as_slice() else {
        return None;
    };
    let name = ["else_branch", "then_branch"][usize::from(condition != 0)];
    let [branch] = node.attribute(name)?.graphs() else {
        return None;
    };
    let whole = branch.outputs.len() == node.output.len();
    if !whole || !branch.inputs.is_empty() || !branch.sparse().is_empty() {
        return None;
    }
    node.take(name)?.into_graph()
}

/// Writes the nodes of a branch. Inner names get the If's title as prefix, and outputs take the
/// outer names. Returns the branch's constants.
fn write(
    if_node: &Node,
    branch: Subgraph,
    names: &mut Names,
    nodes: &mut Vec<Node>,
) -> Vec<TensorProto> {
    let inside = branch
        .outputs
        .iter()
        .map(|value| value.name.as_deref().unwrap_or_default());
    let outputs: Vec<_> = inside
        .zip(&if_node.output)
        .filter(|(_, outside)| !outside.is_empty())
        .collect();
    // A subgraph of the branch may use the outer name for another value. Inner values then keep
    // names of their own.
    let plain = branch
        .nodes
        .iter()
        .all(|node| node.subgraphs().next().is_none());
    let known: HashMap<&str, &String> = outputs.iter().copied().filter(|_| plain).collect();
    let mut renamed: HashMap<String, String> = HashMap::new();
    for name in branch
        .nodes
        .iter()
        .flat_map(|node| &node.output)
        .filter(|name| !name.is_empty())
    {
        let new = match known.get(name.as_str()) {
            Some(&outside) => outside.clone(),
            None => names.fresh(&within(if_node, name)),
        };
        renamed.insert(name.clone(), new);
    }
    let mut constants = branch.initializers;
    for name in constants
        .iter_mut()
        .filter_map(|tensor| tensor.name.as_mut())
    {
        let new = names.fresh(&within(if_node, name));
        renamed.insert(std::mem::replace(name, new.clone()), new);
    }
    for mut node in branch.nodes {
        // An unnamed node is identified by its first output. A node named after one of its outputs
        // follows the renaming.
        if let Some(name) = node.name.as_mut().filter(|name| !name.is_empty()) {
            *name = match renamed.get(name).filter(|_| node.output.contains(name)) {
                Some(inner) => inner.clone(),
                None => names.fresh(&within(if_node, name)),
            };
        }
        node.rename_outputs(&renamed);
        node.replace_uses(&renamed);
        nodes.push(node);
    }
    // Outputs that the branch passes on unchanged.
    for (inside, outside) in outputs {
        let inner = renamed.get(inside).map_or(inside, String::as_str);
        if inner != outside {
            let copy = names.fresh(&within(if_node, outside));
            nodes.push(Node::new("Identity", &copy, &[inner], &[outside]));
        }
    }
    constants
}

fn within(if_node: &Node, name: &str) -> String {
    format!("{}/{name}", if_node.title())
}
