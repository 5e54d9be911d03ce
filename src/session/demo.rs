//! Random samples: they try out a model before real samples are at hand.

use std::collections::{BTreeMap, HashMap};

use super::{Error, Session};
use crate::graph::operators::{Operator, Property};
use crate::onnx::schema::GraphProto;
use crate::prepare::position;
use crate::samples::{self, Encoded};

impl Session {
    /// Random sample for the model's inputs. Its results mean nothing for accuracy.
    pub fn demo_sample(&self, seed: u64, index: u64) -> Result<Encoded, Error> {
        let tables = self
            .opened
            .header
            .graph
            .as_ref()
            .map(tables)
            .unwrap_or_default();
        Ok(samples::demo(&self.input_specs(), &tables, seed, index)?)
    }
}

/// Row count of the smallest table that each value indexes through Gather. The table of a quantized
/// model is dequantized before, or inside the node.
pub(super) fn tables(graph: &GraphProto) -> BTreeMap<String, u64> {
    let constants = graph.initializer.iter();
    let mut shapes: HashMap<_, _> = constants.map(|t| (t.name.as_deref(), &t.dims)).collect();
    let mut row_counts = BTreeMap::new();
    // For each value that is a copy: the values it was copied from. Nodes are in the order they
    // run.
    let mut moved: HashMap<&str, Vec<&str>> = HashMap::new();
    for node in &graph.node {
        let origins = |slot: usize| match node.input_at(slot) {
            Some(name) => moved.get(name).cloned().unwrap_or_else(|| vec![name]),
            None => Vec::new(),
        };
        let axis = match (node.is("Gather"), node.op_type.as_deref()) {
            (true, _) => Some("axis"),
            (_, Some("GatherBlockQuantized")) => Some("gather_axis"),
            _ => None,
        };
        if let Some(axis) = axis.map(|name| node.int(name).unwrap_or(0)) {
            let rows = shapes
                .get(&node.input_at(0))
                .and_then(|dims| u64::try_from(dims[position(axis, dims.len())?]).ok());
            for (places, rows) in origins(1).into_iter().zip(rows.iter().cycle()) {
                let least = row_counts.entry(places.to_string()).or_insert(*rows);
                *least = (*least).min(*rows);
            }
        }
        if node.is("DequantizeLinear")
            && let Some(&shape) = shapes.get(&node.input_at(0))
        {
            shapes.insert(node.output.first().map(String::as_str), shape);
        }
        let from: Vec<&str> = if node.is("Concat") {
            (0..node.input.len()).flat_map(origins).collect()
        } else if Operator::named(&node.operator()).has(Property::KeepsIndices) {
            origins(0)
        } else {
            continue;
        };
        if let Some(to) = node.output.first() {
            moved.insert(to, from);
        }
    }
    row_counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::{AttributeProto, NodeProto, TensorProto};

    #[test]
    fn table_indices_are_traced_through_moves() {
        let node = NodeProto::new;
        let graph = GraphProto {
            node: vec![
                node("Cast", "c", &["ids"], &["wide"]),
                node("Concat", "j", &["last", "wide"], &["long"]),
                node("Unsqueeze", "u", &["long", "axes"], &["tall"]),
                node("Gather", "words", &["words", "tall"], &["a"]),
                node("Gather", "kinds", &["kinds", "ids"], &["b"])
                    .with(AttributeProto::int("axis", -1)),
                node("DequantizeLinear", "d", &["bytes", "scale"], &["floats"]),
                node("Gather", "dequantized", &["floats", "places"], &["f"]),
                node(
                    "GatherBlockQuantized",
                    "blocks",
                    &["bytes", "blocks", "scale"],
                    &["g"],
                ),
                node("Add", "add", &["other", "one"], &["more"]),
                node("Gather", "far", &["kinds", "more"], &["d"]),
                node("Gather", "made", &["a", "third"], &["e"]),
            ],
            initializer: vec![
                TensorProto::from_f32("words", &[100, 2], &[0.0; 200]),
                TensorProto::from_f32("kinds", &[5, 3], &[0.0; 15]),
                TensorProto::from_f32("bytes", &[7, 2], &[0.0; 14]),
            ],
            ..Default::default()
        };
        let row_counts = tables(&graph);
        let known = [
            ("ids", 3),
            ("last", 100),
            ("more", 5),
            ("places", 7),
            ("blocks", 7),
        ];
        let known = known.map(|(name, rows)| (name.to_string(), rows));
        assert_eq!(row_counts, BTreeMap::from(known));
    }
}
