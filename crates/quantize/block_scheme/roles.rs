//! The roles of products with constant weights, by the structure of the graph: head, value
//! projections and down projections, and the layer of each.
//!
//! Names count only where the structure shows no product of a role.

use std::collections::{BTreeMap, BTreeSet};

use octet_graph::operators::{ChannelRole, Operator, Property};
use octet_graph::{Model, Node};

/// Nodes that a search passes at most; the parts between two products are smaller.
const REACH: usize = 96;

/// The part that a product has in a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProductRole {
    /// The last product before an output.
    Head,
    /// It computes the values of an attention, perhaps with its queries and keys.
    Value,
    /// The second product of a feed-forward part: from its width back to the model's.
    Down,
    Other,
}

/// A MatMul or Gemm with a constant weight.
#[derive(Clone, Debug)]
pub(super) struct ConstantProduct {
    /// Index of the node.
    pub(super) node: usize,
    pub(super) weight: String,
    /// Size along the reduction axis.
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) role: ProductRole,
    /// Its place among the repeated layers.
    pub(super) layer: usize,
}

/// The products of a model.
pub(super) struct ProductRoles {
    pub(super) products: Vec<ConstantProduct>,
    /// The number of repeated layers.
    pub(super) layers: usize,
    /// Roles that only names show.
    pub(super) by_name: BTreeSet<ProductRole>,
}

/// The constant in a product's weight slot, also through a Transpose; then with true.
pub(super) fn constant_weight<'a>(model: &'a Model, node: &'a Node) -> Option<(&'a str, bool)> {
    let graph = &model.graph;
    if !node.is("MatMul") && !node.is("Gemm") {
        return None;
    }
    let input = node.input_at(0)?;
    let name = node.input_at(1)?;
    if graph.initializers.contains(input) {
        return None;
    }
    if graph.initializers.contains(name) {
        return Some((name, false));
    }
    let before = &graph.nodes()[graph.producer(name)?];
    let table = before.input_at(0).filter(|_| before.is("Transpose"))?;
    graph.initializers.contains(table).then_some((table, true))
}

/// Finds the roles of all products.
pub(super) fn product_roles(model: &Model) -> ProductRoles {
    let nodes = model.graph.nodes();
    let mut products = Vec::new();
    let mut of_node = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let Some((weight, turned)) = constant_weight(model, node) else {
            continue;
        };
        let tensor = model.graph.initializers.get(weight);
        let Some(Ok(shape)) = tensor.map(|tensor| tensor.shape()) else {
            continue;
        };
        let &[first, second] = shape.as_slice() else {
            continue;
        };
        let transposed = node.is("Gemm") && node.int("transB").unwrap_or(0) != 0;
        let (rows, columns) = match transposed != turned {
            true => (second, first),
            false => (first, second),
        };
        of_node.insert(index, products.len());
        products.push(ConstantProduct {
            node: index,
            weight: weight.to_owned(),
            rows,
            columns,
            role: ProductRole::Other,
            layer: 0,
        });
    }
    let search = RoleSearch { model, of_node };
    let attentions: BTreeMap<usize, &str> = (0..nodes.len())
        .filter_map(|index| Some((index, search.values_of(index)?)))
        .collect();
    search.downs(&mut products, &attentions);
    search.values(&mut products, &attentions);
    search.heads(&mut products);
    let by_name = search.roles_by_name(&mut products);
    let layers = search.number_layers(&mut products, &attentions);
    ProductRoles {
        products,
        layers,
        by_name,
    }
}

/// Properties of operators that move numbers of their first input or apply a function to them.
const ON_FIRST_INPUT: [Property; 3] = [
    Property::ChangesForm,
    Property::SelectsElements,
    Property::Activation,
];

fn has_any(operator: &Operator, properties: &[Property]) -> bool {
    properties.iter().any(|&property| operator.has(property))
}

fn first_input(node: &Node) -> Vec<&str> {
    node.input_at(0).into_iter().collect()
}

/// Nodes that a search back from a value met.
#[derive(Default)]
struct NodesMet {
    /// Products with constant weights, at which it stops.
    products: BTreeSet<usize>,
    /// Other nodes, passed or not.
    nodes: BTreeSet<usize>,
}

