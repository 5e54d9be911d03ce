//! The constants of a graph.

use std::collections::HashMap;

use octet_onnx::schema::TensorProto;

/// Constants of a graph by name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Initializers {
    pub(crate) tensors: Vec<TensorProto>,
    index: HashMap<String, usize>,
}

impl Initializers {
    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&TensorProto> {
        self.index.get(name).map(|&i| &self.tensors[i])
    }

    /// Returns true if there is a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// Adds a tensor, replacing one of the same name.
    pub fn insert(&mut self, tensor: TensorProto) {
        let name = tensor.name.clone().unwrap_or_default();
        match self.index.get(&name) {
            Some(&i) => self.tensors[i] = tensor,
            None => {
                self.index.insert(name, self.tensors.len());
                self.tensors.push(tensor);
            }
        }
    }

    /// Keeps the tensors that satisfy `keep`, in their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&TensorProto) -> bool) {
        self.tensors.retain(|t| keep(t));
        self.index = self
            .tensors
            .iter()
            .enumerate()
            .map(|(i, t)| (t.name.clone().unwrap_or_default(), i))
            .collect();
    }

    /// Removes and returns a tensor.
    pub fn remove(&mut self, name: &str) -> Option<TensorProto> {
        let at = self.index.remove(name)?;
        self.index
            .values_mut()
            .filter(|i| **i > at)
            .for_each(|i| *i -= 1);
        Some(self.tensors.remove(at))
    }

    /// All tensors in order.
    pub fn iter(&self) -> impl Iterator<Item = &TensorProto> {
        self.tensors.iter()
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Returns true if there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }
}
