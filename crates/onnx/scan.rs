//! A scan of the file's bytes before decoding.
//!
//! A few bytes of a malicious file can expand to a message of hundreds of bytes in memory, so
//! messages are counted first. The scan also distinguishes truncated files from other formats, and
//! rejects nesting that would overflow the stack.

/// Limits on the contents of a file.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the file. Protobuf itself is limited to 2 GiB.
    pub bytes: usize,
    /// Total number of messages and strings: nodes, attributes, tensors, names ….
    pub messages: usize,
    /// Depth of nested messages. prost stops at 100.
    pub depth: usize,
}

/// The limits for all files: several times the needs of the largest known models.
pub const LIMITS: Limits = Limits {
    bytes: (1 << 31) - 1,
    messages: 8_000_000,
    depth: 90,
};

/// Reason for which the scan failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ScanError {
    #[error(
        "the file was cut short: at least {missing} bytes are missing after its {bytes} bytes; download or export it again"
    )]
    Truncated { missing: u64, bytes: u64 },
    #[error(
        "byte {at} can't be part of an ONNX model: the file is damaged or of another format; download or export it again"
    )]
    Malformed { at: u64 },
    #[error(
        "its messages are nested more than {limit} deep (byte {at}), deeper than in any real model; export it again"
    )]
    TooDeep { at: u64, limit: usize },
    #[error("it has more than {limit} messages and names, more than can be opened safely")]
    TooMany { limit: usize },
}

/// Field types: messages that contain messages, as far as the scan follows them, and others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FieldKind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    ValueInfo,
    Type,
    /// A type with a type in field 1 (sequence, optional).
    TypeOfOne,
    /// A type with a type in field 2 (map).
    TypeOfTwo,
    /// A type with a shape in field 2.
    TensorType,
    Shape,
    Training,
    Function,
    /// A message with small, flat contents.
    Leaf,
    /// Strings, which are counted.
    Text,
    /// Bytes and packed numbers, which are skipped.
    Bytes,
}

impl FieldKind {
    /// The type of the length-delimited field `tag` of this message.
    pub(super) fn field(self, tag: u64) -> FieldKind {
        use FieldKind::*;
        match (self, tag) {
            (Model, 7) => Graph,
            (Model, 20) => Training,
            (Model, 25) => Function,
            (Graph, 1) | (Function, 7) => Node,
            (Graph, 5) => Tensor,
            (Graph, 11..=13) | (Function, 12) => ValueInfo,
            (Graph, 15) => SparseTensor,
            (Node, 5) | (Function, 11) => Attribute,
            (Attribute, 5 | 10) => Tensor,
            (Attribute, 6 | 11) => Graph,
            (Attribute, 14 | 15) => Type,
            (Attribute, 22 | 23) => SparseTensor,
            (SparseTensor, 1 | 2) => Tensor,
            (ValueInfo, 2) => Type,
            (Type, 4 | 9) => TypeOfOne,
            (Type, 5) => TypeOfTwo,
            (TypeOfOne, 1) | (TypeOfTwo, 2) => Type,
            (Training, 1 | 2) => Graph,
            (Type, 1 | 8) => TensorType,
            (TensorType, 2) => Shape,
            (Shape, 1) | (Model, 8 | 14 | 26) | (Tensor, 13 | 16) => Leaf,
            (Tensor, 4 | 5 | 7 | 9 | 10 | 11) | (Attribute, 4 | 7 | 8) => Bytes,
            _ => Text,
        }
    }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    limits: Limits,
    messages: usize,
}

/// Scans a whole model. The caller checks the file size.
pub(super) fn scan(bytes: &[u8], limits: Limits) -> Result<(), ScanError> {
    let mut scanner = Scanner {
        bytes,
        limits,
        messages: 0,
    };
    scanner.message(FieldKind::Model, 0, bytes.len(), 0)
}

