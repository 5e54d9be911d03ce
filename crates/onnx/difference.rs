//! The differences between two models, as sentences for people.

use std::collections::BTreeMap;

use super::schema::{ModelProto, NodeProto, TensorProto};

/// The first `limit` differences of `found` from `expected`, in the order of the file: initializers,
/// nodes, then the rest. Empty if the models are equal.
pub fn differences(expected: &ModelProto, found: &ModelProto, limit: usize) -> Vec<String> {
    if expected == found {
        return Vec::new();
    }
    let empty = Default::default();
    let graph = expected.graph.as_ref().unwrap_or(&empty);
    let other = found.graph.as_ref().unwrap_or(&empty);
    let mut all = tensors(&graph.initializer, &other.initializer, limit);
    all.extend(nodes(&graph.node, &other.node, limit));
    if graph.input != other.input || graph.output != other.output {
        all.push("the inputs or outputs of the graph differ".into());
    }
    if graph.value_info != other.value_info {
        all.push("the declared types of values differ".into());
    }
    if expected.metadata_props != found.metadata_props {
        all.push("the metadata differ".into());
    }
    if expected.opset_import != found.opset_import || expected.ir_version != found.ir_version {
        all.push("the versions of operators or of the format differ".into());
    }
    if all.is_empty() {
        all.push("tensors and nodes are equal, other fields of the file differ".into());
    }
    all.truncate(limit);
    all
}

fn tensors(expected: &[TensorProto], found: &[TensorProto], limit: usize) -> Vec<String> {
    let name = |tensor: &TensorProto| tensor.name.clone().unwrap_or_default();
    let there: BTreeMap<String, &TensorProto> = found.iter().map(|one| (name(one), one)).collect();
    let here: BTreeMap<String, &TensorProto> =
        expected.iter().map(|one| (name(one), one)).collect();
    let changed = expected
        .iter()
        .filter_map(|tensor| match there.get(&name(tensor)) {
            None => Some(format!("tensor `{}` is missing", tensor.title())),
            Some(other) => tensor_difference(tensor, other),
        });
    let added = found.iter().filter(|one| !here.contains_key(&name(one)));
    let added = added.map(|one| format!("tensor `{}` is added", one.title()));
    let mut all: Vec<String> = changed.chain(added).take(limit).collect();
    if all.is_empty() && expected != found {
        all.push("the tensors are in another order".into());
    }
    all
}

fn tensor_difference(expected: &TensorProto, found: &TensorProto) -> Option<String> {
    if expected == found {
        return None;
    }
    let title = expected.title();
    if (&expected.dims, expected.data_type) != (&found.dims, found.data_type) {
        return Some(format!("tensor `{title}` has another type or shape"));
    }
    let (Some(a), Some(b)) = (&expected.raw_data, &found.raw_data) else {
        return Some(format!("tensor `{title}` has other values"));
    };
    let mut bytes = a.iter().zip(b.iter()).enumerate();
    let count = bytes.clone().filter(|(_, (a, b))| a != b).count();
    Some(match bytes.find(|(_, (a, b))| a != b) {
        Some((place, (a, b))) => format!(
            "tensor `{title}` differs in {count} of {} bytes; byte {place} is {b} and would be {a}",
            expected.raw_data.as_ref().map_or(0, |raw| raw.len())
        ),
        None => format!("tensor `{title}` has other values"),
    })
}

fn nodes(expected: &[NodeProto], found: &[NodeProto], limit: usize) -> Vec<String> {
    let pairs = expected.iter().zip(found).filter(|(a, b)| a != b);
    let changed = pairs.map(|(a, b)| match a.op_type == b.op_type {
        true => format!(
            "node `{}` ({}) has other inputs, outputs or attributes",
            b.title(),
            b.operator()
        ),
        false => format!(
            "node `{}` is {} and would be {}",
            b.title(),
            b.operator(),
            a.operator()
        ),
    });
    let mut all: Vec<String> = changed.take(limit).collect();
    if expected.len() != found.len() {
        let text = format!(
            "it has {} nodes in place of {}",
            found.len(),
            expected.len()
        );
        all.insert(0, text);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{DataType, GraphProto};

    fn model(values: &'static [u8], operator: &str) -> ModelProto {
        let weight = TensorProto::from_raw("w", DataType::Int8, &[4], values.into());
        ModelProto {
            graph: Some(GraphProto {
                node: vec![NodeProto::new(operator, "n", &["x", "w"], &["y"])],
                initializer: vec![weight],
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn a_weight_that_was_changed_by_one_is_named_with_its_place() {
        let (one, other) = (model(&[1, 2, 3, 4], "Add"), model(&[1, 2, 4, 4], "Add"));
        assert!(differences(&one, &one, 5).is_empty());
        let found = differences(&one, &other, 5);
        let text = "tensor `w` differs in 1 of 4 bytes; byte 2 is 4 and would be 3";
        assert_eq!(found, [text]);
    }

    #[test]
    fn nodes_tensors_and_other_fields_are_told_apart() {
        let one = model(&[1, 2, 3, 4], "Add");
        let found = differences(&one, &model(&[1, 2, 3, 4], "Mul"), 5);
        assert_eq!(found, ["node `n` is Mul and would be Add"]);
        let mut renamed = one.clone();
        let graph = renamed.graph.as_mut().unwrap();
        graph.initializer[0].name = Some("v".into());
        let found = differences(&one, &renamed, 5);
        assert_eq!(found, ["tensor `w` is missing", "tensor `v` is added"]);
        assert_eq!(differences(&one, &renamed, 1).len(), 1);
        let mut told = one.clone();
        told.doc_string = Some("by hand".into());
        assert!(differences(&one, &told, 5)[0].contains("other fields"));
    }
}
