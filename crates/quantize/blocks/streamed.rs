//! Block-wise weights of a model whose large constants are still in files.
//!
//! The graph is the file's own: only the products with quantized weights change. Their constants
//! become recipes, which are run later.

use std::collections::HashMap;

use super::{BlockForm, BlockMethod, BlockSettings, NO_WEIGHT, reason};
use crate::dynamic::plain_gemm;
use crate::recipe::{MatrixLayout, PlannedRecipe, RecipeKind};
use crate::rewrite::{NotQuantized, Rewriter};
use crate::{MICROSOFT, QuantizeError, Quantized};
use octet_graph::Model;
use octet_onnx::schema::{AttributeProto, DataType, NodeProto, TensorProto};

/// Quantizes the weights of a model in blocks, without their bytes: the recipes compute them.
///
/// `of` returns the settings of a node. Nodes in `keep_float` stay float, and so do other operators
/// than `operators`, if given.
pub fn plan_blocks(
    model: &Model,
    of: &dyn Fn(&NodeProto) -> BlockSettings,
    keep_float: &[String],
    operators: Option<&[String]>,
) -> Result<(Quantized, Vec<PlannedRecipe>), QuantizeError> {
    let mut planned = PlannedBlocks::default();
    let quantized = Rewriter::new(model, keep_float, operators)?.run(|graph, node| {
        let settings = of(node);
        settings.check().map_err(|error| QuantizeError::OfNode {
            node: node.title().into(),
            error: Box::new(error),
        })?;
        planned.rewrite(graph, node, &settings)
    })?;
    Ok((quantized, planned.recipes))
}

#[derive(Default)]
struct PlannedBlocks {
    recipes: Vec<PlannedRecipe>,
    /// Index of the recipe by weight and settings.
    known: HashMap<(String, String), usize>,
}

impl PlannedBlocks {
    fn rewrite<'a>(
        &mut self,
        graph: &mut Rewriter<'a>,
        node: &'a NodeProto,
        settings: &BlockSettings,
    ) -> Result<(), NotQuantized> {
        let transposed = match node.operator().as_str() {
            "MatMul" => false,
            "Gemm" => node.int("transB").unwrap_or(0) != 0,
            operator => return Err(reason(operator).into()),
        };
        plain_gemm(node)?;
        if settings.form != BlockForm::MatMulNBits || settings.method == BlockMethod::Gptq {
            return Err("this form or method of blocks needs the whole weight in memory".into());
        }
        let weight = weight(graph.model, node)?;
        let matrix = matrix(weight, transposed)?;
        let bits = usize::from(settings.bits);
        let stored = weight.element()?.bits().unwrap_or(0);
        let padded = matrix.rows.next_multiple_of(settings.size);
        if padded * bits >= matrix.rows * stored {
            return Err(
                "its columns are so short that blocks would need more bytes than float32".into(),
            );
        }
        let recipe = self.recipe(graph, weight, matrix, settings)?;
        let names = &self.recipes[recipe].outputs;
        let mut inputs = vec![node.input_at(0).unwrap_or_default()];
        inputs.extend(names.iter().map(String::as_str));
        let output = node.output.first().map_or("", String::as_str);
        let title = graph.fresh(&format!("{}_Q{bits}", node.title()));
        let product = match node.input_at(2) {
            Some(_) => graph.fresh(&format!("{output}_MatMul")),
            None => output.to_owned(),
        };
        let mut multiply = NodeProto {
            domain: Some(MICROSOFT.to_owned()),
            ..NodeProto::new("MatMulNBits", &title, &inputs, &[&product])
        };
        let attributes = [
            ("K", matrix.rows),
            ("N", matrix.columns),
            ("bits", bits),
            ("block_size", settings.size),
            ("accuracy_level", settings.accuracy_level.into()),
        ];
        for (key, value) in attributes {
            // Some runtimes reject the accuracy level, so 0 leaves it out.
            if key != "accuracy_level" || value > 0 {
                multiply.set(AttributeProto::int(key, value as i64));
            }
        }
        graph.push(multiply);
        if let Some(bias) = node.input_at(2) {
            let title = graph.fresh(&format!("{}_Add", node.title()));
            graph.push(NodeProto::new("Add", &title, &[&product, bias], &[output]));
        }
        Ok(())
    }

    /// The recipe of a weight, which all its nodes with the same settings share.
    fn recipe(
        &mut self,
        graph: &mut Rewriter,
        weight: &TensorProto,
        matrix: MatrixLayout,
        settings: &BlockSettings,
    ) -> Result<usize, NotQuantized> {
        let name = weight.name.clone().unwrap_or_default();
        let key = (name.clone(), format!("{matrix:?} {settings:?}"));
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let mut outputs = vec![
            graph.fresh(&format!("{name}_Q{}", settings.bits)),
            graph.fresh(&format!("{name}_scales")),
        ];
        if !settings.is_symmetric() {
            outputs.push(graph.fresh(&format!("{name}_zero_points")));
        }
        let planned = PlannedRecipe {
            source: weight.clone(),
            kind: RecipeKind::Blocks(matrix, settings.clone(), weight.element()?),
            outputs,
        };
        for constant in planned.placeholders()? {
            graph.constant(constant);
        }
        self.recipes.push(planned);
        self.known.insert(key, self.recipes.len() - 1);
        Ok(self.recipes.len() - 1)
    }
}

/// The constant in a node's weight slot.
fn weight<'a>(model: &'a Model, node: &NodeProto) -> Result<&'a TensorProto, NotQuantized> {
    let constants = &model.graph.initializers;
    let of = |slot: usize| constants.get(node.input_at(slot)?);
    match (of(0), of(1)) {
        (_, None) => Err(NO_WEIGHT.into()),
        (Some(_), Some(_)) => Err("its input is a constant".into()),
        (None, Some(weight)) => Ok(weight),
    }
}

/// The order of a weight.
fn matrix(weight: &TensorProto, transposed: bool) -> Result<MatrixLayout, NotQuantized> {
    let element = weight.element()?;
    if !element.is_half() && element != DataType::Float {
        return Err("its weight is not of float32 or 16-bit floats".into());
    }
    let &[first, second] = weight.shape()?.as_slice() else {
        return Err("its weight is not a matrix".into());
    };
    if first == 0 || second == 0 {
        return Err("its weight is empty".into());
    }
    let (rows, columns) = match transposed {
        true => (second, first),
        false => (first, second),
    };
    Ok(MatrixLayout {
        rows,
        columns,
        transposed,
    })
}
