//! Operator patterns: finds layer and RMS normalizations, GELUs and gates (Swish, HardSwish, Mish)
//! that exporters wrote as chains of simpler operators.
//!
//! ONNX has operators for them only since opsets 14 to 24. Inside a chain the values change their
//! scale at each step, from squared differences to an error function between -1 and 1. Rounding
//! each of them to 8 bits costs more than all products around them. As one operator, into which
//! runtimes fuse the chain again, they have one input and one output.

mod gelu;
mod hard_swish;
mod layer_norm;
mod mish;
mod swish;

use super::stays_float::StaysFloat;
use octet_graph::{Graph, Node};

/// ONNX operator that a chain of simpler operators equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatternOperator {
    /// The name in ONNX, as settings and reports use it.
    pub(super) name: &'static str,
    /// The reason why an inner node of its chain has no integers.
    pub(super) reason: StaysFloat,
}

/// A way to match chains.
struct PatternRule {
    /// Operators of the node from which it matches.
    from: &'static [&'static str],
    /// The chain of this node, which has this index.
    chain: for<'a> fn(&PatternFinder<'a>, usize, &'a Node) -> Option<OperatorPattern>,
}

/// All rules.
const RULES: [&[PatternRule]; 5] = [
    gelu::RULES,
    hard_swish::RULES,
    layer_norm::RULES,
    mish::RULES,
    swish::RULES,
];

/// A chain of nodes that is equal to one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OperatorPattern {
    /// The equal ONNX operator.
    pub(super) operator: PatternOperator,
    /// The input of the chain.
    pub(super) input: String,
    /// The nodes. The output of the last one is the output of the chain.
    pub(super) nodes: Vec<usize>,
}

impl OperatorPattern {
    /// The producer of the output.
    pub(super) fn last(&self) -> usize {
        self.nodes.last().copied().unwrap_or(0)
    }
}

/// All chains of a graph whose inner values have no use outside.
pub(super) fn find_patterns(graph: &Graph) -> Vec<OperatorPattern> {
    let finder = PatternFinder { graph };
    let mut patterns = Vec::new();
    for (index, node) in graph.nodes().iter().enumerate() {
        let operator = node.op_type.as_str();
        let mut rules = RULES.iter().copied().flatten();
        let rule = rules.find(|rule| rule.from.contains(&operator));
        let chain = rule.and_then(|rule| (rule.chain)(&finder, index, node));
        patterns.extend(chain.filter(|chain| finder.is_closed(chain)));
    }
    patterns
}

fn is_near(number: f64, wanted: f64) -> bool {
    (number - wanted).abs() < 1e-3 * wanted.abs()
}

struct PatternFinder<'a> {
    graph: &'a Graph,
}

impl<'a> PatternFinder<'a> {
    /// The producer of a value, if it is this operator.
    fn producer(&self, value: &str, operator: &str) -> Option<(usize, &'a Node)> {
        let index = self.graph.producer(value)?;
        let node = &self.graph.nodes()[index];
        node.is(operator).then_some((index, node))
    }

    /// The only consumer of a value, if it is this operator.
    fn only_consumer(&self, value: &str, operator: &str) -> Option<(usize, &'a Node)> {
        let mut nodes = self.graph.consumers(value).iter().map(|reader| reader.node);
        let index = nodes.next()?;
        let node = &self.graph.nodes()[index];
        (node.is(operator) && nodes.all(|other| other == index)).then_some((index, node))
    }

    /// The producer of a value, if it is an addition.
    fn addition_before(&self, value: &str) -> Option<(usize, &'a Node)> {
        self.producer(value, "Add")
    }

    /// The only consumer of a value, if it is an addition.
    fn addition_behind(&self, value: &str) -> Option<(usize, &'a Node)> {
        self.only_consumer(value, "Add")
    }

    /// The producer of a value, if it is a multiplication.
    fn multiplication_before(&self, value: &str) -> Option<(usize, &'a Node)> {
        self.producer(value, "Mul")
    }

    /// The only consumer of a value, if it is a multiplication.
    fn multiplication_behind(&self, value: &str) -> Option<(usize, &'a Node)> {
        self.only_consumer(value, "Mul")
    }

    /// The producer of a value, if it is a division.
    fn division_before(&self, value: &str) -> Option<(usize, &'a Node)> {
        self.producer(value, "Div")
    }

    /// The only consumer of a value, if it is a division.
    fn division_behind(&self, value: &str) -> Option<(usize, &'a Node)> {
        self.only_consumer(value, "Div")
    }

    fn is_constant(&self, name: &str) -> bool {
        self.graph.initializers.contains(name)
    }

    /// The value of a constant with one element.
    fn number(&self, name: &str) -> Option<f64> {
        let tensor = self.graph.initializers.get(name)?;
        let values: Vec<f64> = match tensor.to_f32() {
            Ok(values) => values.into_iter().map(f64::from).collect(),
            // An exponent may be an integer.
            Err(_) => tensor
                .to_i64()
                .ok()?
                .into_iter()
                .map(|n| n as f64)
                .collect(),
        };
        (values.len() == 1).then(|| values[0])
    }

    /// True if a name is a constant with one element near `wanted`.
    fn is_number(&self, name: &str, wanted: f64) -> bool {
        self.number(name)
            .is_some_and(|number| is_near(number, wanted))
    }

    /// The other input of a binary node.
    fn other_operand(&self, node: &'a Node, name: &str) -> Option<&'a str> {
        let (one, two) = (node.input_at(0)?, node.input_at(1)?);
        match (one == name, two == name) {
            (true, _) => Some(two),
            (_, true) => Some(one),
            _ => None,
        }
    }

    /// The input of a binary node whose other input is this constant.
    fn operand_beside(&self, node: &'a Node, number: f64) -> Option<&'a str> {
        let (one, two) = (node.input_at(0)?, node.input_at(1)?);
        match (self.is_number(two, number), self.is_number(one, number)) {
            (true, _) => Some(one),
            (_, true) => Some(two),
            _ => None,
        }
    }

    /// True if two means have equal axes and equal `keepdims`.
    fn are_alike(&self, one: &Node, two: &Node) -> bool {
        let axes = |node: &Node| match node.input_at(1) {
            Some(name) => self
                .graph
                .initializers
                .get(name)
                .and_then(|t| t.to_i64().ok()),
            None => node.ints("axes").map(<[i64]>::to_vec),
        };
        let keeps = |node: &Node| node.int("keepdims").unwrap_or(1) != 0;
        axes(one).is_some_and(|of_one| axes(two) == Some(of_one)) && keeps(one) == keeps(two)
    }

    /// True if no inner value has a use outside.
    fn is_closed(&self, chain: &OperatorPattern) -> bool {
        let inner = chain.nodes.iter().filter(|&&node| node != chain.last());
        inner
            .flat_map(|&node| &self.graph.nodes()[node].output)
            .all(|value| {
                let mut users = self.graph.consumers(value).iter();
                !self.graph.is_output(value) && users.all(|user| chain.nodes.contains(&user.node))
            })
    }
}
