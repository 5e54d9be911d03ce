//! Decomposes fused operators into those they stand for: operators of ONNX Runtime's optimizer, and
//! recent composite operators of ONNX. Quantization and engines then see the same operators in
//! models of any age.
//!
//! Unsupported variants stay as they are, such as ONNX Runtime's attention with a past and
//! convolutions in a blocked channel layout.

mod activation;
mod attention;
mod matmul;
mod norm;
mod onnx_attention;

use std::collections::{HashMap, HashSet};

use crate::inferred_value::{InferredValue, Types};
use crate::operators::{Operator, Property};
use crate::shapes;
use crate::{Dim, Graph, Model, Steps};
use octet_onnx::schema::{DataType, NodeProto};

/// The operator whose second output holds the token counts that Attention reads.
const EMBEDDING: &str = "com.microsoft::EmbedLayerNormalization";

/// True for an operator, named with its domain, that this pass decomposes.
pub fn is_fused(operator: &str) -> bool {
    Operator::named(operator).has(Property::Fused)
}

/// Decomposes all nodes that it supports. Returns the number of nodes.
pub(super) fn decompose(model: &mut Model) -> usize {
    let mut count = 0;
    loop {
        // A decomposed node may produce the input of another one, whose shape the next pass knows.
        let written = pass(model);
        if written == 0 {
            return count;
        }
        count += written;
    }
}

fn pass(model: &mut Model) -> usize {
    let opset = model.opset();
    // ONNX Runtime's optimizer also writes LayerNormalization into models whose opset lacks it.
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
    let mut decomposer = FusedOperatorDecomposer {
        opset,
        types: &types,
        graph: &model.graph,
        token_counts: embeddings.collect(),
        transposed: HashMap::new(),
        steps,
    };
    let mut written = 0;
    for node in nodes {
        if fused(&node) && decomposer.write(&node).is_some() {
            written += 1;
        } else {
            decomposer.steps.nodes.push(node);
        }
    }
    let steps = decomposer.steps;
    steps.into_graph(&mut model.graph);
    written
}

struct FusedOperatorDecomposer<'a> {
    opset: i64,
    types: &'a Types,
    /// Read for its constants; its nodes were moved out.
    graph: &'a Graph,
    /// Values that hold the number of valid tokens in each sequence.
    token_counts: HashSet<String>,
    /// Transposed constant matrices by their original names.
    transposed: HashMap<String, String>,
    steps: Steps,
}

impl FusedOperatorDecomposer<'_> {
    /// Decomposes a node. `None` if its variant is unsupported; nothing is written then.
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
            "FusedConv" => self.fused_activation(node, "Conv"),
            "FusedGemm" => self.fused_activation(node, "Gemm"),
            "FusedMatMul" | "TransposeMatMul" => self.matmul(node),
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
                self.sigmoid_gate(node, first, activation::QUICK_GELU_ALPHA, output);
                Some(())
            }
            "Swish" => {
                self.sigmoid_gate(node, first, 1.0, output);
                Some(())
            }
            "SkipLayerNormalization" => self.norm_of_sum(node),
            "LayerNormalization" => self.early_norm(node),
            "Attention" if node.is("Attention") => self.onnx_attention(node),
            "Attention" => self.attention(node),
            _ => None,
        }
    }

    /// Inferred type and shape of a value.
    fn known(&self, name: Option<&str>) -> Option<&InferredValue> {
        self.types.get(name?)
    }

    fn shape(&self, name: Option<&str>) -> Option<&[Dim]> {
        self.known(name)?.shape.as_deref()
    }
}
