//! An If whose condition is known is the branch that it takes: what lies there is quantized like everything else, and the other branch is gone.
//!
//! Exporters write one wherever a shape decides (PyTorch for each squeeze of a size that it doesn't know), and so do functions that
//! serve several ranks. A condition that only a run knows stays, and so does one inside of a Loop.

use std::collections::HashMap;

use super::shapes::{self, Types};
use crate::graph::{Graph, GraphError, Names};
use crate::onnx::schema::{GraphProto, NodeProto, TensorProto};

/// Writes each as the nodes of its branch, which stand where it stood. Returns how many that were.
pub(super) fn write_out(graph: &mut Graph) -> Result<usize, GraphError> {
    if !graph.nodes.iter().any(|node| node.is("If")) {
        return Ok(0);
    }
    let types = shapes::infer(graph);
    let mut names = graph.names();
    let mut count = 0;
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for mut node in std::mem::take(&mut graph.nodes) {
        match taken(&mut node, &types) {
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
    // The door's checks are those of what was inside, too.
    graph.set_nodes(nodes)?;
    Ok(count)
}

/// The branch that a node takes, where that is known and the branch makes all that the node is to make.
fn taken(node: &mut NodeProto, types: &Types) -> Option<GraphProto> {
    let condition = node.input_at(0).filter(|_| node.is("If"))?;
    let &[condition] = types.get(condition)?.all_integers()?.as_slice() else {
        return None;
    };
    let name = ["else_branch", "then_branch"][usize::from(condition != 0)];
    let branch = node.attribute(name)?.g.as_ref()?;
    let whole = branch.output.len() == node.output.len();
    if !whole || !branch.input.is_empty() || !branch.sparse_initializer.is_empty() {
        return None;
    }
    node.take(name)?.g
}

/// Writes a branch. Its names say which If they are of, but what comes out has the names it has outside. Returns its constants.
fn write(
    choice: &NodeProto,
    branch: GraphProto,
    names: &mut Names,
    nodes: &mut Vec<NodeProto>,
) -> Vec<TensorProto> {
    let inside = branch
        .output
        .iter()
        .map(|value| value.name.as_deref().unwrap_or_default());
    let outputs: Vec<_> = inside
        .zip(&choice.output)
        .filter(|(_, outside)| !outside.is_empty())
        .collect();
    // A graph within the branch may know another value by the name outside: what it reads keeps a name of its own.
    let plain = branch
        .node
        .iter()
        .all(|node| node.subgraphs().next().is_none());
    let known: HashMap<&str, &String> = outputs.iter().copied().filter(|_| plain).collect();
    let mut renamed: HashMap<String, String> = HashMap::new();
    for name in branch
        .node
        .iter()
        .flat_map(|node| &node.output)
        .filter(|name| !name.is_empty())
    {
        let new = match known.get(name.as_str()) {
            Some(&outside) => outside.clone(),
            None => names.fresh(&within(choice, name)),
        };
        renamed.insert(name.clone(), new);
    }
    let mut constants = branch.initializer;
    for name in constants
        .iter_mut()
        .filter_map(|tensor| tensor.name.as_mut())
    {
        let new = names.fresh(&within(choice, name));
        renamed.insert(std::mem::replace(name, new.clone()), new);
    }
    for mut node in branch.node {
        // A nameless node is known by what it makes, and one that has the name of what it makes keeps it so.
        if let Some(name) = node.name.as_mut().filter(|name| !name.is_empty()) {
            *name = match renamed.get(name).filter(|_| node.output.contains(name)) {
                Some(made) => made.clone(),
                None => names.fresh(&within(choice, name)),
            };
        }
        for output in &mut node.output {
            if let Some(new) = renamed.get(output) {
                output.clone_from(new);
            }
        }
        node.replace_uses(&renamed);
        nodes.push(node);
    }
    // What the branch only hands on.
    for (inside, outside) in outputs {
        let made = renamed.get(inside).map_or(inside, String::as_str);
        if made != outside {
            let copy = names.fresh(&within(choice, outside));
            nodes.push(NodeProto::new("Identity", &copy, &[made], &[outside]));
        }
    }
    constants
}

fn within(choice: &NodeProto, name: &str) -> String {
    format!("{}/{name}", choice.title())
}
