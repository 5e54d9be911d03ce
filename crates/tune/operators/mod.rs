//! The operators of a program: from a node of a quantized model to operations with gradients.
//!
//! An operator that has none here ends the block before it.

mod builder;
mod elements;
mod moving;
mod normal;
mod pools;
mod products;
#[cfg(test)]
mod tests;

pub(crate) use builder::{Builder, LayerLeaves, StepScale, ValueGrid};
pub(crate) use moving::moves;

/// Adds the steps of a node; `None` if an operation is missing. Names its outputs.
pub(crate) fn compile(builder: &mut Builder, node: usize) -> Option<()> {
    let index = node;
    let node = &builder.graph().nodes()[node];
    let whole = |name: &String| name.is_empty() || builder.integers(name).is_some();
    // Sizes and bounds that follow from shapes.
    if node.output.iter().all(whole) {
        return Some(());
    }
    if node.op_type == "QuantizeLinear" {
        return builder.quantize(node);
    }
    if moves(node) {
        return moving::compile(builder, index, node);
    }
    let value = products::compile(builder, index, node)
        .or_else(|| elements::compile(builder, node))
        .or_else(|| normal::compile(builder, node))
        .or_else(|| pools::compile(builder, node))?;
    let mut outputs = node.output.iter().filter(|name| !name.is_empty());
    let name = outputs.next()?;
    builder.name(name, value);
    outputs.next().is_none().then_some(())
}
