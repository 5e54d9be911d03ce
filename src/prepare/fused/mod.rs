//! Operators that ONNX Runtime's optimizer makes of several are written as those again, and so are those that ONNX has of late for
//! several of its own: what is quantized, and what any engine runs, is the same in models of any age.
//!
//! A form that is not known here (ONNX Runtime's attention with a past, convolutions in blocks of channels) stays as it is.

mod activation;
mod attention;
mod heads;
mod norm;
mod product;

use std::collections::{HashMap, HashSet};

use super::shapes::{self, Known, Types};
use crate::graph::{Dim, Graph, MICROSOFT, Model, Steps};
use crate::onnx::schema::{DataType, NodeProto};

/// What tells Attention how many words of each line count.
const EMBEDDING: &str = "com.microsoft::EmbedLayerNormalization";

/// Whether an operator, named with its domain, is one of those that are written out.
pub fn is_fused(operator: &str) -> bool {
    if matches!(operator, "Attention" | "Swish") {
        return true;
    }
    let name = operator.strip_prefix(MICROSOFT);
    matches!(
        name.and_then(|name| name.strip_prefix("::")),
        Some(
            "FusedConv"
                | "FusedGemm"
                | "FusedMatMul"
                | "TransposeMatMul"
                | "Gelu"
                | "BiasGelu"
                | "FastGelu"
                | "QuickGelu"
                | "SkipLayerNormalization"
                | "Attention"
        )
    )
}

/// Writes out all that can be. Returns how many were.
pub(super) fn write_out(model: &mut Model) -> usize {
    let mut count = 0;
    loop {
        // What one reads another may have made: then its shape is known only now.
        let written = pass(model);
        if written == 0 {
            return count;
        }
        count += written;
    }
}

fn pass(model: &mut Model) -> usize {
    let opset = model.opset();
    // Its optimizer writes ONNX's own norm into models of operator sets that have none yet, too.
    let fused = |node: &NodeProto| {
        let early = opset < norm::OPSET_WITH_NORM && node.is("LayerNormalization");
        early || is_fused(&node.operator())
    };
    if !model.graph.nodes.iter().any(fused) {
        return 0;
    }
    let types = shapes::infer(&model.graph);
    let steps = Steps::new(model.graph.names());
    let nodes = std::mem::take(&mut model.graph.nodes);
    let embeddings = nodes
        .iter()
        .filter(|node| node.operator() == EMBEDDING)
        .filter_map(|node| node.output.get(1).cloned());
    let mut writer = Writer {
        opset,
        types: &types,
        graph: &model.graph,
        counts: embeddings.collect(),
        turned: HashMap::new(),
        steps,
    };
    let mut written = 0;
    for node in nodes {
        if fused(&node) && writer.write(&node).is_some() {
            written += 1;
        } else {
            writer.steps.nodes.push(node);
        }
    }
    let steps = writer.steps;
    steps.into_graph(&mut model.graph);
    written
}

struct Writer<'a> {
    opset: i64,
    types: &'a Types,
    /// For its constants; its nodes are those that are being written.
    graph: &'a Graph,
    /// Values that say how many words of each line count.
    counts: HashSet<String>,
    /// Matrices that were turned over, by the names they had.
    turned: HashMap<String, String>,
    steps: Steps,
}

impl Writer<'_> {
    /// Writes the node out; `None`, and nothing is written, where its form is not known.
    fn write(&mut self, node: &NodeProto) -> Option<()> {
        let output = node.output.first()?;
        let first = node.input_at(0)?;
        let of_floats = match self.known(Some(first)) {
            Some(known) => known.element == DataType::Float,
            None => true,
        };
        let title = node.title();
        if !of_floats {
            return None;
        }
        match node.op_type.as_deref()? {
            "FusedConv" => self.activated(node, "Conv"),
            "FusedGemm" => self.activated(node, "Gemm"),
            "FusedMatMul" | "TransposeMatMul" => self.product(node),
            "Gelu" => {
                self.gelu(first, title, output, false);
                Some(())
            }
            "BiasGelu" | "FastGelu" => {
                let is_fast = node.op_type.as_deref() == Some("FastGelu");
                let sum = match node.input_at(1) {
                    Some(bias) => self.steps.step("Add", &[first, bias], title, "biased"),
                    None => first.to_owned(),
                };
                self.gelu(&sum, title, output, is_fast);
                Some(())
            }
            "QuickGelu" => {
                self.gated(node, first, activation::QUICK, output);
                Some(())
            }
            "Swish" => {
                self.gated(node, first, 1.0, output);
                Some(())
            }
            "SkipLayerNormalization" => self.norm_of_sum(node),
            "LayerNormalization" => self.early_norm(node),
            "Attention" if node.is("Attention") => self.heads(node),
            "Attention" => self.attention(node),
            _ => None,
        }
    }

    /// What is known of a value.
    fn known(&self, name: Option<&str>) -> Option<&Known> {
        self.types.get(name?)
    }

    fn shape(&self, name: Option<&str>) -> Option<&[Dim]> {
        self.known(name)?.shape.as_deref()
    }
}
