//! Sources of 16-bit floats: the conversion widens them as it reads, with the result of a run in
//! memory.

use octet_graph::Model;
use octet_graph::prepare::prepare;
use octet_onnx::schema::{DataType, ModelProto, TensorProto};
use octet_onnx::write;
use octet_quantize::apply;

use super::{SCHEMES, constants, convert, model, settings};

/// The model with all floats in this type.
fn narrowed(element: DataType) -> ModelProto {
    let mut source = model(1.0);
    let graph = source.graph.as_mut().unwrap();
    for tensor in &mut graph.initializer {
        if tensor.data_type == Some(DataType::Float as i32) {
            let name = tensor.name.clone().unwrap();
            let values = tensor.to_f32().unwrap();
            let bytes = element.bytes_of(values.into_iter()).into();
            *tensor = TensorProto::from_raw(&name, element, &tensor.shape().unwrap(), bytes);
        }
    }
    graph
        .output
        .iter_mut()
        .for_each(|port| port.set_element(element));
    source
}

#[test]
fn halves_give_the_model_that_they_give_in_memory() {
    for element in [DataType::Float16, DataType::Bfloat16] {
        let source = narrowed(element);
        let file = write(&source).unwrap();
        let prepared = prepare(Model::from_proto(source).unwrap()).unwrap();
        let upcast = SCHEMES.into_iter().filter(|text| !text.contains("bnb4"));
        for text in upcast {
            let settings = settings(text);
            let (found, converted, _) = convert(&file, &settings);
            let mut wanted = apply(&prepared.model, &settings, None).unwrap();
            prepared.upcast.restore(&mut wanted.model).unwrap();
            let proto = wanted.model.to_proto();
            assert_eq!(
                found.graph.as_ref().unwrap().node,
                proto.graph.as_ref().unwrap().node,
                "{element:?} {text}"
            );
            assert!(constants(&found) == constants(&proto), "{element:?} {text}");
            assert_eq!(converted.quantized.nodes, wanted.nodes, "{text}");
            let ports = |model: &ModelProto| model.graph.clone().unwrap().output;
            assert_eq!(ports(&found), ports(&proto));
            let noted = proto.graph.unwrap().initializer;
            assert!(noted.iter().all(|tensor| tensor.widened_from().is_none()));
        }
    }
}
