//! EmbedLayerNormalization, which looks up the embeddings of a language model, with its tables as integers:
//! QEmbedLayerNormalization. Only the rows that are looked up become floats again.

use super::MICROSOFT;
use super::integers::{Form, Quantity};
use super::rewrite::{ConstantWeight, Rewriter, Stop};
use crate::onnx::schema::NodeProto;

/// The name of the operator on integers.
pub(super) const OPERATOR: &str = "QEmbedLayerNormalization";

/// Where three tables, a scale and a bias are among the inputs of either operator, and where its mask is.
pub(super) const TABLES: std::ops::Range<usize> = 2..7;
pub(super) const MASK: usize = 7;

/// Why a node has no form on integers: this knows neither places that are given nor an output for the sum.
pub(super) fn obstacle(node: &NodeProto) -> Option<&'static str> {
    let sum = node.output.get(2).is_some_and(|name| !name.is_empty());
    if sum {
        return Some("the sum it gives out has no place in its form on integers");
    }
    let places = node.input_at(MASK + 1).is_some();
    places.then_some("the places it is given have no place in its form on integers")
}

/// The inputs of the operator on integers: those of the node, with integers, scale and zero point for each of its tables.
pub(super) fn inputs(node: &NodeProto, tables: &[Option<Quantity>]) -> Vec<String> {
    let name = |slot: usize| node.input_at(slot).unwrap_or_default().to_owned();
    let each = |part: fn(&Quantity) -> &String| {
        let of = move |table: &Option<Quantity>| table.as_ref().map(part).cloned();
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

/// Writes an EmbedLayerNormalization anew, each of its tables with one scale.
pub(super) fn rewrite<'a>(
    graph: &mut Rewriter<'a>,
    node: &'a NodeProto,
    form: Form,
) -> Result<(), Stop> {
    if let Some(obstacle) = obstacle(node) {
        return Err(obstacle.into());
    }
    // All are looked at before one is written.
    let weight = |slot: usize| node.input_at(slot).map(|_| graph.weight(node, slot));
    let weights = TABLES.map(|slot| weight(slot).transpose());
    let weights: Vec<Option<ConstantWeight>> = weights.collect::<Result<_, _>>()?;
    let form = Form { axis: None, ..form };
    let table = |weight: Option<ConstantWeight>| {
        let made = weight.map(|weight| graph.in_original_layout(&weight, "table", form));
        made.transpose()
    };
    let tables: Vec<_> = weights.into_iter().map(table).collect::<Result<_, _>>()?;
    let name = node.name.as_ref().filter(|name| !name.is_empty());
    let name = name.map(|name| graph.fresh(&format!("{name}_quant")));
    graph.push(NodeProto {
        name,
        op_type: Some(OPERATOR.into()),
        domain: Some(MICROSOFT.into()),
        input: inputs(node, &tables),
        ..node.clone()
    });
    Ok(())
}