impl Scanner<'_> {
    fn message(
        &mut self,
        kind: FieldKind,
        start: usize,
        end: usize,
        depth: usize,
    ) -> Result<(), ScanError> {
        if depth > self.limits.depth {
            return Err(ScanError::TooDeep {
                at: start as u64,
                limit: self.limits.depth,
            });
        }
        let mut at = start;
        while at < end {
            let field = at;
            let key = self.varint(&mut at, end, field)?;
            let length = match key & 7 {
                0 => {
                    self.varint(&mut at, end, field)?;
                    continue;
                }
                1 => 8,
                2 => {
                    let length = self.varint(&mut at, end, field)?;
                    usize::try_from(length)
                        .map_err(|_| ScanError::Malformed { at: field as u64 })?
                }
                5 => 4,
                _ => return Err(ScanError::Malformed { at: field as u64 }),
            };
            if key >> 3 == 0 {
                return Err(ScanError::Malformed { at: field as u64 });
            }
            let over = length.saturating_sub(end - at);
            if over > 0 {
                return Err(self.cut(kind, over, end, field));
            }
            if key & 7 == 2 {
                let inner = kind.field(key >> 3);
                if inner != FieldKind::Bytes {
                    self.count()?;
                }
                if !matches!(inner, FieldKind::Bytes | FieldKind::Text) {
                    self.message(inner, at, at + length, depth + 1)?;
                }
            }
            at += length;
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), ScanError> {
        self.messages += 1;
        if self.messages > self.limits.messages {
            return Err(ScanError::TooMany {
                limit: self.limits.messages,
            });
        }
        Ok(())
    }

    /// The error for a field longer than the data. At the outermost level, in a field of a model,
    /// the file is truncated. Elsewhere the lengths contradict each other.
    fn cut(&self, kind: FieldKind, over: usize, end: usize, field: usize) -> ScanError {
        if kind == FieldKind::Model && end == self.bytes.len() && over < self.limits.bytes {
            ScanError::Truncated {
                missing: over as u64,
                bytes: self.bytes.len() as u64,
            }
        } else {
            ScanError::Malformed { at: field as u64 }
        }
    }

    fn varint(&self, at: &mut usize, end: usize, field: usize) -> Result<u64, ScanError> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            if *at >= end {
                return Err(if end == self.bytes.len() {
                    ScanError::Truncated {
                        missing: 1,
                        bytes: end as u64,
                    }
                } else {
                    ScanError::Malformed { at: field as u64 }
                });
            }
            let byte = self.bytes[*at];
            *at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ScanError::Malformed { at: field as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::*;
    use prost::Message;

    #[test]
    fn text_is_not_scanned_as_a_message() {
        // Every one of these byte strings is malformed as protobuf.
        let text = || Some("3\u{7f}octet corpus".to_string());
        let entry = || StringStringEntryProto {
            key: text(),
            value: text(),
        };
        let dim = Dimension {
            denotation: text(),
            value: Some(DimensionValue::DimParam("3~batch".into())),
        };
        let tensor_type = TensorTypeProto {
            elem_type: Some(1),
            shape: Some(TensorShapeProto { dim: vec![dim] }),
        };
        let model = ModelProto {
            producer_name: text(),
            producer_version: text(),
            domain: text(),
            doc_string: text(),
            opset_import: vec![OperatorSetIdProto {
                domain: text(),
                version: Some(13),
            }],
            metadata_props: vec![entry()],
            configuration: vec![DeviceConfigurationProto {
                name: text(),
                ..Default::default()
            }],
            graph: Some(GraphProto {
                name: text(),
                input: vec![ValueInfoProto {
                    r#type: Some(TypeProto {
                        denotation: text(),
                        value: Some(TypeValue::TensorType(tensor_type)),
                    }),
                    metadata_props: vec![entry()],
                    ..Default::default()
                }],
                quantization_annotation: vec![TensorAnnotation {
                    tensor_name: text(),
                    quant_parameter_tensor_names: vec![entry()],
                }],
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(scan(&model.encode_to_vec(), LIMITS), Ok(()));
    }

    #[test]
    fn dimensions_of_a_shape_count() {
        let shape = TensorShapeProto {
            dim: vec![Dimension::default(); 100],
        };
        let tensor_type = TensorTypeProto {
            elem_type: None,
            shape: Some(shape),
        };
        let value = TypeProto {
            value: Some(TypeValue::TensorType(tensor_type)),
            denotation: None,
        };
        let input = vec![ValueInfoProto {
            r#type: Some(value),
            ..Default::default()
        }];
        let graph = Some(GraphProto {
            input,
            ..Default::default()
        });
        let model = ModelProto {
            graph,
            ..Default::default()
        };
        let limits = Limits {
            messages: 100,
            ..LIMITS
        };
        assert_eq!(
            scan(&model.encode_to_vec(), limits),
            Err(ScanError::TooMany { limit: 100 })
        );
    }
}
