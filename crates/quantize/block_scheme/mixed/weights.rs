//! Weights that become blocks, the nodes that read them, and their bytes.

use std::collections::{BTreeMap, BTreeSet};

use super::super::roles::{ConstantProduct, ProductRoles, constant_weight};
use super::{MANY, rank};
use crate::QuantizeError;
use crate::blocks::BlockSettings;
use octet_graph::{Graph, Model, Node, Use};
use octet_onnx::schema::DataType;

/// A node that reads a weight in blocks.
pub(super) struct WeightReader {
    pub(super) node: usize,
    settings: BlockSettings,
    /// True if the weight's column is contiguous.
    transposed: bool,
    /// True if the node's settings have bits of their own.
    pub(super) fixed: bool,
}

/// A weight with all its readers.
pub(super) struct MixedWeight<'a> {
    pub(super) product: &'a ConstantProduct,
    pub(super) readers: Vec<WeightReader>,
    /// Bits of a number in the source.
    stored: u64,
}

impl MixedWeight<'_> {
    /// The number of its numbers.
    pub(super) fn numbers(&self) -> u64 {
        self.product.rows as u64 * self.product.columns as u64
    }

    /// True if 8 bits are more than before, and less than the source.
    pub(super) fn can_grow(&self) -> bool {
        let rows = self.product.rows as u64;
        let grows = |reader: &WeightReader| {
            let padded = rows.next_multiple_of(reader.settings.size as u64);
            reader.settings.bits < MANY && padded * u64::from(MANY) < rows * self.stored
        };
        let mut free = self
            .readers
            .iter()
            .filter(|reader| !reader.fixed)
            .peekable();
        free.peek().is_some() && free.all(grows)
    }

    /// Bytes of its blocks; `raised`: with 8 bits.
    pub(super) fn bytes(&self, raised: bool) -> u64 {
        let mut forms = BTreeMap::new();
        for reader in &self.readers {
            let settings = &reader.settings;
            let bits = match raised && !reader.fixed {
                true => MANY,
                false => settings.bits,
            };
            let key = (
                bits,
                settings.size,
                settings.is_symmetric(),
                settings.method as u8,
                reader.transposed,
            );
            forms.insert(key, ());
        }
        let (rows, columns) = (self.product.rows as u64, self.product.columns as u64);
        let of_form = |&(bits, size, symmetric, ..): &(u8, usize, bool, u8, bool)| {
            let blocks = rows.div_ceil(size as u64);
            let integers = blocks * size as u64 * u64::from(bits) / 8;
            let zero_points = match symmetric {
                true => 0,
                false => blocks.div_ceil(u64::from(8 / bits)),
            };
            columns * (integers + blocks * self.stored / 8 + zero_points)
        };
        forms.keys().map(of_form).sum()
    }
}

/// The weights that become blocks, each with its readers and its most important product.
pub(super) fn weights<'a>(
    model: &Model,
    roles: &'a ProductRoles,
    of: &dyn Fn(&Node) -> BlockSettings,
    is_quantized: &dyn Fn(&Node) -> bool,
) -> Result<Vec<MixedWeight<'a>>, QuantizeError> {
    let graph = &model.graph;
    let mut by_weight: BTreeMap<&str, MixedWeight<'a>> = BTreeMap::new();
    let reader = |index: usize, transposed: bool| {
        let settings = of(&graph.nodes()[index]);
        settings.check().map_err(|error| QuantizeError::OfNode {
            node: graph.nodes()[index].title().into(),
            error: Box::new(error.into()),
        })?;
        Ok::<_, QuantizeError>(WeightReader {
            node: index,
            transposed,
            fixed: settings.mixed.is_none(),
            settings,
        })
    };
    for product in &roles.products {
        let node = &graph.nodes()[product.node];
        let Some(tensor) = graph.initializers.get(&product.weight) else {
            continue;
        };
        let element = tensor.element()?;
        let stored = element.bits().unwrap_or(0) as u64;
        let of_floats = element.is_half() || element == DataType::Float;
        if !is_quantized(node) || !of_floats || product.rows == 0 || product.columns == 0 {
            continue;
        }
        let turned = constant_weight(model, node).is_some_and(|(_, turned)| turned);
        let transposed = (node.is("Gemm") && node.int("transB").unwrap_or(0) != 0) != turned;
        let reader = reader(product.node, transposed)?;
        let padded = product.rows.next_multiple_of(reader.settings.size) as u64;
        if padded * u64::from(reader.settings.bits) >= product.rows as u64 * stored {
            continue;
        }
        let weight = by_weight.entry(&product.weight).or_insert(MixedWeight {
            product,
            readers: Vec::new(),
            stored,
        });
        if rank(product, roles.layers) < rank(weight.product, roles.layers) {
            weight.product = product;
        }
        weight.readers.push(reader);
    }
    // A table of embeddings shares the blocks of the head.
    for (index, node) in graph.nodes().iter().enumerate() {
        let table = node
            .input_at(0)
            .filter(|_| node.is("Gather") && is_quantized(node));
        let Some(weight) = table.and_then(|table| by_weight.get_mut(table)) else {
            continue;
        };
        let reader = reader(index, true)?;
        if reader.settings.embeddings && node.int("axis").unwrap_or(0) == 0 {
            weight.readers.push(reader);
        }
    }
    Ok(by_weight.into_values().collect())
}

/// Bytes of the constants that are no blocks.
pub(super) fn other_bytes(model: &Model, weights: &[MixedWeight]) -> Result<u64, QuantizeError> {
    let graph = &model.graph;
    let readers = weights.iter().flat_map(|weight| &weight.readers);
    let replaced: BTreeSet<usize> = readers.map(|reader| reader.node).collect();
    let names: BTreeSet<&str> = weights.iter().map(|w| w.product.weight.as_str()).collect();
    let mut bytes = 0;
    for tensor in graph.initializers.iter() {
        let name = tensor.name.as_deref().unwrap_or_default();
        if !names.contains(name) || is_read(name, graph, &replaced) {
            bytes += tensor.stored_bytes()?;
        }
    }
    Ok(bytes)
}

/// True if something but replaced nodes, and Transposes before them, reads a value.
fn is_read(name: &str, graph: &Graph, replaced: &BTreeSet<usize>) -> bool {
    let reads = |reader: &Use| {
        let node = &graph.nodes()[reader.node];
        let before_replaced = || {
            let output = node.output.first().map_or("", String::as_str);
            node.is("Transpose") && !is_read(output, graph, replaced)
        };
        !replaced.contains(&reader.node) && !before_replaced()
    };
    graph.is_output(name) || graph.consumers(name).iter().any(reads)
}
