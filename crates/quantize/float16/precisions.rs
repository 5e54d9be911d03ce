//! The precision of each value under its own name, and its name in the other precision.
//!
//! A value keeps its name in the precision of its producer. Graph inputs, graph outputs and values
//! that a subgraph reads keep theirs in the precision that they must have. A Cast makes the other
//! form once, at its first use.

use std::collections::{HashMap, HashSet};

use super::KeptPorts;
use crate::recipe::{PlannedRecipe, RecipeKind};
use crate::rewrite::{NotQuantized, Rewriter};
use crate::stays_float::StaysFloat;
use octet_graph::{Graph, Node, Slot, TensorType, Use};
use octet_onnx::schema::{DataType, TensorProto, ValueInfoProto};

/// The precision of a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// float32.
    Single,
    /// float16.
    Half,
}

impl Precision {
    fn element(self) -> DataType {
        match self {
            Precision::Single => DataType::Float,
            Precision::Half => DataType::Float16,
        }
    }
}

/// The float values of a graph, with their precisions.
pub(super) struct FloatValues {
    /// FloatValues and constants that are float16 under their own names.
    half: HashSet<String>,
    /// The name of the other form, if it exists.
    other: HashMap<String, String>,
    /// The types of the values that nodes write under other names.
    pub(super) declared: Vec<ValueInfoProto>,
    /// Constants that recipes of an earlier rewrite compute; they become float16 there.
    pub(super) computed: HashSet<String>,
}

impl FloatValues {
    /// Decides for every value. `reasons` has the reason of each node that stays float32.
    pub(super) fn new(
        known: &Rewriter,
        reasons: &[Option<StaysFloat>],
        kept: &KeptPorts,
        computed: HashSet<String>,
    ) -> FloatValues {
        let graph = &known.model.graph;
        let produced = graph.nodes().iter().zip(reasons);
        let produced =
            produced.flat_map(|(node, reason)| node.output.iter().map(move |o| (o, reason)));
        let mut half = HashSet::new();
        for (name, reason) in produced.filter(|(name, _)| known.is_float(name)) {
            let wanted = if graph.is_output(name) {
                !kept.contains(name)
            } else {
                reason.is_none()
            };
            if wanted && !graph.is_captured(name) {
                half.insert(name.clone());
            }
        }
        let inputs = graph.inputs.iter().filter_map(|v| v.name.clone());
        let inputs = inputs.filter(|name| !kept.contains(name) && known.is_float(name));
        half.extend(inputs.filter(|name| !graph.is_captured(name)));
        let halved = |name: &str| known.is_float(name) && only_halves(graph, reasons, name);
        let constants = graph.initializers.iter().filter_map(|t| t.name.clone());
        half.extend(constants.filter(|name| halved(name)));
        FloatValues {
            half,
            other: HashMap::new(),
            declared: Vec::new(),
            computed,
        }
    }

    /// True if a value is float16 under its own name, provided that it is a float.
    pub(super) fn is_half(&self, name: &str) -> bool {
        self.half.contains(name)
    }

    fn precision(&self, name: &str) -> Precision {
        match self.is_half(name) {
            true => Precision::Half,
            false => Precision::Single,
        }
    }

    /// The name under which a node reads a value in the precision that it needs.
    pub(super) fn read_name(
        &mut self,
        graph: &mut Rewriter,
        name: &str,
        precision: Precision,
    ) -> Result<String, NotQuantized> {
        let constant = graph.model.graph.initializers.get(name);
        if let Some(tensor) = constant.filter(|_| precision == Precision::Half) {
            return self.half_constant(graph, name, tensor);
        }
        if self.precision(name) == precision {
            return Ok(name.to_owned());
        }
        if let Some(other) = self.other.get(name) {
            return Ok(other.clone());
        }
        let other = graph.fresh(&format!("{name}_{}", suffix(precision)));
        let cast = cast(graph, name, &other, precision);
        graph.push(cast);
        self.other.insert(name.to_owned(), other.clone());
        Ok(other)
    }

    /// The name under which a node writes a value. Adds a Cast if that is not the value's own name.
    pub(super) fn written_name(
        &mut self,
        graph: &mut Rewriter,
        name: &str,
        precision: Precision,
        casts: &mut Vec<Node>,
    ) -> String {
        let wanted = self.precision(name);
        if wanted == precision {
            return name.to_owned();
        }
        let other = graph.fresh(&format!("{name}_{}", suffix(precision)));
        casts.push(cast(graph, &other, name, wanted));
        let kind = TensorType {
            element: precision.element(),
            shape: None,
        };
        self.declared.push(ValueInfoProto::new(&other, &kind));
        self.other.insert(name.to_owned(), other.clone());
        other
    }

    /// A float16 constant, under its own name where no node needs it as float32.
    fn half_constant(
        &mut self,
        graph: &mut Rewriter,
        name: &str,
        tensor: &TensorProto,
    ) -> Result<String, NotQuantized> {
        if let Some(other) = self.other.get(name) {
            return Ok(other.clone());
        }
        let other = match self.is_half(name) {
            true => name.to_owned(),
            false => graph.fresh(&format!("{name}_{}", suffix(Precision::Half))),
        };
        if self.computed.contains(name) {
            graph.constant(TensorProto {
                data_type: Some(DataType::Float16 as i32),
                ..tensor.clone()
            });
        } else {
            graph.planned(PlannedRecipe {
                source: tensor.clone(),
                kind: RecipeKind::Half,
                outputs: vec![other.clone()],
                views: Vec::new(),
            })?;
        }
        self.other.insert(name.to_owned(), other.clone());
        Ok(other)
    }
}

/// True if every consumer of a value is a float16 node.
fn only_halves(graph: &Graph, reasons: &[Option<StaysFloat>], name: &str) -> bool {
    let half = |reader: &Use| reader.slot != Slot::Captured && reasons[reader.node].is_none();
    !graph.is_output(name) && graph.consumers(name).iter().all(half)
}

fn suffix(precision: Precision) -> &'static str {
    match precision {
        Precision::Single => "float32",
        Precision::Half => "float16",
    }
}

fn cast(graph: &mut Rewriter, from: &str, to: &str, precision: Precision) -> Node {
    let title = graph.fresh(&format!("{to}_Cast"));
    Node::cast(&title, from, to, precision.element())
}
