//! Block-wise weights of a model whose large constants are still in files.
//!
//! The graph is the file's own: only the nodes with quantized weights change. Their constants become
//! recipes, which are run later. A constant has one recipe for all its nodes with equal settings: the
//! embedding table of a language model and its head share theirs.

use std::collections::{BTreeSet, HashMap};

use super::four_bit_floats;
use super::matmul_nbits::{self, multiply};
use super::{is_transposed, own_settings};
use crate::blocks::{BlockForm, BlockMethod, BlockSettings};
use crate::dynamic::plain_gemm;
use crate::planned_model::{PlannedModel, RefusedConstants};
use crate::recipe::{MatrixLayout, PlannedRecipe, RecipeKind};
use crate::rewrite::{NotQuantized, Rewriter};
use crate::stays_float::StaysFloat;
use crate::{MICROSOFT, QuantizeError};
use octet_graph::{Attribute, Model, Node};
use octet_onnx::schema::{DataType, TensorProto};
use octet_stats::CalibrationStatistics;

/// Quantizes the weights of a model in blocks, without their bytes: the recipes compute them.
///
/// `of` returns the settings of a node. Nodes in `keep_float` stay float, and so do other operators
/// than `operators`, if given.
/// Weights in `refused` stay float. The method GPTQ needs the weights in memory and the Gram matrices
/// in `seen`; its constants are computed at once.
pub(crate) fn plan_blocks(
    model: &Model,
    of: &dyn Fn(&Node) -> BlockSettings,
    keep_float: &[String],
    operators: Option<&[String]>,
    refused: &RefusedConstants,
    seen: Option<&CalibrationStatistics>,
) -> Result<PlannedModel, QuantizeError> {
    let mut planned = PlannedBlocks {
        known: HashMap::new(),
        transposes: BTreeSet::new(),
    };
    let graph = Rewriter::new(model, keep_float, operators, refused)?;
    let (mut quantized, recipes) = graph.run(|graph, node| {
        let settings = own_settings(node, of)?;
        if settings.form == BlockForm::Dequantize {
            return Err(StaysFloat::WholeWeightNeeded.into());
        }
        match (settings.method, seen) {
            _ if node.is("Gather") && settings.embeddings => planned.gather(graph, node, &settings),
            (BlockMethod::Gptq, Some(_)) => matmul_nbits::rewrite(graph, node, &settings, seen),
            (BlockMethod::Gptq | BlockMethod::Awq, None) => {
                Err(StaysFloat::WholeWeightNeeded.into())
            }
            _ => planned.product(graph, node, &settings),
        }
    })?;
    remove_unread(&mut quantized.model, &planned.transposes);
    Ok((quantized, recipes))
}

struct PlannedBlocks {
    /// Index of the recipe by weight and settings.
    known: HashMap<(String, String), usize>,
    /// Outputs of Transposes through which products read their weights.
    transposes: BTreeSet<String>,
}

/// A weight and its order.
struct BlockedWeight<'a> {
    tensor: &'a TensorProto,
    layout: MatrixLayout,
}

impl<'a> BlockedWeight<'a> {
    fn new(tensor: &'a TensorProto, transposed: bool) -> Result<BlockedWeight<'a>, NotQuantized> {
        let element = tensor.element()?;
        if !element.is_half() && element != DataType::Float {
            return Err(StaysFloat::WeightNotFloat32.into());
        }
        let &[first, second] = tensor.shape()?.as_slice() else {
            return Err(StaysFloat::NotAMatrix.into());
        };
        if first == 0 || second == 0 {
            return Err(StaysFloat::EmptyWeight.into());
        }
        let (rows, columns) = match transposed {
            true => (second, first),
            false => (first, second),
        };
        let layout = MatrixLayout {
            rows,
            columns,
            transposed,
        };
        Ok(BlockedWeight { tensor, layout })
    }

    /// Fails if blocks need more bytes than the source.
    fn gains(&self, settings: &BlockSettings) -> Result<(), NotQuantized> {
        let stored = self.tensor.element()?.bits().unwrap_or(0);
        let padded = self.layout.rows.next_multiple_of(settings.size);
        match padded * usize::from(settings.bits) < self.layout.rows * stored {
            true => Ok(()),
            false => Err(StaysFloat::ShortColumns.into()),
        }
    }
}

impl PlannedBlocks {
    /// Rewrites a MatMul or Gemm as MatMulNBits.
    fn product<'a>(
        &mut self,
        graph: &mut Rewriter<'a>,
        node: &'a Node,
        settings: &BlockSettings,
    ) -> Result<(), NotQuantized> {
        let transposed = is_transposed(node)?;
        plain_gemm(node)?;
        let (weight, behind) = weight(graph, node)?;
        let weight = BlockedWeight::new(weight, transposed != behind.is_some())?;
        weight.gains(settings)?;
        let recipe = self.recipe(graph, &weight, settings)?;
        self.transposes.extend(behind);
        let names = graph.recipe(recipe).outputs.clone();
        let names = names.iter().map(String::as_str);
        let extents = [weight.layout.rows, weight.layout.columns];
        match settings.form {
            BlockForm::MatMulBnb4 => {
                four_bit_floats::multiply(graph, node, names, extents, settings);
            }
            _ => multiply(graph, node, names, extents, settings),
        }
        Ok(())
    }

