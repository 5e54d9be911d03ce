//! Declared types of values, including sequences, optional values and maps.

use super::Upcaster;
use octet_onnx::schema::{DataType, TypeProto, TypeValue, ValueInfoProto};

impl Upcaster {
    pub(super) fn values(&mut self, values: &mut [ValueInfoProto]) {
        for value in values {
            self.value(value);
        }
    }

    /// Upcasts the type of a value; true if it had 16 bits.
    pub(super) fn value(&mut self, value: &mut ValueInfoProto) -> bool {
        value.r#type.as_mut().is_some_and(|kind| self.kind(kind))
    }

    /// Upcasts a type; true if it had 16 bits.
    pub(super) fn kind(&mut self, kind: &mut TypeProto) -> bool {
        let inner = match &mut kind.value {
            Some(TypeValue::TensorType(tensor) | TypeValue::SparseTensorType(tensor)) => {
                let element = tensor.elem_type.and_then(|t| DataType::try_from(t).ok());
                let Some(element) = element.filter(|element| element.is_half()) else {
                    return false;
                };
                tensor.elem_type = Some(DataType::Float as i32);
                self.note_type(element);
                return true;
            }
            Some(TypeValue::SequenceType(sequence)) => sequence.elem_type.as_mut(),
            Some(TypeValue::OptionalType(optional)) => optional.elem_type.as_mut(),
            Some(TypeValue::MapType(map)) => map.value_type.as_mut(),
            Some(TypeValue::OpaqueType(_)) | None => None,
        };
        inner.is_some_and(|kind| self.kind(kind))
    }
}
