//! MatMul and Gemm: a MatMulInteger on the quantized activation, its accumulators dequantized.

use super::{Dynamic, product, scaled};
use crate::quantized_names::QuantizedNames;
use crate::recipe::IntegersPlan;
use crate::rewrite::{ConstantWeight, NotQuantized, Rewriter};
use crate::stays_float::StaysFloat;
use octet_graph::Node;

impl Dynamic<'_> {
    /// Rewrites a MatMul with a constant second input.
    pub(super) fn matmul<'a>(
        &self,
        graph: &mut Rewriter<'a>,
        node: &'a Node,
    ) -> Result<(), NotQuantized> {
        graph.float_activations(node)?;
        let weight = graph.weight(node, 1)?;
        let weights = match weight.shape.as_slice() {
            [] | [_] => return Err(StaysFloat::NotAMatrix.into()),
            [_, _] => self.weight(graph, &weight, Some(1))?,
            [.., columns] => {
                let last = weight.shape.len() - 1;
                self.around_zero(graph, &weight, last, &[*columns])?
            }
        };
        let input = node.input_at(0).unwrap_or_default();
        let output = node.output.first().map_or("", String::as_str);
        multiply(graph, node.title(), input, &weights, output)
    }

    /// Rewrites a Gemm as MatMulInteger and Add. This requires alpha and beta of 1 and no transA.
    pub(super) fn gemm<'a>(
        &self,
        graph: &mut Rewriter<'a>,
        node: &'a Node,
    ) -> Result<(), NotQuantized> {
        graph.float_activations(node)?;
        let weight = graph.weight(node, 1)?;
        plain_gemm(node)?;
        if weight.shape.len() != 2 {
            return Err(StaysFloat::NotAMatrix.into());
        }
        let weights = match node.int("transB").unwrap_or(0) != 0 {
            true => self.transposed(graph, &weight)?,
            false => self.weight(graph, &weight, Some(1))?,
        };
        let input = node.input_at(0).unwrap_or_default();
        let output = node.output.first().map_or("", String::as_str);
        let title = format!("{}_MatMul", node.title());
        match node.input_at(2) {
            Some(bias) => {
                let unbiased = graph.fresh(&format!("{output}_MatMul"));
                multiply(graph, &title, input, &weights, &unbiased)?;
                let title = graph.fresh(&format!("{}_Add", node.title()));
                graph.push(Node::new("Add", &title, &[&unbiased, bias], &[output]));
            }
            None => multiply(graph, &title, input, &weights, output)?,
        }
        Ok(())
    }

    /// Writes the transposed matrix, which MatMulInteger needs.
    fn transposed(
        &self,
        graph: &mut Rewriter,
        weight: &ConstantWeight,
    ) -> Result<QuantizedNames, NotQuantized> {
        graph.shared(weight.name, "transposed", |graph| {
            let &[rows, columns] = weight.shape.as_slice() else {
                return Err(StaysFloat::NotAMatrix.into());
            };
            let plan = IntegersPlan {
                integers: vec![columns, rows],
                transposed: Some([rows, columns]),
                ..IntegersPlan::in_order(self.form(Some(0)), &weight.shape)
            };
            graph.plan_integers(weight, plan)
        })
    }
}

/// Adds a MatMulInteger named after `title`, and the nodes that dequantize it.
fn multiply(
    graph: &mut Rewriter,
    title: &str,
    input: &str,
    weights: &QuantizedNames,
    output: &str,
) -> Result<(), NotQuantized> {
    let name = graph.fresh(&format!("{title}_quant"));
    let node = Node::new("MatMulInteger", &name, &[], &[]);
    let (sums, scale) = product(graph, node, input, weights, output)?;
    scaled(graph, &name, &sums, [&scale, &weights.scale], output);
    Ok(())
}

/// Checks that a Gemm has alpha and beta of 1 and no transA. A MatMul always passes.
pub(crate) fn plain_gemm(node: &Node) -> Result<(), NotQuantized> {
    let scales = |name| node.float(name).unwrap_or(1.0) != 1.0;
    if scales("alpha") || (scales("beta") && node.input_at(2).is_some()) {
        return Err(StaysFloat::ScaledProduct.into());
    }
    if node.int("transA").unwrap_or(0) != 0 {
        return Err(StaysFloat::TransposedInput.into());
    }
    Ok(())
}
