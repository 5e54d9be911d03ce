//! MatMul and Gemm: MatMulInteger on the measured activation, its sums scaled back to floats.

use super::{Dynamic, product, scaled};
use crate::onnx::schema::NodeProto;
use crate::quantize::integers::{Quantity, parameters};
use crate::quantize::rewrite::{ConstantWeight, Rewriter, Stop};

impl Dynamic<'_> {
    /// A MatMul whose second input is a constant.
    pub(super) fn matmul<'a>(
        &self,
        graph: &mut Rewriter<'a>,
        node: &'a NodeProto,
    ) -> Result<(), Stop> {
        graph.float_activations(node)?;
        let weight = graph.weight(node, 1)?;
        let weights = match weight.shape.as_slice() {
            [] | [_] => return Err("its weight is no matrix".into()),
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

    /// A Gemm that is a MatMul and an Add: nothing scaled, the first input not turned over.
    pub(super) fn gemm<'a>(
        &self,
        graph: &mut Rewriter<'a>,
        node: &'a NodeProto,
    ) -> Result<(), Stop> {
        graph.float_activations(node)?;
        let weight = graph.weight(node, 1)?;
        plain_gemm(node)?;
        if weight.shape.len() != 2 {
            return Err("its weight is no matrix".into());
        }
        let weights = match node.int("transB").unwrap_or(0) != 0 {
            true => self.turned(graph, &weight)?,
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
                graph.push(NodeProto::new("Add", &title, &[&unbiased, bias], &[output]));
            }
            None => multiply(graph, &title, input, &weights, output)?,
        }
        Ok(())
    }

    /// The integers of a matrix turned over, as MatMulInteger wants it.
    fn turned(&self, graph: &mut Rewriter, weight: &ConstantWeight) -> Result<Quantity, Stop> {
        graph.shared(weight.name, "turned", |graph| {
            let turned = weight.tensor.transposed()?;
            let turned = turned.ok_or("its weight is no matrix")?;
            let found = parameters(&turned, self.form(Some(1)))?;
            graph.write_constant(weight.name, &turned, &found)
        })
    }
}

/// MatMulInteger under the name `title`, scaled back.
fn multiply(
    graph: &mut Rewriter,
    title: &str,
    input: &str,
    weights: &Quantity,
    output: &str,
) -> Result<(), Stop> {
    let name = graph.fresh(&format!("{title}_quant"));
    let node = NodeProto::new("MatMulInteger", &name, &[], &[]);
    let (sums, scale) = product(graph, node, input, weights, output)?;
    scaled(graph, &name, &sums, [&scale, &weights.scale], output);
    Ok(())
}

/// That a Gemm scales nothing and takes its first input as it lies; a MatMul never does.
pub(in crate::quantize) fn plain_gemm(node: &NodeProto) -> Result<(), Stop> {
    let scales = |name| node.float(name).unwrap_or(1.0) != 1.0;
    if scales("alpha") || (scales("beta") && node.input_at(2).is_some()) {
        return Err("it scales its product or its bias".into());
    }
    if node.int("transA").unwrap_or(0) != 0 {
        return Err("it turns its first input over".into());
    }
    Ok(())
}
