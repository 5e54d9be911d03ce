//! Matcher: from a graph of QDQ pairs to integer steps.
//!
//! A node becomes a step if each of its inputs comes from an eight-bit DequantizeLinear and its
//! output goes only to a QuantizeLinear. Products with weights may end in floats. All other nodes
//! stay float, with a reason. Q and DQ nodes that remain at the border between integers and floats
//! are steps of their own.
//!
//! The matchers of the operators are in `operators/`. Here is what they have in common.

pub(crate) mod attributes;
pub(crate) mod destination;
mod find_destination;
mod int16;
pub(crate) mod matcher;
pub(crate) mod reader;
mod table_merging;
pub(crate) mod weights;

use std::collections::HashMap;

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::ir::Ir;
use matcher::{MatchPass, Matcher, MatcherInput};

/// Set of nodes that may become steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All supported nodes.
    Integers,
    /// Only operators defined on integers; everything else runs in float.
    Defined,
}

/// Matches a prepared model. `refused` nodes stay float.
pub(crate) fn build_ir(
    input: &MatcherInput,
    scope: Scope,
    refused: &HashMap<usize, ProgramError>,
) -> Ir {
    let mut matcher = Matcher::new(input, refused);
    let passes: &[MatchPass] = match scope {
        Scope::Integers => &[MatchPass::Quantized, MatchPass::Border],
        Scope::Defined => &[MatchPass::Defined],
    };
    for &pass in passes {
        for index in 0..input.model.graph.nodes().len() {
            matcher.visit(index, pass);
        }
    }
    table_merging::merge(&mut matcher.ir.steps);
    let mut ir = std::mem::take(&mut matcher.ir);
    ir.steps
        .sort_by_key(|step| step.nodes.iter().copied().min());
    for (index, node) in input.model.graph.nodes().iter().enumerate() {
        let reason = matcher.reasons.remove(&index);
        let unseen = reason.is_none() && matcher.is_of_border(node);
        if matcher.owned.contains(&index) || unseen {
            continue;
        }
        let reason = reason.unwrap_or(match scope {
            Scope::Integers => FloatReason::NotImplemented,
            Scope::Defined => FloatReason::ByRequest,
        });
        ir.floats.push((index, reason));
    }
    ir
}
