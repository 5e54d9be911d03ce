//! A model with every message and field.

use bytes::Bytes;
use octet_onnx::schema::*;

use crate::{entry, model, some};

/// A model with every kind of message and every field of a node.
pub fn every_field() -> ModelProto {
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
