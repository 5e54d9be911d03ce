//! Checks indices and divisors before tract uses them.
//!
//! tract panics at an index out of range and at an integer division by zero. In a browser a panic
//! ends the engine.

use tract_onnx::tract_core::ops::array::{
    Gather, GatherElements, GatherNd, ScatterElements, ScatterNd,
};
use tract_onnx::tract_core::ops::binary::TypedBinOp;
use tract_onnx::tract_hir::internal::*;

/// Fails if an index of this node is out of range, or if it divides an integer by 0.
pub(super) fn check(node: &TypedNode, inputs: &[TValue]) -> TractResult<()> {
    let divides = |op: &TypedBinOp| matches!(op.0.name(), "Div" | "Rem");
    if node.op_as::<TypedBinOp>().is_some_and(divides) && inputs[1].datum_type().is_integer() {
        let divisors = inputs[1].cast_to::<i64>()?;
        let divisors = divisors.try_as_plain_ram()?;
        ensure!(
            !divisors.as_slice::<i64>()?.contains(&0),
            "node `{}` divides integers by 0; use samples without such a division",
            node.name
        );
        return Ok(());
    }
    let from_both_ends =
        |axis: usize| -> TractResult<()> { inside(&inputs[1], inputs[0].shape()[axis], true) };
    if let Some(gather) = node.op_as::<Gather>() {
        return from_both_ends(gather.axis);
    }
    let gathers = node.op_as::<GatherElements>().map(|gather| gather.axis);
    let scatters = node.op_as::<ScatterElements>().map(|scatter| scatter.axis);
    if let Some(axis) = gathers.or(scatters) {
        let (data, indices) = (inputs[0].shape(), inputs[1].shape());
        let fits = |other: usize| other == axis || indices.get(other) <= data.get(other);
        ensure!(
            indices.len() == data.len() && (0..data.len()).all(fits),
            "its indices of shape {indices:?} don't fit its data of shape {data:?}"
        );
        if let (Some(updates), Some(_)) = (inputs.get(2).map(|updates| updates.shape()), scatters) {
            ensure!(
                updates == indices,
                "its updates of shape {updates:?} don't fit its indices of shape {indices:?}"
            );
        }
        return from_both_ends(axis);
    }
    let gathers = node.op_as::<GatherNd>().map(|gather| gather.batch_dims);
    let scatters = node.op_as::<ScatterNd>().map(|_| 0);
    let Some(batch) = gathers.or(scatters) else {
        return Ok(());
    };
    // The last axis of the indices holds one index per axis of the data.
    let (data, indices) = (&inputs[0], inputs[1].cast_to::<i64>()?);
    let depth = indices.shape().last().copied().unwrap_or(0).max(1);
    let indices = indices.try_as_plain_ram()?;
    for place in indices.as_slice::<i64>()?.chunks_exact(depth) {
        let sizes = data.shape().iter().skip(batch);
        for (&index, &size) in place.iter().zip(sizes) {
            one(index, size, false)?;
        }
    }
    Ok(())
}

/// Fails if an index is not below `size`.
pub(super) fn inside(indices: &Tensor, size: usize, from_the_end: bool) -> TractResult<()> {
    let indices = indices.cast_to::<i64>()?;
    let indices = indices.try_as_plain_ram()?;
    indices
        .as_slice::<i64>()?
        .iter()
        .try_for_each(|&index| one(index, size, from_the_end))
}

fn one(index: i64, size: usize, from_the_end: bool) -> TractResult<()> {
    let size = size as i64;
    let least = if from_the_end { -size } else { 0 };
    ensure!(
        (least..size).contains(&index),
        "index {index} is outside an axis of size {size}; use samples whose indices are from {least} to {}",
        size - 1
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Engine, EngineError};
    use octet_graph::{Dim, Model, TensorType};
    use octet_onnx::in_memory::{Tensor, Values};
    use octet_onnx::schema::*;

    /// Runs a lookup of the given indices in a table of four rows.
    fn run(operator: &str, indices: &[i64], shape: &[usize]) -> Result<Vec<Tensor>, EngineError> {
        let port = |name: &str, element, shape: &[usize]| {
            let shape = Some(shape.iter().map(|&size| Dim::Known(size)).collect());
            ValueInfoProto::new(name, &TensorType { element, shape })
        };
        let inputs = match operator {
            "ScatterElements" | "ScatterND" => vec!["table", "places", "rows"],
            _ => vec!["table", "places"],
        };
        let mut output = port("y", DataType::Float, &[]);
        output.r#type = None;
        let graph = GraphProto {
            node: vec![NodeProto::new(operator, "look", &inputs, &["y"])],
            input: vec![port("places", DataType::Int64, shape)],
            output: vec![output],
            initializer: vec![
                TensorProto::from_f32("table", &[4, 1], &[0.0, 1.0, 2.0, 3.0]),
                TensorProto::from_f32("rows", shape, &vec![9.0; indices.len()]),
            ],
            ..Default::default()
        };
        let model = Model::from_proto(ModelProto::from_graph(graph, 17));
        let sample = Tensor::new(shape.to_vec(), Values::I64(indices.to_vec())).unwrap();
        Engine::new(model.unwrap(), vec![]).run(&[sample], |_, _| {}, || false)
    }

    #[test]
    fn an_index_outside_is_an_error_that_says_where() {
        for (operator, bad) in [
            ("Gather", &[4, -5, 126][..]),
            ("GatherElements", &[4, -5]),
            ("ScatterElements", &[4, -5]),
            ("GatherND", &[4, -1]),
            ("ScatterND", &[4, -1]),
        ] {
            assert!(run(operator, &[3], &[1, 1]).is_ok(), "{operator}");
            for &index in bad {
                let error = run(operator, &[index], &[1, 1]).unwrap_err().to_string();
                let place = format!("index {index} is outside an axis of size 4");
                assert!(error.contains(&place), "{operator}: {error}");
            }
        }
        for operator in ["GatherElements", "ScatterElements"] {
            let error = run(operator, &[0, 0], &[1, 2]).unwrap_err().to_string();
            assert!(error.contains("no more than 1 along axis 1"), "{error}");
        }
        let found = run("Gather", &[-1, 2], &[2]).unwrap();
        assert_eq!(found[0].as_f32().unwrap(), [3.0, 2.0]);
    }

    #[test]
    fn whole_numbers_are_not_divided_by_zero() {
        for operator in ["Div", "Mod"] {
            let known = TensorType {
                element: DataType::Int64,
                shape: Some(vec![Dim::Known(2)]),
            };
            let mut output = ValueInfoProto::new("y", &known);
            output.r#type = None;
            let graph = GraphProto {
                node: vec![NodeProto::new(operator, "part", &["a", "b"], &["y"])],
                input: ["a", "b"]
                    .map(|name| ValueInfoProto::new(name, &known))
                    .into(),
                output: vec![output],
                ..Default::default()
            };
            let model = Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap();
            let engine = Engine::new(model, vec![]);
            let of = |values: [i64; 2]| Tensor::new(vec![2], Values::I64(values.into())).unwrap();
            let by = |divisors| engine.run(&[of([7, 8]), of(divisors)], |_, _| {}, || false);
            assert!(by([2, -3]).is_ok(), "{operator}");
            let error = by([2, 0]).unwrap_err().to_string();
            let found = error.contains("part") && error.contains("integers by 0");
            assert!(found, "{operator}: {error}");
        }
    }
}
