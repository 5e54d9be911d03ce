//! Upcasts models of 16-bit floats (float16 or bfloat16) to float32 before all other passes:
//! weights, declared types and type attributes, in subgraphs and functions too.
//!
//! Constants keep their values, because every 16-bit float is a float32. Results of nodes are no
//! longer rounded to 16 bits. ONNX Runtime's CPU provider does nearly the same: it runs most such
//! nodes in float32 and drops the Casts between them.
//!
//! A Cast to 16 bits doesn't round either. A float beyond 65504 stays as it was instead of becoming
//! infinite, and an integer is exact up to 2^24 instead of 2^11.
//!
//! Inputs and outputs keep their types for users of the model: [`Upcast::restore`] restores them.

mod ports;
mod types;
mod weights;

use std::collections::HashSet;

use super::PrepareError;
use crate::{Attribute, AttributeValue, Graph, MICROSOFT, Model, Node, Subgraph, tensor_type_of};
use octet_onnx::schema::{DataType, SparseTensorProto, TensorProto, ValueInfoProto};
use octet_onnx::tensor::TensorError;

/// Attributes of ONNX operators that name an element type.
const TYPES: [&str; 6] = [
    "dtype",
    "output_dtype",
    "output_datatype",
    "precision",
    "softmax_precision",
    "stash_type",
];

/// Record of the 16-bit floats in a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Upcast {
    /// Their element type; `None` if the model had none.
    element: Option<DataType>,
    /// Number of upcast constants, including those in subgraphs and attributes.
    constants: usize,
    /// Names of the large constants.
    weights: HashSet<String>,
    /// The 16-bit inputs and their types.
    inputs: Vec<(String, DataType)>,
    /// The 16-bit outputs and their types.
    outputs: Vec<(String, DataType)>,
}

impl Upcast {
    /// Upcasts a model in place.
    pub(super) fn apply(model: &mut Model) -> Result<Upcast, PrepareError> {
        let graph = &model.graph;
        let is_fed = |value: &&ValueInfoProto| {
            let name = value.name.as_deref().unwrap_or_default();
            !graph.initializers.contains(name)
        };
        let mut upcaster = Upcaster {
            record: Upcast {
                inputs: ports(graph.inputs.iter().filter(is_fed)),
                outputs: ports(graph.outputs().iter()),
                ..Upcast::default()
            },
            reads_bits: None,
        };
        upcaster.main(&mut model.graph)?;
        for function in &mut model.header_mut().functions {
            for attribute in &mut function.attribute_proto {
                let mut typed = Attribute::from_proto(std::mem::take(attribute));
                upcaster.attribute(&mut typed)?;
                *attribute = typed.to_proto();
            }
            for node in &mut function.node {
                let mut typed = Node::from_proto(std::mem::take(node));
                upcaster.node(&mut typed)?;
                *node = typed.to_proto();
            }
            upcaster.values(&mut function.value_info);
        }
        let record = upcaster.record;
        match upcaster.reads_bits {
            Some(node) if record.element.is_some() => Err(PrepareError::HalfBits { node }),
            _ => Ok(record),
        }
    }

    /// One sentence on the upcast; `None` if nothing was upcast.
    pub fn note(&self) -> Option<String> {
        let element = self.element?.name();
        let raised = match self.constants {
            0 => format!("Upcast values from {element} to float32"),
            1 => {
                format!("Upcast from {element} to float32, 1 constant with unchanged values")
            }
            many => {
                format!("Upcast from {element} to float32, {many} constants with unchanged values")
            }
        };
        let count = self.inputs.len() + self.outputs.len();
        Some(match count {
            0 => raised,
            _ => format!("{raised}; inputs and outputs keep their types in the written model"),
        })
    }
}

/// The values that are tensors of 16-bit floats.
fn ports<'a>(values: impl Iterator<Item = &'a ValueInfoProto>) -> Vec<(String, DataType)> {
    let halves = values.filter_map(|value| {
        let element = tensor_type_of(value)?.element;
        element.is_half().then_some((value.name.clone()?, element))
    });
    halves.collect()
}

struct Upcaster {
    record: Upcast,
    /// A node that reads the bits of a 16-bit number.
    reads_bits: Option<String>,
}

impl Upcaster {
    fn main(&mut self, graph: &mut Graph) -> Result<(), PrepareError> {
        graph.edit_ports(|inputs, outputs| {
            for value in inputs.iter_mut().chain(outputs) {
                if self.value(value) && tensor_type_of(value).is_none() {
                    let value = value.name.clone().unwrap_or_default();
                    return Err(PrepareError::HalfPort { value });
                }
            }
            Ok(())
        })?;
        self.values(&mut graph.value_info);
        // One at a time, so that at most one constant exists twice in memory.
        let names = graph.initializers.iter().filter_map(|t| t.name.clone());
        for name in names.collect::<Vec<_>>() {
            let widened = match graph.initializers.get(&name) {
                Some(tensor) => self.widened(tensor)?,
                None => None,
            };
            if let Some(tensor) = widened {
                self.note_weight(&name, &tensor);
                graph.initializers.insert(tensor);
            }
        }
        self.sparse(graph.sparse_mut())?;
        let large = graph.nodes().iter().filter_map(|node| {
            let tensor = node.tensor("value").filter(|_| node.is("Constant"))?;
            let is_half = tensor.element().is_ok_and(DataType::is_half);
            Some((node.output.first()?, tensor)).filter(|_| is_half)
        });
        for (name, tensor) in large {
            self.note_weight(name, tensor);
        }
        let mut result = Ok(());
        graph.edit_all(|_, node| {
            if result.is_ok() {
                result = self.node(node);
            }
        });
        result
    }

