//! The ONNX file format: what is read is written again; what can't be read is refused by name.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;

use bytes::Bytes;
use octet::onnx::schema::*;
use octet::onnx::{ReadError, ScanError, external, pieces, read, write};

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto {
        key: some(key),
        value: some(value),
    }
}

fn external_tensor(entries: &[(&str, &str)]) -> TensorProto {
    TensorProto {
        name: some("w"),
        dims: vec![2],
        data_type: Some(DataType::Float as i32),
        external_data: entries.iter().map(|(k, v)| entry(k, v)).collect(),
        data_location: Some(DataLocation::External as i32),
        ..TensorProto::default()
    }
}

fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto {
            domain: some(""),
            version: Some(13),
        }],
        ..ModelProto::default()
    }
}

fn with_tensor(tensor: TensorProto) -> ModelProto {
    model(GraphProto {
        initializer: vec![tensor],
        ..GraphProto::default()
    })
}

/// A model in which every kind of message and every field of a node stands.
fn full() -> ModelProto {
    let numbers = |data_type: DataType| TensorProto {
        name: Some(format!("{data_type:?}")),
        dims: vec![2, 1],
        data_type: Some(data_type as i32),
        doc_string: some(""),
        metadata_props: vec![entry("a", "b")],
        ..TensorProto::default()
    };
    let tensors = vec![
        TensorProto {
            float_data: vec![1.5, -0.0],
            ..numbers(DataType::Float)
        },
        TensorProto {
            int32_data: vec![-1, 7],
            ..numbers(DataType::Int8)
        },
        TensorProto {
            int64_data: vec![i64::MIN, 7],
            ..numbers(DataType::Int64)
        },
        TensorProto {
            double_data: vec![1e300, 0.0],
            ..numbers(DataType::Double)
        },
        TensorProto {
            uint64_data: vec![u64::MAX, 0],
            ..numbers(DataType::Uint64)
        },
        TensorProto {
            string_data: vec![Bytes::from_static(b"\xff"), Bytes::new()],
            ..numbers(DataType::String)
        },
        TensorProto {
            raw_data: Some(vec![7; 4].into()),
            ..numbers(DataType::Float16)
        },
    ];
    let tensor = tensors[0].clone();
    let sparse = SparseTensorProto {
        values: Some(tensor.clone()),
        indices: Some(tensors[2].clone()),
        dims: vec![9, 1],
    };
    let float_type = TypeProto {
        denotation: some("IMAGE"),
        value: Some(TypeValue::TensorType(TensorTypeProto {
            elem_type: Some(1),
            shape: Some(TensorShapeProto {
                dim: vec![
                    Dimension {
                        denotation: some("N"),
                        value: Some(DimensionValue::DimParam("batch".into())),
                    },
                    Dimension {
                        denotation: None,
                        value: Some(DimensionValue::DimValue(0)),
                    },
                    Dimension::default(),
                ],
            }),
        })),
    };
    let boxed = || Some(Box::new(float_type.clone()));
    let kinds = vec![
        TypeValue::SequenceType(Box::new(SequenceTypeProto { elem_type: boxed() })),
        TypeValue::MapType(Box::new(MapTypeProto {
            key_type: Some(7),
            value_type: boxed(),
        })),
        TypeValue::OptionalType(Box::new(OptionalTypeProto { elem_type: boxed() })),
        TypeValue::OpaqueType(OpaqueTypeProto {
            domain: some("d"),
            name: some("n"),
        }),
    ];
    let kinds: Vec<_> = kinds
        .into_iter()
        .map(|value| TypeProto {
            denotation: None,
            value: Some(value),
        })
        .chain([float_type.clone()])
        .collect();
    let value = ValueInfoProto {
        name: some("x"),
        r#type: Some(float_type.clone()),
        doc_string: some("doc"),
        metadata_props: vec![entry("k", "v")],
    };
    let inner = GraphProto {
        name: some("inner"),
        input: vec![value.clone()],
        ..GraphProto::default()
    };
    let attribute = AttributeProto {
        name: some("all"),
        f: Some(0.0),
        i: Some(-3),
        s: Some(Bytes::from_static(b"\xfe")),
        t: Some(tensor.clone()),
        g: Some(inner.clone()),
        floats: vec![1.0, 2.0],
        ints: vec![-1, i64::MAX],
        strings: vec![Bytes::from_static(b"s")],
        tensors: tensors.clone(),
        graphs: vec![inner.clone()],
        doc_string: some("d"),
        tp: Some(float_type.clone()),
        type_protos: kinds,
        r#type: Some(AttributeType::Graphs as i32),
        ref_attr_name: some("other"),
        sparse_tensor: Some(sparse.clone()),
        sparse_tensors: vec![sparse.clone()],
    };
    let spec = ShardingSpecProto {
        tensor_name: some("x"),
        device: vec![0, 1],
        index_to_device_group_map: vec![IntIntListEntryProto {
            key: Some(1),
            value: vec![2, 3],
        }],
        sharded_dim: vec![ShardedDimProto {
            axis: Some(0),
            simple_sharding: vec![SimpleShardedDimProto {
                num_shards: Some(2),
                dim: Some(DimensionValue::DimParam("n".into())),
            }],
        }],
    };
    let node = NodeProto {
        input: vec!["x".into(), String::new()],
        output: vec!["y".into()],
        name: some("node"),
        op_type: some("Op"),
        attribute: vec![attribute.clone()],
        doc_string: some("d"),
        domain: some("my.domain"),
        overload: some("o"),
        metadata_props: vec![entry("k", "")],
        device_configurations: vec![NodeDeviceConfigurationProto {
            configuration_id: some("c"),
            sharding_spec: vec![spec],
            pipeline_stage: Some(0),
        }],
    };
    let opset = OperatorSetIdProto {
        domain: some("my.domain"),
        version: Some(1),
    };
    let mut full = model(GraphProto {
        node: vec![node.clone()],
        name: some("g"),
        initializer: tensors,
        doc_string: some("d"),
        input: vec![value.clone()],
        output: vec![value.clone()],
        value_info: vec![value.clone()],
        quantization_annotation: vec![TensorAnnotation {
            tensor_name: some("x"),
            quant_parameter_tensor_names: vec![entry("SCALE_TENSOR", "s")],
        }],
        sparse_initializer: vec![sparse],
        metadata_props: vec![entry("k", "v")],
    });
    full.producer_name = some("p");
    full.producer_version = some("1");
    full.domain = some("d");
    full.model_version = Some(-1);
    full.doc_string = some("");
    full.opset_import.push(opset.clone());
    full.metadata_props = vec![entry("k", "v")];
    full.training_info = vec![TrainingInfoProto {
        initialization: Some(inner.clone()),
        algorithm: Some(inner),
        initialization_binding: vec![entry("a", "b")],
        update_binding: vec![entry("c", "d")],
    }];
    full.functions = vec![FunctionProto {
        name: some("Op"),
        input: vec!["x".into()],
        output: vec!["y".into()],
        attribute: vec!["all".into()],
        node: vec![node],
        doc_string: some("d"),
        opset_import: vec![opset],
        domain: some("my.domain"),
        attribute_proto: vec![attribute],
        value_info: vec![value],
        overload: some("o"),
        metadata_props: vec![entry("k", "v")],
    }];
    full.configuration = vec![DeviceConfigurationProto {
        name: some("c"),
        num_devices: Some(2),
        device: vec!["cpu".into()],
    }];
    full
}

