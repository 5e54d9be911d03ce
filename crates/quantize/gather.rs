//! Gather from a constant table, an embedding: the table becomes integers. Only the gathered rows
//! are dequantized, which saves memory at run time too.

use super::integer_format::IntegerFormat;
use super::rewrite::{NotQuantized, Rewriter};
use super::stays_float::StaysFloat;
use octet_graph::{Attribute, Node};

/// Smaller tables do not justify two more nodes.
const SMALLEST_TABLE: usize = 1024;

/// Rewrites a Gather. An axis in `form` asks for a scale per column. This requires that the Gather
/// picks whole rows: only then are the columns also the last axis of its output.
pub(super) fn rewrite<'a>(
    graph: &mut Rewriter<'a>,
    node: &'a Node,
    form: IntegerFormat,
) -> Result<(), NotQuantized> {
    let table = graph.weight(node, 0)?;
    if table.shape.iter().product::<usize>() < SMALLEST_TABLE {
        return Err(StaysFloat::SmallTable.into());
    }
    let nodes = graph.model.graph.nodes();
    let mut users = graph.model.graph.consumers(table.name).iter();
    if graph.model.graph.is_output(table.name)
        || !users.all(|user| nodes[user.node].is("Gather") && user.is_input(0))
    {
        return Err(StaysFloat::SharedTable.into());
    }
    let whole_rows = table.shape.len() == 2 && node.int("axis").unwrap_or(0) == 0;
    let axis = form.axis.filter(|_| whole_rows).map(|_| 1);
    let tag = if axis.is_some() { "columns" } else { "table" };
    let names = graph.in_original_layout(&table, tag, IntegerFormat { axis, ..form })?;
    let output = node.output.first().map_or("", String::as_str);
    let gathered = graph.fresh(&format!("{output}_quantized"));
    let mut gather = node.clone();
    gather.input[0] = names.integers;
    gather.output = vec![gathered.clone()];
    graph.push(gather);
    let title = graph.fresh(&format!("{output}_DequantizeLinear"));
    let inputs = [gathered.as_str(), &names.scale, &names.zero_point];
    let mut dequantize = Node::new("DequantizeLinear", &title, &inputs, &[output]);
    if axis.is_some() {
        dequantize.set(Attribute::int("axis", -1));
    }
    graph.push(dequantize);
    Ok(())
}
