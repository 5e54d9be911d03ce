//! AWQ: the input channels of products that count most get larger weights, and so smaller rounding
//! errors. What comes before is divided by the same scales, so the float function stays.
//!
//! All products that read one value share its scales: query, key and value projections, or the two
//! projections of a gated feed-forward part. The scales go into the constants before that value: those
//! of a normalization, or the columns of the product before. Candidates are powers of each channel's
//! magnitude on the samples. The one with the least error of the outputs wins, measured with the Gram
//! matrix of the value; no scales at all is one of them.

mod groups;
mod search;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use super::QuantizeError;
use super::blocks::{BlockMethod, BlockSettings};
use octet_graph::{Model, Names, Node};
use octet_onnx::schema::TensorProto;
use octet_stats::CalibrationStatistics;

use groups::{ScaledConstant, ScaledGroup};

/// A model with the scales in its constants, and what to say about it.
pub(super) struct ScaledModel {
    pub(super) model: Model,
    pub(super) notes: Vec<String>,
}

/// Folds scales into the constants of a model. `of` returns the settings of a node, and
/// `is_quantized` is false for nodes that stay float.
pub(super) fn scaled(
    model: &Model,
    of: &dyn Fn(&Node) -> BlockSettings,
    is_quantized: &dyn Fn(&Node) -> bool,
    seen: &CalibrationStatistics,
) -> Result<ScaledModel, QuantizeError> {
    let wanted = |node: &Node| is_quantized(node) && of(node).method == BlockMethod::Awq;
    let found = groups::groups(model, &wanted);
    let mut scaled = model.clone();
    let mut names = scaled.graph.names();
    let (mut folded, mut gains) = (0, Vec::new());
    for group in &found.groups {
        let Some(outcome) = search::best(&scaled, group, of, seen)? else {
            continue;
        };
        gains.push([outcome.before, outcome.after]);
        if let Some(scales) = outcome.scales {
            fold(&mut scaled, group, &scales, &mut names)?;
            folded += 1;
        }
    }
    let mut notes = Vec::new();
    let products = found.products;
    if products > 0 {
        let grouped: usize = found.groups.iter().map(|group| group.products.len()).sum();
        let [before, after] = gains
            .iter()
            .fold([0.0; 2], |all, one| [all[0] + one[0], all[1] + one[1]]);
        let gain = match before > 0.0 && after > 0.0 {
            true => format!(
                ", which lowers their output error by {:.1} dB",
                10.0 * (before / after).log10()
            ),
            false => String::new(),
        };
        notes.push(format!(
            "AWQ scaled the inputs of {folded} of {} groups of products{gain}",
            found.groups.len()
        ));
        if grouped < products {
            notes.push(format!(
                "AWQ left {} of {products} products as RTN has them: nothing before them takes the scales",
                products - grouped
            ));
        }
    }
    Ok(ScaledModel {
        model: scaled,
        notes,
    })
}

/// Multiplies the rows of the products by the scales, and divides what is before.
fn fold(
    model: &mut Model,
    group: &ScaledGroup,
    scales: &[f32],
    names: &mut Names,
) -> Result<(), QuantizeError> {
    for product in &group.products {
        let transposed = product.transposed;
        scale(model, &product.weight, |at, shape| {
            let input = if transposed {
                at % shape[1]
            } else {
                at / shape[1]
            };
            scales[input]
        })?;
    }
    let mut renamed: HashMap<String, String> = HashMap::new();
    for constant in &group.before {
        let factor: Box<dyn Fn(usize, &[usize]) -> f32> = match *constant {
            ScaledConstant::Columns { transposed, .. } => Box::new(move |at, shape| {
                1.0 / scales[if transposed {
                    at / shape[1]
                } else {
                    at % shape[1]
                }]
            }),
            ScaledConstant::Vector { .. } => Box::new(|at, _| 1.0 / scales[at % scales.len()]),
        };
        let (node, slot, name) = constant.place(model);
        if model.graph.consumers(&name).len() == 1 {
            scale(model, &name, factor)?;
            continue;
        }
        // Others read the constant too, so this node gets one of its own.
        let own = match renamed.get(&name) {
            Some(own) => own.clone(),
            None => {
                let own = names.fresh(&format!("{name}_scaled"));
                let Some(tensor) = model.graph.initializers.get(&name) else {
                    continue;
                };
                let copy = TensorProto {
                    name: Some(own.clone()),
                    ..tensor.clone()
                };
                model.graph.initializers.insert(copy);
                scale(model, &own, factor)?;
                renamed.insert(name, own.clone());
                own
            }
        };
        model.graph.edit(node, |node| node.input[slot] = own);
    }
    Ok(())
}

/// Multiplies each number of a constant by a factor, which depends on its place and the shape.
fn scale(
    model: &mut Model,
    name: &str,
    factor: impl Fn(usize, &[usize]) -> f32,
) -> Result<(), QuantizeError> {
    let Some(tensor) = model.graph.initializers.get(name) else {
        return Ok(());
    };
    let shape = tensor.shape()?;
    let values = tensor.to_f32()?.into_iter().enumerate();
    let values: Vec<f32> = values
        .map(|(at, value)| value * factor(at, &shape))
        .collect();
    model
        .graph
        .initializers
        .insert(TensorProto::from_f32(name, &shape, &values));
    Ok(())
}

/// The nodes that the settings leave to the scheme.
pub(super) fn selection<'a>(
    keep_float: &'a [String],
    operators: Option<&'a [String]>,
) -> impl Fn(&Node) -> bool + 'a {
    let kept: HashSet<&str> = keep_float.iter().map(String::as_str).collect();
    move |node| {
        !kept.contains(node.title())
            && operators.is_none_or(|wanted| wanted.contains(&node.operator()))
    }
}