struct RoleSearch<'a> {
    model: &'a Model,
    /// Index of a product by that of its node.
    of_node: BTreeMap<usize, usize>,
}

impl<'a> RoleSearch<'a> {
    fn node(&self, index: usize) -> &'a Node {
        &self.model.graph.nodes()[index]
    }

    /// True for constants, and for what is computed from nothing else.
    fn is_constant(&self, value: &str, depth: usize) -> bool {
        if self.model.graph.initializers.contains(value) {
            return true;
        }
        match self
            .model
            .graph
            .producer(value)
            .map(|index| self.node(index))
        {
            Some(node) => {
                let inputs = node.input.iter().filter(|name| !name.is_empty());
                depth > 0
                    && inputs
                        .into_iter()
                        .all(|name| self.is_constant(name, depth - 1))
            }
            None => false,
        }
    }

    /// The inputs of a node that depend on the model's inputs.
    fn activations(&self, node: &'a Node) -> Vec<&'a str> {
        let inputs = node.input.iter().map(String::as_str);
        let inputs = inputs.filter(|name| !name.is_empty());
        inputs.filter(|name| !self.is_constant(name, 4)).collect()
    }

    /// Searches back from a value; `passes` returns the inputs through which it goes on.
    fn back(&self, value: &str, passes: &dyn Fn(&'a Node) -> Vec<&'a str>) -> NodesMet {
        let mut met = NodesMet::default();
        let mut open: Vec<usize> = self.model.graph.producer(value).into_iter().collect();
        while let Some(index) = open.pop() {
            if let Some(&product) = self.of_node.get(&index) {
                met.products.insert(product);
                continue;
            }
            if met.nodes.len() >= REACH || !met.nodes.insert(index) {
                continue;
            }
            let inputs = passes(self.node(index)).into_iter();
            open.extend(inputs.filter_map(|name| self.model.graph.producer(name)));
        }
        met
    }

    /// The inputs of data movement, of functions, and of arithmetic with one activation.
    fn plain_inputs(&self, node: &'a Node) -> Vec<&'a str> {
        let operator = Operator::of(node);
        if has_any(operator, &ON_FIRST_INPUT) {
            return first_input(node);
        }
        match self.activations(node) {
            inputs if operator.has(Property::MergesInputs) => inputs,
            inputs if operator.has(Property::Arithmetic) && inputs.len() == 1 => inputs,
            _ => Vec::new(),
        }
    }

    /// The values of an attention: one of its operators, or a product of a Softmax and something else.
    fn values_of(&self, index: usize) -> Option<&'a str> {
        let node = self.node(index);
        if Operator::of(node).has(Property::Attention) {
            // Packed projections leave later inputs out.
            let mut inputs = [2, 1, 0].into_iter().filter_map(|slot| node.input_at(slot));
            return inputs.find(|name| !name.is_empty());
        }
        if !node.is("MatMul") || self.of_node.contains_key(&index) {
            return None;
        }
        let (left, right) = (node.input_at(0)?, node.input_at(1)?);
        if self.is_constant(left, 4) || self.is_constant(right, 4) {
            return None;
        }
        let met = self.back(left, &|node| match node.is("Softmax") {
            true => Vec::new(),
            false => self.plain_inputs(node),
        });
        let mut nodes = met.nodes.iter();
        nodes
            .any(|&index| self.node(index).is("Softmax"))
            .then_some(right)
    }

    /// Marks the products whose numbers an attention takes as values.
    fn values(&self, products: &mut [ConstantProduct], attentions: &BTreeMap<usize, &str>) {
        for value in attentions.values() {
            let met = self.back(value, &|node| match Operator::of(node)
                .has(Property::ChangesVectors)
            {
                true => first_input(node),
                false => self.plain_inputs(node),
            });
            for product in met.products {
                if products[product].role == ProductRole::Other {
                    products[product].role = ProductRole::Value;
                }
            }
        }
    }

    /// Marks the products from the width of a feed-forward part back to the model's: their input is a
    /// function of products from the model's width to this one, and of no attention.
    fn downs(&self, products: &mut [ConstantProduct], attentions: &BTreeMap<usize, &str>) {
        let is_down = |product: &ConstantProduct| {
            let node = self.node(product.node);
            let Some(input) = node.input_at(0).filter(|_| product.rows > product.columns) else {
                return false;
            };
            let met = self.back(input, &|node| {
                let operator = Operator::of(node);
                if operator.has(Property::Arithmetic) {
                    return self.activations(node);
                }
                match has_any(
                    operator,
                    &[Property::WideActivation, Property::ChangesVectors],
                ) {
                    true => first_input(node),
                    false => self.plain_inputs(node),
                }
            });
            let gates = met.nodes.iter().any(|&index| {
                let node = self.node(index);
                let operator = Operator::of(node);
                let multiplies = operator.channels == ChannelRole::Multiplies;
                has_any(operator, &[Property::Activation, Property::WideActivation])
                    || (multiplies && self.activations(node).len() > 1)
            });
            let widens = |&before: &usize| {
                let before = &products[before];
                before.rows == product.columns
                    && [product.rows, 2 * product.rows].contains(&before.columns)
            };
            gates
                && !met.products.is_empty()
                && met.products.iter().all(widens)
                && !met.nodes.iter().any(|node| attentions.contains_key(node))
        };
        let downs: Vec<bool> = products.iter().map(is_down).collect();
        for (product, _) in products.iter_mut().zip(downs).filter(|(_, down)| *down) {
            product.role = ProductRole::Down;
        }
    }

    /// Marks the products before an output that no other product follows.
    fn heads(&self, products: &mut [ConstantProduct]) {
        let nodes = self.model.graph.nodes();
        let mut leads_on = vec![false; nodes.len()];
        for (index, node) in nodes.iter().enumerate().rev() {
            let readers = node
                .output
                .iter()
                .flat_map(|name| self.model.graph.consumers(name));
            leads_on[index] = readers
                .map(|reader| reader.node)
                .any(|reader| leads_on[reader] || self.of_node.contains_key(&reader));
        }
        for output in self.model.graph.outputs() {
            let name = output.name.as_deref().unwrap_or_default();
            let passes = |node: &'a Node| match Operator::of(node).has(Property::Squashes) {
                true => first_input(node),
                false => self.plain_inputs(node),
            };
            for product in self.back(name, &passes).products {
                if !leads_on[products[product].node] {
                    products[product].role = ProductRole::Head;
                }
            }
        }
    }

    /// Marks products by name, for roles without a product. Returns the roles of those.
    fn roles_by_name(&self, products: &mut [ConstantProduct]) -> BTreeSet<ProductRole> {
        let words = [
            (ProductRole::Head, &["lm_head"][..]),
            (ProductRole::Value, &["v_proj", "qkv_proj"]),
            (ProductRole::Down, &["down_proj"]),
        ];
        let mut roles = BTreeSet::new();
        for (role, words) in words {
            if products.iter().any(|product| product.role == role) {
                continue;
            }
            for product in products.iter_mut() {
                let title = self.node(product.node).title();
                let named = |word: &&str| title.contains(word) || product.weight.contains(word);
                if product.role == ProductRole::Other && words.iter().any(named) {
                    product.role = role;
                    roles.insert(role);
                }
            }
        }
        roles
    }

    /// Counts the layers before each product: down projections, or attentions where there are none.
    /// Returns the number of layers.
    fn number_layers(
        &self,
        products: &mut [ConstantProduct],
        attentions: &BTreeMap<usize, &str>,
    ) -> usize {
        let downs = products.iter().filter(|one| one.role == ProductRole::Down);
        let mut ends: BTreeSet<usize> = downs.map(|product| product.node).collect();
        if ends.is_empty() {
            ends = attentions.keys().copied().collect();
        }
        let nodes = self.model.graph.nodes();
        let mut before = vec![0; nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            let producers = node
                .input
                .iter()
                .filter_map(|name| self.model.graph.producer(name));
            let ended = producers.map(|index| before[index] + usize::from(ends.contains(&index)));
            before[index] = ended.max().unwrap_or(0);
        }
        for product in products.iter_mut() {
            product.layer = before[product.node];
        }
        ends.iter().map(|&end| before[end] + 1).max().unwrap_or(0)
    }
}
