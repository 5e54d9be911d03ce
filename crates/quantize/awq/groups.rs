//! Products that read one value, and the constants before that value that take its scales.

use octet_graph::{MICROSOFT, Model, Node, NodeId, Slot};
use octet_onnx::schema::DataType;

/// The greatest number of nodes between a value and the constants that take its scales.
const REACH: usize = 8;

/// Products that share the scales of the value that they read.
pub(super) struct ScaledGroup {
    /// Its number of channels.
    pub(super) channels: usize,
    pub(super) products: Vec<ScaledProduct>,
    pub(super) before: Vec<ScaledConstant>,
}

/// A product with a weight that only it reads.
pub(super) struct ScaledProduct {
    pub(super) node: NodeId,
    pub(super) weight: String,
    /// True if the weight is [outputs, inputs].
    pub(super) transposed: bool,
}

/// A constant that is divided by the scales.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ScaledConstant {
    /// A number for each channel, in an input of a node.
    Vector { node: NodeId, slot: usize },
    /// The weight of a product, whose outputs are the channels.
    Columns { node: NodeId, transposed: bool },
}

impl ScaledConstant {
    /// The node, the input, and the name of the constant.
    pub(super) fn place(&self, model: &Model) -> (NodeId, usize, String) {
        let (node, slot) = match *self {
            ScaledConstant::Vector { node, slot } => (node, slot),
            ScaledConstant::Columns { node, .. } => (node, 1),
        };
        (node, slot, model.graph.nodes()[node].input[slot].clone())
    }
}

/// The groups of a model.
pub(super) struct FoundGroups {
    pub(super) groups: Vec<ScaledGroup>,
    /// The number of products that were looked at.
    pub(super) products: usize,
}

/// Finds the groups whose products are all `wanted`.
pub(super) fn groups(model: &Model, wanted: &dyn Fn(&Node) -> bool) -> FoundGroups {
    let search = GroupSearch { model };
    let mut found = FoundGroups {
        groups: Vec::new(),
        products: 0,
    };
    let mut values: Vec<&str> = Vec::new();
    for (id, node) in model.graph.nodes().iter().enumerate() {
        if search.product(id).is_none() || !wanted(node) {
            continue;
        }
        found.products += 1;
        let value = node.input_at(0).unwrap_or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let groups = values.into_iter();
    found.groups = groups
        .filter_map(|value| search.group(value, wanted))
        .collect();
    found
}

struct GroupSearch<'a> {
    model: &'a Model,
}

