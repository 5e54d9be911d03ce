//! Notes about mixed bits.

use std::collections::BTreeSet;

use super::super::roles::{ConstantProduct, ProductRole, ProductRoles};
use super::SizeBudget;
use super::weights::MixedWeight;

/// Notes on what was chosen, what was left, and the roles without a product.
pub(super) fn notes(
    roles: &ProductRoles,
    weights: &[MixedWeight],
    chosen: &[usize],
    budget: Option<SizeBudget>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let taken: Vec<&ConstantProduct> = chosen.iter().map(|&i| weights[i].product).collect();
    let spent = budget.map(|budget| {
        let SizeBudget { bytes, limit } = budget;
        match bytes > limit {
            true => format!(
                "; there are {bytes} bytes already, more than the budget of {limit}: choose fewer \
                 bits, larger blocks or a larger budget"
            ),
            false => format!("; {bytes} of {limit} bytes are used"),
        }
    });
    let spent = spent.unwrap_or_default();
    notes.push(match taken.len() {
        0 => format!("mixed bits: no layer has 8 bits{spent}"),
        count => {
            let kinds = counted(&taken);
            let others = weights.len() - count;
            format!("mixed bits: 8 bits for {count} layers: {kinds}; {others} others keep their bits{spent}")
        }
    });
    let left = weights.iter().enumerate().filter(|(index, weight)| {
        let role = weight.product.role;
        !chosen.contains(index) && weight.can_grow() && role != ProductRole::Other
    });
    let left: Vec<&ConstantProduct> = left.map(|(_, weight)| weight.product).collect();
    if budget.is_some() && !left.is_empty() {
        let kinds = counted(&left);
        notes.push(format!("mixed bits: the budget has no room for {kinds}"));
    }
    let missing = [
        (ProductRole::Head, "head"),
        (ProductRole::Value, "value projection"),
        (ProductRole::Down, "down projection"),
    ];
    for (role, name) in missing {
        if !roles.products.iter().any(|product| product.role == role) {
            notes.push(format!(
                "mixed bits: the graph shows no {name}; give such layers `bits: 8` under `by_name` or `by_node`"
            ));
        } else if roles.by_name.contains(&role) {
            notes.push(format!(
                "mixed bits: each {name} was recognized by its name only"
            ));
        }
    }
    notes
}

/// A product's role in words.
pub(super) fn label(product: &ConstantProduct, layers: usize) -> String {
    let role = match product.role {
        ProductRole::Head => return "head".to_owned(),
        ProductRole::Value => "value projection",
        ProductRole::Down => "down projection",
        ProductRole::Other => "other product",
    };
    match product.layer < layers {
        true => format!("{role} of layer {}", product.layer),
        false => role.to_owned(),
    }
}

/// Products in words: the number of each role, and their layers.
fn counted(products: &[&ConstantProduct]) -> String {
    let mut parts = Vec::new();
    let roles = [
        (ProductRole::Head, "head"),
        (ProductRole::Value, "value projection"),
        (ProductRole::Down, "down projection"),
        (ProductRole::Other, "other product"),
    ];
    for (role, name) in roles {
        let of_role: Vec<_> = products
            .iter()
            .filter(|product| product.role == role)
            .collect();
        let count = of_role.len();
        if count == 0 {
            continue;
        }
        if role == ProductRole::Head && count == 1 {
            parts.push("the head".to_owned());
            continue;
        }
        let layers: BTreeSet<usize> = of_role.iter().map(|product| product.layer).collect();
        let layers: Vec<String> = layers.iter().map(usize::to_string).collect();
        let plural = if count == 1 { "" } else { "s" };
        parts.push(match role {
            ProductRole::Head => format!("{count} {name}{plural}"),
            _ => format!("{count} {name}{plural} (layers {})", layers.join(", ")),
        });
    }
    parts.join(", ")
}
