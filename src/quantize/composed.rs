//! Layer normalizations and GELUs that an exporter wrote as chains of simpler operators, found again.
//!
//! ONNX has had them as operators since sets 17 and 20 only. In the chain the values change their scale at each
//! step: squares of differences, an error function between -1 and 1. Rounded to eight bits each, they cost more than
//! all products around them. As one operator, which runtimes make of them again, they have one input and one output.

use crate::graph::{Graph, Uses};
use crate::onnx::schema::NodeProto;

/// The reason why the nodes of a chain but the last have no integers.
const IN_A_NORM: &str = "it is inside a layer normalization, which is quantized as one operator";
const IN_A_GELU: &str = "it is inside a GELU, which is quantized as one operator";

/// A chain that is one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Composed {
    /// The operator that ONNX has for it.
    pub(super) operator: &'static str,
    /// The value it takes.
    pub(super) input: String,
    /// The nodes; what the last of them makes is the output.
    pub(super) nodes: Vec<usize>,
}

impl Composed {
    /// Why a node inside has no integers.
    pub(super) fn reason(&self) -> &'static str {
        match self.operator {
            "Gelu" => IN_A_GELU,
            _ => IN_A_NORM,
        }
    }

    /// The node that makes the output.
    pub(super) fn last(&self) -> usize {
        self.nodes.last().copied().unwrap_or(0)
    }
}

/// All chains of a graph. Nothing inside of one is used outside.
pub(super) fn composed(graph: &Graph, uses: &Uses) -> Vec<Composed> {
    let finder = Finder { graph, uses };
    let mut found = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let chain = match node.op_type.as_deref() {
            Some("Div") => finder.layer_norm(index, node),
            Some("Erf") => finder.gelu(index, node),
            _ => None,
        };
        found.extend(chain.filter(|chain| finder.is_closed(chain)));
    }
    found
}

struct Finder<'a> {
    graph: &'a Graph,
    uses: &'a Uses,
}

impl<'a> Finder<'a> {
    /// The node that makes a value, if it is this operator.
    fn made(&self, value: &str, operator: &str) -> Option<(usize, &'a NodeProto)> {
        let index = self.uses.producer(value)?;
        let node = &self.graph.nodes[index];
        node.is(operator).then_some((index, node))
    }

    /// The only node that takes a value, if it is this operator.
    fn taken(&self, value: &str, operator: &str) -> Option<(usize, &'a NodeProto)> {
        let mut nodes = self.uses.consumers(value).iter().map(|&(node, _)| node);
        let index = nodes.next()?;
        let node = &self.graph.nodes[index];
        (node.is(operator) && nodes.all(|other| other == index)).then_some((index, node))
    }

    fn is_constant(&self, name: &str) -> bool {
        self.graph.initializers.contains(name)
    }

    /// Whether a name is a constant of a single number near this one.
    fn is_number(&self, name: &str, wanted: f64) -> bool {
        let tensor = self.graph.initializers.get(name);
        let values = tensor.and_then(|tensor| tensor.to_f32().ok());
        values.is_some_and(|v| v.len() == 1 && (f64::from(v[0]) - wanted).abs() < 1e-3 * wanted)
    }