    fn inner(&mut self, graph: &mut Subgraph) -> Result<(), PrepareError> {
        self.values(&mut graph.inputs);
        self.values(&mut graph.outputs);
        self.values(&mut graph.value_info);
        self.tensors(&mut graph.initializers)?;
        self.sparse(graph.sparse_mut())?;
        graph.nodes.iter_mut().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &mut Node) -> Result<(), PrepareError> {
        self.upcast_type_attributes(node);
        let mut attributes = node.attributes.iter_mut();
        attributes.try_for_each(|attribute| self.attribute(attribute))
    }

    /// Replaces 16-bit types in a node's attributes by float32.
    fn upcast_type_attributes(&mut self, node: &mut Node) {
        let own = matches!(
            node.domain.as_deref(),
            None | Some("" | "ai.onnx" | MICROSOFT)
        );
        if !own {
            return;
        }
        let (cast, bits) = (node.is("Cast"), node.is("BitCast"));
        if bits {
            let to = node
                .int("to")
                .and_then(|to| DataType::try_from(to as i32).ok());
            // Both sides of a BitCast have the same number of bits.
            if to.is_none_or(|to| to.bits() == Some(16)) {
                self.reads_bits = Some(node.title().to_owned());
            }
            return;
        }
        for attribute in &mut node.attributes {
            if !(TYPES.contains(&attribute.name.as_str()) || cast && attribute.name == "to") {
                continue;
            }
            // Before opset 6 the type was a string.
            let named = attribute.as_bytes().and_then(half_named);
            let element = attribute.as_int();
            let element = element.and_then(|i| DataType::try_from(i as i32).ok());
            if let Some(element) = element.filter(|element| element.is_half()) {
                attribute.value = AttributeValue::Int(DataType::Float as i64);
                self.note_type(element);
            } else if let Some(element) = named {
                attribute.value = AttributeValue::Text("FLOAT".into());
                self.note_type(element);
            }
        }
    }

    fn attribute(&mut self, attribute: &mut Attribute) -> Result<(), PrepareError> {
        self.tensors(attribute.tensors_mut())?;
        for graph in attribute.graphs_mut() {
            self.inner(graph)?;
        }
        if let Some(rest) = attribute.rest_mut() {
            self.sparse(rest.sparse_tensor.as_mut_slice())?;
            self.sparse(&mut rest.sparse_tensors)?;
            for kind in rest.tp.iter_mut().chain(&mut rest.type_protos) {
                self.kind(kind);
            }
        }
        Ok(())
    }

    fn sparse(&mut self, tensors: &mut [SparseTensorProto]) -> Result<(), TensorError> {
        let values = tensors
            .iter_mut()
            .filter_map(|sparse| sparse.values.as_mut());
        for tensor in values {
            self.tensor(tensor)?;
        }
        Ok(())
    }

    fn tensors(&mut self, tensors: &mut [TensorProto]) -> Result<(), TensorError> {
        tensors
            .iter_mut()
            .try_for_each(|tensor| self.tensor(tensor))
    }

    fn tensor(&mut self, tensor: &mut TensorProto) -> Result<(), TensorError> {
        if let Some(widened) = self.widened(tensor)? {
            *tensor = widened;
        }
        Ok(())
    }

    fn widened(&mut self, tensor: &TensorProto) -> Result<Option<TensorProto>, TensorError> {
        let element = tensor.element()?;
        let widened = match tensor.is_external() && element.is_half() {
            // The bytes stay in their file; whoever reads them widens them.
            true => Some(TensorProto {
                data_type: Some(DataType::Float as i32),
                ..tensor.clone()
            }),
            false => tensor.widened()?,
        };
        Ok(widened.map(|mut widened| {
            self.record.constants += 1;
            self.note_type(element);
            widened.note_widened_from(Some(element));
            widened
        }))
    }

    fn note_weight(&mut self, name: &str, tensor: &TensorProto) {
        if tensor
            .element_count()
            .is_ok_and(|n| n >= weights::MIN_ELEMENTS)
        {
            self.record.weights.insert(name.to_owned());
        }
    }

    fn note_type(&mut self, element: DataType) {
        self.record.element.get_or_insert(element);
    }
}

fn half_named(name: &[u8]) -> Option<DataType> {
    let is = |element: &str| name.eq_ignore_ascii_case(element.as_bytes());
    match () {
        () if is("FLOAT16") => Some(DataType::Float16),
        () if is("BFLOAT16") => Some(DataType::Bfloat16),
        () => None,
    }
}