    /// Rewrites a Gather of rows of a table as GatherBlockQuantized.
    fn gather<'a>(
        &mut self,
        graph: &mut Rewriter<'a>,
        node: &'a Node,
        settings: &BlockSettings,
    ) -> Result<(), NotQuantized> {
        let constants = &graph.model.graph.initializers;
        let table = node.input_at(0).and_then(|name| constants.get(name));
        let table = table.ok_or(StaysFloat::VariableTable)?;
        if node.int("axis").unwrap_or(0) != 0 {
            return Err(StaysFloat::GathersNoRows.into());
        }
        if !matches!(
            table.element()?,
            DataType::Float | DataType::Float16 | DataType::Bfloat16
        ) {
            return Err(StaysFloat::TableNotFloat.into());
        }
        if settings.method == BlockMethod::Hqq {
            return Err(StaysFloat::FractionalZeroPoints.into());
        }
        // A row of the table is a column of the matrix.
        let weight = BlockedWeight::new(table, true)?;
        if weight.layout.rows % settings.size != 0 {
            return Err(StaysFloat::UnevenRows.into());
        }
        weight.gains(settings)?;
        let recipe = self.recipe(graph, &weight, settings)?;
        let integers = self.view(graph, recipe, weight.layout, settings)?;
        let names = graph.recipe(recipe).outputs.clone();
        let mut inputs = vec![&*integers, node.input_at(1).unwrap_or_default()];
        inputs.extend(names.iter().skip(1).map(String::as_str));
        let output = node.output.first().map_or("", String::as_str);
        let title = graph.fresh(&format!("{}_Q{}", node.title(), settings.bits));
        let mut gather = Node {
            domain: Some(MICROSOFT.to_owned()),
            ..Node::new("GatherBlockQuantized", &title, &inputs, &[output])
        };
        for (key, value) in [
            ("gather_axis", 0),
            ("quantize_axis", 1),
            ("bits", settings.bits.into()),
            ("block_size", settings.size),
        ] {
            gather.set(Attribute::int(key, value as i64));
        }
        graph.push(gather);
        Ok(())
    }

    /// The integers of a recipe as a matrix: those of MatMulNBits have an axis of blocks.
    fn view(
        &mut self,
        graph: &mut Rewriter,
        recipe: usize,
        layout: MatrixLayout,
        settings: &BlockSettings,
    ) -> Result<String, NotQuantized> {
        if let Some((name, ..)) = graph.recipe(recipe).views.first() {
            return Ok(name.clone());
        }
        let wanted = format!("{}_rows", graph.recipe(recipe).outputs[0]);
        let name = graph.fresh(&wanted);
        let planned = graph.recipe(recipe);
        let bytes = layout.rows * usize::from(settings.bits) / 8;
        planned
            .views
            .push((name.clone(), 0, vec![layout.columns, bytes]));
        if let Some(constant) = planned.view_placeholder(0)? {
            graph.constant(constant);
        }
        Ok(name)
    }

    /// The recipe of a weight, which all its nodes with the same settings share.
    fn recipe(
        &mut self,
        graph: &mut Rewriter,
        weight: &BlockedWeight,
        settings: &BlockSettings,
    ) -> Result<usize, NotQuantized> {
        let name = weight.tensor.name.clone().unwrap_or_default();
        if let Some(reason) = graph.refused.weight(&name) {
            return Err(reason.into());
        }
        let own = BlockSettings {
            accuracy_level: 0,
            ..settings.clone()
        };
        let key = (name.clone(), format!("{:?} {own:?}", weight.layout));
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let (kind, endings) = match settings.form {
            BlockForm::MatMulBnb4 => four_bit_floats::recipe(weight.layout, &own),
            _ => {
                let mut endings = vec![format!("Q{}", settings.bits), "scales".to_owned()];
                endings.extend((!settings.is_symmetric()).then(|| "zero_points".to_owned()));
                let scales = weight.tensor.element()?;
                (RecipeKind::Blocks(weight.layout, own, scales), endings)
            }
        };
        let outputs = endings.iter();
        let outputs = outputs
            .map(|ending| graph.fresh(&format!("{name}_{ending}")))
            .collect();
        let index = graph.planned(PlannedRecipe {
            source: weight.tensor.clone(),
            kind,
            outputs,
            views: Vec::new(),
        })?;
        self.known.insert(key, index);
        Ok(index)
    }
}

/// The constant in a node's weight slot, and the output of the Transpose through which the node
/// reads it.
fn weight<'a>(
    graph: &Rewriter<'a>,
    node: &Node,
) -> Result<(&'a TensorProto, Option<String>), NotQuantized> {
    let model = &graph.model.graph;
    let constant = |name: Option<&str>| model.initializers.get(name?);
    if constant(node.input_at(0)).is_some() {
        return Err(StaysFloat::ConstantInput.into());
    }
    let name = node.input_at(1).unwrap_or_default();
    if let Some(weight) = constant(Some(name)) {
        return Ok((weight, None));
    }
    let before = model.producer(name).map(|place| &model.nodes()[place]);
    let turned = before.filter(|before| {
        before.is("Transpose") && before.ints("perm").is_none_or(|order| *order == [1, 0])
    });
    match turned.and_then(|before| constant(before.input_at(0))) {
        Some(weight) => Ok((weight, Some(name.to_owned()))),
        None => Err(StaysFloat::VariableWeight.into()),
    }
}

/// Removes Transposes that lost all their readers, and their constants.
fn remove_unread(model: &mut Model, transposes: &BTreeSet<String>) {
    let graph = &mut model.graph;
    let unread = transposes.iter().filter(|name| graph.is_unused(name));
    let places: std::collections::HashSet<usize> =
        unread.filter_map(|name| graph.producer(name)).collect();
    let read: Vec<String> = places
        .iter()
        .filter_map(|&place| graph.nodes()[place].input_at(0).map(str::to_owned))
        .collect();
    graph.remove_nodes(&places);
    for name in read {
        if graph.is_unused(&name) {
            graph.initializers.remove(&name);
        }
    }
}