    /// The other input of a node of two.
    fn other(&self, node: &'a NodeProto, name: &str) -> Option<&'a str> {
        let (one, two) = (node.input_at(0)?, node.input_at(1)?);
        match (one == name, two == name) {
            (true, _) => Some(two),
            (_, true) => Some(one),
            _ => None,
        }
    }

    /// The input of a node that is not the constant it must have.
    fn beside(&self, node: &'a NodeProto, number: f64) -> Option<&'a str> {
        let (one, two) = (node.input_at(0)?, node.input_at(1)?);
        match (self.is_number(two, number), self.is_number(one, number)) {
            (true, _) => Some(one),
            (_, true) => Some(two),
            _ => None,
        }
    }

    /// Whether two means are over the same axes, and both keep or drop these.
    fn are_alike(&self, one: &NodeProto, two: &NodeProto) -> bool {
        let axes = |node: &NodeProto| match node.input_at(1) {
            Some(name) => self
                .graph
                .initializers
                .get(name)
                .and_then(|t| t.to_i64().ok()),
            None => node.ints("axes").map(<[i64]>::to_vec),
        };
        let keeps = |node: &NodeProto| node.int("keepdims").unwrap_or(1) != 0;
        axes(one).is_some_and(|found| axes(two) == Some(found)) && keeps(one) && keeps(two)
    }

    /// (x - mean) / sqrt(mean((x - mean)²) + ε), times a constant, plus another, where these are there. Found from its
    /// division.
    fn layer_norm(&self, index: usize, div: &'a NodeProto) -> Option<Composed> {
        let (apart, deviation) = (div.input_at(0)?, div.input_at(1)?);
        let (sub_index, sub) = self.made(apart, "Sub")?;
        let (x, mean) = (sub.input_at(0)?, sub.input_at(1)?);
        let (mean_index, mean_node) = self.made(mean, "ReduceMean")?;
        let (root_index, root) = self.made(deviation, "Sqrt")?;
        let (add_index, add) = self.made(root.input_at(0)?, "Add")?;
        let (variance, epsilon) = match self.is_constant(add.input_at(0)?) {
            true => (add.input_at(1)?, add.input_at(0)?),
            false => (add.input_at(0)?, add.input_at(1)?),
        };
        let (variance_index, variance_node) = self.made(variance, "ReduceMean")?;
        let squared = variance_node.input_at(0)?;
        let (square_index, base) = match (self.made(squared, "Pow"), self.made(squared, "Mul")) {
            (Some((at, pow)), _) if self.is_number(pow.input_at(1)?, 2.0) => (at, pow.input_at(0)?),
            (_, Some((at, mul))) if mul.input_at(0) == mul.input_at(1) => (at, mul.input_at(0)?),
            _ => return None,
        };
        let is_norm = mean_node.input_at(0) == Some(x)
            && self.is_constant(epsilon)
            && self.are_alike(mean_node, variance_node);
        if !is_norm {
            return None;
        }
        let mut nodes = vec![mean_index, sub_index];
        if base != apart {
            // Some exporters write the difference twice.
            let (again, twin) = self.made(base, "Sub")?;
            if (twin.input_at(0)?, twin.input_at(1)?) != (x, mean) {
                return None;
            }
            nodes.push(again);
        }
        nodes.extend([square_index, variance_index, add_index, root_index, index]);
        let mut output = div.output.first()?.as_str();
        for operator in ["Mul", "Add"] {
            let next = self.taken(output, operator);
            let of_constant = next.filter(|(_, node)| {
                self.other(node, output)
                    .is_some_and(|name| self.is_constant(name))
            });
            let Some((at, node)) = of_constant.filter(|_| !self.uses.is_output(output)) else {
                break;
            };
            nodes.push(at);
            output = node.output.first()?;
        }
        Some(Composed {
            operator: "LayerNormalization",
            input: x.to_string(),
            nodes,
        })
    }

    /// x · (1 + erf(x / √2)) / 2, the half wherever it stands. Found from its error function.
    fn gelu(&self, index: usize, erf: &'a NodeProto) -> Option<Composed> {
        let scaled = erf.input_at(0)?;
        let (scale_index, x) = match (self.made(scaled, "Div"), self.made(scaled, "Mul")) {
            (Some((at, div)), _) if self.is_number(div.input_at(1)?, std::f64::consts::SQRT_2) => {
                (at, div.input_at(0)?)
            }
            (_, Some((at, mul))) => (at, self.beside(mul, std::f64::consts::FRAC_1_SQRT_2)?),
            _ => return None,
        };
        let (add_index, add) = self.taken(erf.output.first()?, "Add")?;
        self.beside(add, 1.0)?;
        let sum = add.output.first()?;
        let (mul_index, mul) = self.taken(sum, "Mul")?;
        let (product, factor) = (mul.output.first()?, self.other(mul, sum)?);
        let mut nodes = vec![scale_index, index, add_index];
        if factor == x {
            let (half_index, half) = self.taken(product, "Mul")?;
            self.beside(half, 0.5)?;
            nodes.extend([mul_index, half_index]);
        } else if self.is_number(factor, 0.5) {
            let (last_index, last) = self.taken(product, "Mul")?;
            if self.other(last, product) != Some(x) {
                return None;
            }
            nodes.extend([mul_index, last_index]);
        } else {
            let (half_index, half) = self.made(factor, "Mul")?;
            if self.beside(half, 0.5) != Some(x) {
                return None;
            }
            nodes.extend([half_index, mul_index]);
        }
        Some(Composed {
            operator: "Gelu",
            input: x.to_string(),
            nodes,
        })
    }

    /// Whether nothing that is made inside is used outside.
    fn is_closed(&self, chain: &Composed) -> bool {
        let inner = chain.nodes.iter().filter(|&&node| node != chain.last());
        inner
            .flat_map(|&node| &self.graph.nodes[node].output)
            .all(|value| {
                let mut users = self.uses.consumers(value).iter();
                !self.uses.is_output(value) && users.all(|(user, _)| chain.nodes.contains(user))
            })
    }
}