#[test]
fn what_is_written_reads_as_the_same_in_every_field() {
    let model = full();
    let file = write(&model).unwrap();
    let again = read(file.clone().into()).unwrap();
    assert_eq!(again, model);
    assert_eq!(write(&again).unwrap(), file);
}

#[test]
fn tensors_share_the_memory_of_the_file() {
    let tensor = TensorProto::from_f32("w", &[100], &[1.0; 100]);
    let file = Bytes::from(write(&with_tensor(tensor)).unwrap());
    let model = read(file.clone()).unwrap();
    let raw = model.graph.unwrap().initializer[0]
        .raw_data
        .clone()
        .unwrap();
    let memory = file.as_ptr_range();
    assert!(memory.contains(&raw.as_ptr()) && raw.len() == 400);
}

#[test]
fn a_file_in_pieces_is_the_file_and_shares_its_tensors() {
    let mut model = full();
    let graph = model.graph.as_mut().unwrap();
    let sizes = [1, 1023, 1024, 5000];
    let large = sizes.map(|size| TensorProto::from_f32("w", &[size], &vec![1.5; size]));
    graph.initializer.extend(large.clone());
    let pieces = pieces(&model).unwrap();
    let file = write(&model).unwrap();
    assert_eq!(pieces.as_slice().concat(), file);
    assert_eq!(pieces.bytes(), file.len());
    // The two last are worth a piece of their own.
    let shared = large.map(|tensor| tensor.raw_data.unwrap().as_ptr());
    let found = pieces.as_slice().iter().map(|piece| piece.as_ptr());
    let found: Vec<_> = found.filter(|piece| shared.contains(piece)).collect();
    assert_eq!(found, shared[2..]);
}

