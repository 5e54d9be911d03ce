//! Gather from a constant table, an embedding: the table becomes integers, what is picked from it
//! floats again. Only what is picked is dequantized, so memory is saved while the model runs too.

use super::integers::Form;
use super::rewrite::{Rewriter, Stop};
use crate::onnx::schema::{AttributeProto, NodeProto};

/// Tables of fewer numbers are not worth two nodes.
const SMALLEST_TABLE: usize = 1024;

/// Writes a Gather anew. With an axis in the form each column of the table has a scale, where what is
/// picked holds whole rows: then, and only then, the columns are its last axis too.
pub(super) fn rewrite<'a>(
    graph: &mut Rewriter<'a>,
    node: &'a NodeProto,
    form: Form,
) -> Result<(), Stop> {
    let table = graph.weight(node, 0)?;
    if table.shape.iter().product::<usize>() < SMALLEST_TABLE {
        return Err("the table it picks from is small".into());
    }
    let nodes = &graph.model.graph.nodes;
    let mut users = graph.uses.consumers(table.name).iter();
    if graph.uses.is_output(table.name)
        || !users.all(|&(user, slot)| nodes[user].is("Gather") && slot == 0)
    {
        return Err("its table is used for something else, which needs it as floats".into());
    }
    let whole_rows = table.shape.len() == 2 && node.int("axis").unwrap_or(0) == 0;
    let axis = form.axis.filter(|_| whole_rows).map(|_| 1);
    let tag = if axis.is_some() { "columns" } else { "table" };
    let made = graph.in_original_layout(&table, tag, Form { axis, ..form })?;
    let output = node.output.first().map_or("", String::as_str);
    let picked = graph.fresh(&format!("{output}_quantized"));
    let mut gather = node.clone();
    gather.input[0] = made.integers;
    gather.output = vec![picked.clone()];
    graph.push(gather);
    let title = graph.fresh(&format!("{output}_DequantizeLinear"));
    let inputs = [picked.as_str(), &made.scale, &made.zero_point];
    let mut dequantize = NodeProto::new("DequantizeLinear", &title, &inputs, &[output]);
    if axis.is_some() {
        dequantize.set(AttributeProto::int("axis", -1));
    }
    graph.push(dequantize);
    Ok(())
}
