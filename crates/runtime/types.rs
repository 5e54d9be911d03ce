//! Infers types and shapes of all values without a run.

use std::collections::BTreeMap;

use tract_onnx::tract_hir::infer::{Factoid, InferenceFact};

use super::datum::{dim, element_type};
use super::int8::GraphData;
use super::load::{Loaded, WeightMode, load};
use super::panics::caught;
use super::{EngineError, inference};
use octet_graph::{Dim, Model, TensorType};
use octet_onnx::in_memory::Tensor;

/// Returns the type of every value whose element type is known. Declared types of inner values are
/// ignored, because exporters leave stale shapes there.
pub fn infer_types(model: &Model) -> Result<BTreeMap<String, TensorType>, EngineError> {
    let model = octet_int8::decomposed(model);
    caught(|| {
        collect(load(
            &model,
            &[],
            WeightMode::Types,
            &GraphData::default(),
            None,
        )?)
    })
}

/// Like [`infer_types`], for samples of these shapes: every size that follows from them is known.
pub fn infer_types_of(
    model: &Model,
    inputs: &[Tensor],
) -> Result<BTreeMap<String, TensorType>, EngineError> {
    let model = octet_int8::decomposed(model);
    caught(|| {
        let beside = GraphData::default();
        collect(load(&model, &[], WeightMode::Types, &beside, Some(inputs))?)
    })
}

fn collect(mut loaded: Loaded) -> Result<BTreeMap<String, TensorType>, EngineError> {
    // A contradiction leaves types unknown here; building a plan reports it.
    inference::infer_known(&mut loaded.model);
    let known = loaded.types.into_iter();
    let mut types: BTreeMap<String, TensorType> = known.map(|(name, k)| (name, k.into())).collect();
    for (name, outlet) in &loaded.outlets {
        if let Ok(fact) = loaded.model.outlet_fact(*outlet)
            && let Some(inferred) = tensor_type(fact)
        {
            let known = types.remove(name);
            types.insert(name.clone(), merge(inferred, known));
        }
    }
    Ok(types)
}

/// Merges tract's type with the symbolic sizes that our rules know.
fn merge(mut inferred: TensorType, known: Option<TensorType>) -> TensorType {
    match (&mut inferred.shape, known.and_then(|known| known.shape)) {
        (Some(shape), Some(known)) if shape.len() == known.len() => {
            for (dim, known) in shape.iter_mut().zip(known) {
                if *dim == Dim::Unknown {
                    *dim = known;
                }
            }
        }
        (None, known) => inferred.shape = known,
        _ => {}
    }
    inferred
}

fn tensor_type(fact: &InferenceFact) -> Option<TensorType> {
    let element = element_type(fact.datum_type.concretize()?)?;
    let shape = fact.shape.is_open().then_some(()).map_or_else(
        || {
            let dims = fact.shape.dims();
            Some(
                dims.map(|d| d.concretize().map_or(Dim::Unknown, |d| dim(&d)))
                    .collect(),
            )
        },
        |()| None,
    );
    Some(TensorType { element, shape })
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_onnx::schema::{
        DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
    };

    #[test]
    fn results_of_four_bit_integers_have_a_type() {
        let integers = TensorProto::from_raw("w", DataType::Int4, &[2, 2], vec![0x21, 0x43].into());
        let fed = TensorType {
            element: DataType::Float,
            shape: Some(vec![Dim::Known(3), Dim::Known(2)]),
        };
        let graph = GraphProto {
            node: vec![
                NodeProto::new("DequantizeLinear", "d", &["w", "s"], &["reals"]),
                NodeProto::new("MatMul", "m", &["x", "reals"], &["y"]),
            ],
            initializer: vec![integers, TensorProto::from_f32("s", &[], &[0.5])],
            input: vec![ValueInfoProto::new("x", &fed)],
            output: vec![ValueInfoProto {
                name: Some("y".into()),
                ..Default::default()
            }],
            ..Default::default()
        };
        let model = Model::from_proto(ModelProto::from_graph(graph, 21)).unwrap();
        assert_eq!(infer_types(&model).unwrap()["y"], fed);
    }
}