#[test]
fn a_file_that_is_no_model_is_refused_by_what_it_is() {
    let file = write(&full()).unwrap();
    assert_eq!(read(Bytes::new()), Err(ReadError::Empty));
    for (bytes, says) in [
        (&b"<!DOCTYPE html><html>"[..], "web page"),
        (b"\n  <html>", "web page"),
        (b"PK\x03\x04....", "zip"),
        (
            b"version https://git-lfs.github.com/spec/v1",
            "git lfs pull",
        ),
        (b"{\"a\": 1}", "JSON"),
        (b"\x08\x08", "no graph"),
        (
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            "damaged",
        ),
    ] {
        let error = read(Bytes::copy_from_slice(bytes)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    // However it is cut, a model is never taken for a whole one.
    for length in (1..file.len()).step_by(7) {
        if let Ok(cut) = read(Bytes::copy_from_slice(&file[..length])) {
            // Between two fields of the outermost message nothing shows but what is missing.
            assert!(cut.graph.is_some() && !cut.opset_import.is_empty());
        }
    }
    let whole = write(&with_tensor(TensorProto::from_f32(
        "w",
        &[100],
        &[1.0; 100],
    )))
    .unwrap();
    let error = read(Bytes::copy_from_slice(&whole[..200])).unwrap_err();
    assert!(
        matches!(
            error,
            ReadError::Scan(ScanError::Truncated { given: 200, .. })
        ),
        "{error}"
    );
}

#[test]
fn a_model_of_a_later_version_is_refused() {
    let mut model = full();
    model.ir_version = Some(NEWEST_IR_VERSION + 1);
    let error = read(write(&model).unwrap().into()).unwrap_err();
    assert_eq!(
        error,
        ReadError::TooNew {
            given: NEWEST_IR_VERSION + 1
        }
    );
}

#[test]
fn nesting_ends_before_the_stack_does() {
    let mut graph = GraphProto::default();
    for _ in 0..40 {
        let attribute = AttributeProto {
            g: Some(graph),
            ..AttributeProto::default()
        };
        let node = NodeProto {
            attribute: vec![attribute],
            ..NodeProto::default()
        };
        graph = GraphProto {
            node: vec![node],
            ..GraphProto::default()
        };
    }
    let error = read(write(&model(graph)).unwrap().into()).unwrap_err();
    assert!(
        matches!(error, ReadError::Scan(ScanError::TooDeep { .. })),
        "{error}"
    );
}

#[test]
fn a_tensor_holds_what_its_shape_says() {
    for (given, dims) in [
        (12, vec![2]),
        (4, vec![2]),
        (8, vec![-2]),
        (8, vec![i64::MAX, 4]),
    ] {
        let mut tensor = TensorProto::from_raw("w", DataType::Float, &[], vec![0; given].into());
        tensor.dims = dims;
        let error = read(write(&with_tensor(tensor)).unwrap().into()).unwrap_err();
        assert!(matches!(error, ReadError::Tensor(_)) && error.to_string().contains("tensor w"));
    }
}

#[test]
fn external_tensors_become_slices_of_their_file() {
    let entries = [
        ("location", "sub/weights.bin"),
        ("offset", "4"),
        ("length", "8"),
    ];
    let mut model = with_tensor(external_tensor(&entries));
    assert_eq!(external::files(&model), ["sub/weights.bin"]);
    let file: Bytes = [0f32, 1.0, 2.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect::<Vec<_>>()
        .into();
    let error = external::attach(&mut model, &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("sub/weights.bin"), "{error}");
    // A page knows a file by its last name only.
    external::attach(
        &mut model,
        &BTreeMap::from([("weights.bin".to_owned(), file.clone())]),
    )
    .unwrap();
    let tensor = &model.graph.as_ref().unwrap().initializer[0];
    assert_eq!(tensor.to_f32().unwrap(), [1.0, 2.0]);
    assert_eq!(
        tensor.raw_data.as_ref().unwrap().as_ptr(),
        file[4..].as_ptr()
    );
    assert!(external::files(&model).is_empty());
}

#[test]
fn external_data_that_is_wrong_is_refused() {
    let file = Bytes::from(vec![0; 8]);
    for (entries, says) in [
        (vec![("location", "../secret")], "outside"),
        (vec![("location", "/etc/passwd")], "outside"),
        (vec![("location", "w"), ("offset", "4")], "cut short"),
        (vec![("location", "w"), ("length", "4")], "want 8"),
        (vec![("location", "w"), ("offset", "-1")], "not a number"),
        (vec![("offset", "0")], "doesn't say"),
    ] {
        let mut model = with_tensor(external_tensor(&entries));
        let given = entries.iter().filter(|e| e.0 == "location");
        let given = given.map(|e| (e.1.to_owned(), file.clone())).collect();
        let error = external::attach(&mut model, &given)
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn numbers_are_the_same_from_every_field() {
    let half = |bits: &[u16]| {
        let raw: Vec<u8> = bits.iter().flat_map(|b| b.to_le_bytes()).collect();
        TensorProto::from_raw("h", DataType::Float16, &[bits.len()], raw.into())
            .to_f32()
            .unwrap()
    };
    assert_eq!(
        half(&[0x3c00, 0xc000, 0x0001, 0x7bff]),
        [1.0, -2.0, 5.960_464_5e-8, 65504.0]
    );
    assert!(half(&[0x7e00])[0].is_nan() && half(&[0xfc00])[0] == f32::NEG_INFINITY);
    let packed = TensorProto {
        dims: vec![2],
        data_type: Some(DataType::Int8 as i32),
        int32_data: vec![-1, 5],
        ..TensorProto::default()
    };
    assert_eq!(
        packed.to_i64().unwrap(),
        TensorProto::from_i8("", &[2], &[-1, 5]).to_i64().unwrap()
    );
    let tensor = packed.to_tensor().unwrap();
    assert_eq!(
        TensorProto::from_tensor("t", &tensor).to_tensor().unwrap(),
        tensor
    );
}
