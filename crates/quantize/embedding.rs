//! EmbedLayerNormalization, the embedding lookup of language models, with integer tables:
//! QEmbedLayerNormalization. Only the rows looked up are dequantized.

use super::integer_format::IntegerFormat;
use super::quantized_names::QuantizedNames;
use super::rewrite::{ConstantWeight, NotQuantized, Rewriter};
use super::stays_float::StaysFloat;
use octet_graph::Node;
use octet_graph::operators::Operator;

/// The input slots of three tables, a scale and a bias, for both operators; and that of the mask.
pub(super) const TABLES: std::ops::Range<usize> = 2..7;
pub(super) const MASK: usize = 7;

/// The reason why a node has no integer form, which supports neither explicit position ids nor the
/// sum output.
pub(super) fn obstacle(node: &Node) -> Option<StaysFloat> {
    let sum = node.output.get(2).is_some_and(|name| !name.is_empty());
    if sum {
        return Some(StaysFloat::EmbeddingSum);
    }
    let places = node.input_at(MASK + 1).is_some();
    places.then_some(StaysFloat::PositionIds)
}

/// The inputs of the integer operator: the node's own, with integers, scale and zero point of each
/// table.
pub(super) fn inputs(node: &Node, tables: &[Option<QuantizedNames>]) -> Vec<String> {
    let name = |slot: usize| node.input_at(slot).unwrap_or_default().to_owned();
    let each = |part: fn(&QuantizedNames) -> &String| {
        let of = move |table: &Option<QuantizedNames>| table.as_ref().map(part).cloned();
        tables
            .iter()
            .map(move |table| of(table).unwrap_or_default())
    };
    let mut inputs: Vec<String> = (0..TABLES.start).map(name).collect();
    inputs.extend(each(|table| &table.integers));
    inputs.push(name(MASK));
    inputs.extend(each(|table| &table.scale));
    inputs.extend(each(|table| &table.zero_point));
    inputs
}

/// Rewrites an EmbedLayerNormalization, with one scale for each table.
pub(super) fn rewrite<'a>(
    graph: &mut Rewriter<'a>,
    node: &'a Node,
    form: IntegerFormat,
) -> Result<(), NotQuantized> {
    if let Some(obstacle) = obstacle(node) {
        return Err(obstacle.into());
    }
    // Every weight is checked before the first one is written.
    let weight = |slot: usize| node.input_at(slot).map(|_| graph.weight(node, slot));
    let weights = TABLES.map(|slot| weight(slot).transpose());
    let weights: Vec<Option<ConstantWeight>> = weights.collect::<Result<_, _>>()?;
    let form = IntegerFormat { axis: None, ..form };
    let table = |weight: Option<ConstantWeight>| {
        let names = weight.map(|weight| graph.in_original_layout(&weight, "table", form));
        names.transpose()
    };
    let tables: Vec<_> = weights.into_iter().map(table).collect::<Result<_, _>>()?;
    let name = node.name.as_ref().filter(|name| !name.is_empty());
    let name = name.map(|name| graph.fresh(&format!("{name}_quant")));
    let qlinear = Operator::of(node).qlinear;
    graph.push(Node {
        name,
        op_type: qlinear.map_or_else(String::new, |form| form.operator.to_owned()),
        domain: qlinear.and_then(|form| form.domain).map(str::to_owned),
        input: inputs(node, &tables),
        ..node.clone()
    });
    Ok(())
}