impl GroupSearch<'_> {
    /// A MatMul or Gemm with a float32 matrix that nothing else reads.
    fn product(&self, id: NodeId) -> Option<ScaledProduct> {
        let graph = &self.model.graph;
        let node = &graph.nodes()[id];
        let transposed = match node.operator().as_str() {
            "MatMul" => false,
            "Gemm" => {
                let plain = node.int("transA").unwrap_or(0) == 0
                    && node.float("alpha").unwrap_or(1.0) == 1.0
                    && node.float("beta").unwrap_or(1.0) == 1.0;
                if !plain {
                    return None;
                }
                node.int("transB").unwrap_or(0) != 0
            }
            _ => return None,
        };
        let weight = node.input_at(1)?;
        let tensor = graph.initializers.get(weight)?;
        let sound = tensor.dims.len() == 2
            && tensor.element() == Ok(DataType::Float)
            && !graph.initializers.contains(node.input_at(0)?)
            && !graph.is_output(weight)
            && graph.consumers(weight).len() == 1;
        sound.then(|| ScaledProduct {
            node: id,
            weight: weight.to_owned(),
            transposed,
        })
    }

    /// The sizes of a product's weight: inputs and outputs.
    fn sizes(&self, product: &ScaledProduct) -> Option<[usize; 2]> {
        let tensor = self.model.graph.initializers.get(&product.weight)?;
        let &[first, second] = tensor.shape().ok()?.as_slice() else {
            return None;
        };
        Some(match product.transposed {
            true => [second, first],
            false => [first, second],
        })
    }

    /// The group of a value, if all its readers are wanted products and something takes the scales.
    fn group(&self, value: &str, wanted: &dyn Fn(&Node) -> bool) -> Option<ScaledGroup> {
        let graph = &self.model.graph;
        if graph.is_output(value) {
            return None;
        }
        let mut products = Vec::new();
        for reader in graph.consumers(value) {
            let product = self.product(reader.node)?;
            if reader.slot != Slot::Input(0) || !wanted(&graph.nodes()[reader.node]) {
                return None;
            }
            products.push(product);
        }
        let [channels, _] = self.sizes(products.first()?)?;
        let equal = |product| self.sizes(product).is_some_and(|[own, _]| own == channels);
        if channels == 0 || !products.iter().all(equal) {
            return None;
        }
        let mut before = Vec::new();
        self.before(value, channels, REACH, &mut before)?;
        Some(ScaledGroup {
            channels,
            products,
            before,
        })
    }

    /// Collects the constants that divide a value by scales of its channels.
    fn before(
        &self,
        value: &str,
        channels: usize,
        reach: usize,
        to: &mut Vec<ScaledConstant>,
    ) -> Option<()> {
        let graph = &self.model.graph;
        let id = graph.producer(value).filter(|_| reach > 0)?;
        let node = &graph.nodes()[id];
        if node.output.first().map(String::as_str) != Some(value) {
            return None;
        }
        if let Some(slots) = norm_slots(node) {
            let rest = slots.iter().filter(|&&slot| node.input_at(slot).is_some());
            for &slot in rest {
                self.vector(id, slot, channels, to)?;
            }
            return Some(());
        }
        if let Some(product) = self.product(id) {
            if self.sizes(&product)?[1] != channels {
                return None;
            }
            if node.input_at(2).is_some() {
                self.vector(id, 2, channels, to)?;
            }
            to.push(ScaledConstant::Columns {
                node: id,
                transposed: product.transposed,
            });
            return Some(());
        }
        let constant = |slot: usize| {
            let name = node.input_at(slot);
            name.is_some_and(|name| graph.initializers.contains(name))
        };
        match node.operator().as_str() {
            "Mul" => {
                // One factor is enough, a constant first.
                for slot in [0, 1] {
                    let mut own = to.clone();
                    let done = match constant(slot) {
                        true => self.vector(id, slot, channels, &mut own),
                        false => None,
                    };
                    if done.is_some() {
                        *to = own;
                        return done;
                    }
                }
                for slot in [1, 0] {
                    let mut own = to.clone();
                    if self
                        .through(node, slot, channels, reach, &mut own)
                        .is_some()
                    {
                        *to = own;
                        return Some(());
                    }
                }
                None
            }
            "Add" => {
                let slot = (0..2).find(|&slot| constant(slot))?;
                self.vector(id, slot, channels, to)?;
                self.through(node, 1 - slot, channels, reach, to)
            }
            // Positive scales pass.
            "Relu" => self.through(node, 0, channels, reach, to),
            _ => None,
        }
    }

    /// Goes on with an input that nothing else reads.
    fn through(
        &self,
        node: &Node,
        slot: usize,
        channels: usize,
        reach: usize,
        to: &mut Vec<ScaledConstant>,
    ) -> Option<()> {
        let graph = &self.model.graph;
        let name = node.input_at(slot)?;
        graph.only_consumer(name)?;
        if graph.is_output(name) {
            return None;
        }
        self.before(name, channels, reach - 1, to)
    }

    /// Adds a constant with a number for each channel along the last axis.
    fn vector(
        &self,
        node: NodeId,
        slot: usize,
        channels: usize,
        to: &mut Vec<ScaledConstant>,
    ) -> Option<()> {
        let graph = &self.model.graph;
        let name = graph.nodes()[node].input_at(slot)?;
        let tensor = graph.initializers.get(name)?;
        let shape = tensor.shape().ok()?;
        let sound = shape.last() == Some(&channels)
            && shape.iter().product::<usize>() == channels
            && tensor.element() == Ok(DataType::Float)
            && !graph.is_output(name);
        sound.then(|| to.push(ScaledConstant::Vector { node, slot }))
    }
}

/// The inputs of a normalization along the last axis that scale and shift its output.
fn norm_slots(node: &Node) -> Option<&'static [usize]> {
    let last = node.int("axis").unwrap_or(-1) == -1;
    let theirs = node.domain.as_deref() == Some(MICROSOFT);
    match (node.op_type.as_str(), theirs) {
        ("LayerNormalization" | "RMSNormalization", false) if last => Some(&[1, 2]),
        // ONNX Runtime registers it in ONNX's domain.
        ("SimplifiedLayerNormalization", _) if last => Some(&[1]),
        ("SkipSimplifiedLayerNormalization", true) => Some(&[2]),
        ("SkipLayerNormalization", true) => Some(&[2, 3]),
        _ => None,
    }
}
