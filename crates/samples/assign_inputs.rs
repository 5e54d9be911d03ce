//! Assignment of a sample's arrays to the inputs of the model, with checks of element types
//! ([`convert`]), shapes and finite values.

use std::collections::BTreeMap;

use super::convert::{convert, index_text};
use super::error::{NonFinite, shape_text};
use super::{Array, Decoded, InputSpec, SampleProblem};
use octet_graph::Dim;
use octet_onnx::in_memory::Values;

/// Returns one tensor for each input, in the order of the inputs.
pub(super) fn to_inputs(
    arrays: Vec<Array>,
    inputs: &[InputSpec],
) -> Result<Decoded, SampleProblem> {
    let mut notes = vec![Vec::new(); inputs.len()];
    let mut arrays = arrange(arrays, inputs, &mut notes)?;
    let mut sizes = BTreeMap::new();
    for ((array, input), notes) in arrays.iter_mut().zip(inputs).zip(&mut notes) {
        shape_fits(&array.name, array.tensor.shape(), input, &mut sizes)?;
        convert(array, input, notes)?;
        finite(array)?;
    }
    Ok(Decoded {
        tensors: arrays.into_iter().map(|a| a.tensor).collect(),
        notes,
        tokens: None,
    })
}

/// Sorts the arrays into the order of the inputs: by name, or else by the position in the file
/// name. A single array goes to a single input.
fn arrange(
    arrays: Vec<Array>,
    inputs: &[InputSpec],
    notes: &mut [Vec<String>],
) -> Result<Vec<Array>, SampleProblem> {
    let actual = list(arrays.iter().map(|a| a.name.as_str()));
    let all_named = arrays
        .iter()
        .all(|a| a.named && inputs.iter().any(|i| i.name == a.name));
    if !all_named && !arrays.is_empty() && arrays.iter().all(|a| a.position.is_some()) {
        return by_position(arrays, inputs, actual);
    }
    if let ([array], [input]) = (arrays.as_slice(), inputs) {
        if array.named && array.name != input.name {
            notes[0].push(format!(
                "array {:?} is used for input {:?}, the only one",
                array.name, input.name
            ));
        }
        return Ok(arrays);
    }
    if arrays.iter().any(|a| !a.named) {
        let expected = format!(
            "{} inputs: {}",
            inputs.len(),
            list(inputs.iter().map(|i| i.name.as_str()))
        );
        return Err(SampleProblem::Count {
            actual: format!("the arrays {actual}"),
            expected,
        });
    }
    let mut by_name: BTreeMap<String, Array> =
        arrays.into_iter().map(|a| (a.name.clone(), a)).collect();
    let mut arranged = Vec::with_capacity(inputs.len());
    for input in inputs {
        let next = "name each array by the input it is for";
        let missing = || SampleProblem::Missing {
            input: input.name.clone(),
            actual: actual.clone(),
            next,
        };
        arranged.push(by_name.remove(&input.name).ok_or_else(missing)?);
    }
    if let (Some(notes), false) = (notes.first_mut(), by_name.is_empty()) {
        let unused = list(by_name.keys().map(String::as_str));
        notes.push(format!(
            "not used, since the model has no such input: {unused}"
        ));
    }
    Ok(arranged)
}

fn by_position(
    arrays: Vec<Array>,
    inputs: &[InputSpec],
    actual: String,
) -> Result<Vec<Array>, SampleProblem> {
    let mut slots: BTreeMap<usize, Array> = BTreeMap::new();
    for array in arrays {
        slots.insert(array.position.unwrap_or(usize::MAX), array);
    }
    let mut arranged = Vec::with_capacity(inputs.len());
    for (position, input) in inputs.iter().enumerate() {
        let next = "add the input_K.pb of that position, counted from 0";
        let missing = || SampleProblem::Missing {
            input: input.name.clone(),
            actual: actual.clone(),
            next,
        };
        arranged.push(slots.remove(&position).ok_or_else(missing)?);
    }
    if slots.is_empty() {
        return Ok(arranged);
    }
    let files = arranged.len() + slots.len();
    Err(SampleProblem::Count {
        actual: format!("{files} input files"),
        expected: format!("{} inputs", inputs.len()),
    })
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|n| format!("{n:?}")).collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

/// Checks the shape of an array. Known dimensions must match; a named dimension has one size in the
/// whole sample.
pub(super) fn shape_fits<'a>(
    array: &str,
    actual: &[usize],
    input: &'a InputSpec,
    sizes: &mut BTreeMap<&'a str, usize>,
) -> Result<(), SampleProblem> {
    let expected = &input.shape;
    let wrong = |next: String| SampleProblem::Shape {
        array: array.into(),
        actual: format!("{actual:?}"),
        input: input.name.clone(),
        expected: shape_text(expected),
        next,
    };
    let allows = |dims: &[Dim]| {
        dims.len() == actual.len()
            && dims
                .iter()
                .zip(actual)
                .all(|(d, &n)| !matches!(d, Dim::Known(k) if *k != n))
    };
    if !allows(expected) {
        let batch_missing = expected.split_first().is_some_and(|(batch, rest)| {
            allows(rest) && matches!(batch, Dim::Known(1) | Dim::Named(_) | Dim::Unknown)
        });
        let axes_swapped = match *actual {
            [n, h, w, c] => {
                expected.len() == 4 && fits(&[n, c, h, w], expected)
                    || fits(&[n, w, h, c], expected)
            }
            _ => false,
        };
        return Err(wrong(if batch_missing {
            "add the batch axis in front".into()
        } else if axes_swapped {
            "the channel axis seems to be in another place: transpose the array".into()
        } else if actual.len() == expected.len() && allows_but_batch(expected, actual) {
            "split it: one sample a file".into()
        } else {
            "save the sample in that shape".into()
        }));
    }
    for (dim, &size) in expected.iter().zip(actual) {
        if let Dim::Named(name) = dim
            && *sizes.entry(name).or_insert(size) != size
        {
            return Err(wrong(format!(
                "{name} is {} in another array of the sample",
                sizes[name.as_str()]
            )));
        }
    }
    Ok(())
}

fn fits(actual: &[usize], expected: &[Dim]) -> bool {
    actual.len() == expected.len()
        && expected
            .iter()
            .zip(actual)
            .all(|(d, &n)| !matches!(d, Dim::Known(k) if *k != n))
}

fn allows_but_batch(expected: &[Dim], actual: &[usize]) -> bool {
    matches!(expected.first(), Some(Dim::Known(1))) && fits(&actual[1..], &expected[1..])
}

#[inline(never)] // for the same reason as `npy_values::values`
fn finite(array: &Array) -> Result<(), SampleProblem> {
    let bad = match array.tensor.values() {
        Values::F32(v) => v
            .iter()
            .position(|x| !x.is_finite())
            .map(|at| (at, v[at].into())),
        Values::F64(v) => v.iter().position(|x| !x.is_finite()).map(|at| (at, v[at])),
        _ => None,
    };
    let Some((at, value)) = bad else {
        return Ok(());
    };
    let value = if f64::is_nan(value) {
        NonFinite::NaN
    } else if value > 0.0 {
        NonFinite::Infinity
    } else {
        NonFinite::MinusInfinity
    };
    Err(SampleProblem::NotFinite {
        array: array.name.clone(),
        value,
        index: index_text(at, array.tensor.shape()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_onnx::in_memory::Tensor;
    use octet_onnx::schema::DataType;

    fn array(name: &str, shape: &[usize], values: Values) -> Array {
        let stored = values.element_type();
        let tensor = Tensor::new(shape.to_vec(), values).unwrap();
        Array {
            name: name.into(),
            named: true,
            position: None,
            stored,
            tensor,
        }
    }

    fn input(name: &str, element: DataType, shape: &[usize]) -> InputSpec {
        InputSpec {
            name: name.into(),
            element,
            shape: shape.iter().map(|&n| Dim::Known(n)).collect(),
        }
    }

    fn message(arrays: Vec<Array>, inputs: &[InputSpec]) -> String {
        to_inputs(arrays, inputs).unwrap_err().to_string()
    }

    #[test]
    fn arrays_come_in_the_order_of_the_inputs() {
        let inputs = [
            input("b", DataType::Float, &[1]),
            input("a", DataType::Float, &[1]),
        ];
        let arrays = vec![
            array("a", &[1], Values::F32(vec![1.0])),
            array("b", &[1], Values::F32(vec![2.0])),
            array("labels", &[1], Values::F32(vec![3.0])),
        ];
        let decoded = to_inputs(arrays, &inputs).unwrap();
        assert_eq!(decoded.tensors[0].as_f32(), Some(&[2.0][..]));
        assert!(decoded.notes[0][0].contains("labels"));
    }

    #[test]
    fn positions_count_where_names_are_not_those_of_inputs() {
        let inputs = [
            input("b", DataType::Float, &[1]),
            input("a", DataType::Float, &[1]),
        ];
        let at = |position, value| Array {
            position: Some(position),
            ..array("stale", &[1], Values::F32(vec![value]))
        };
        let decoded = to_inputs(vec![at(1, 1.0), at(0, 2.0)], &inputs).unwrap();
        assert_eq!(decoded.tensors[0].as_f32(), Some(&[2.0][..]));
        assert!(message(vec![at(1, 1.0), at(2, 1.0)], &inputs).contains("\"b\" is missing"));
    }

    #[test]
    fn a_wrong_shape_is_reported_with_its_likely_cause() {
        let expected = [input("x", DataType::Float, &[1, 3, 4, 5])];
        for (shape, cause) in [
            (vec![3, 4, 5], "batch axis"),
            (vec![1, 4, 5, 3], "transpose"),
            (vec![2, 3, 4, 5], "one sample a file"),
            (vec![1, 3, 4, 6], "in that shape"),
        ] {
            let count = shape.iter().product();
            let text = message(
                vec![array("x", &shape, Values::F32(vec![0.0; count]))],
                &expected,
            );
            assert!(
                text.contains(cause) && text.contains("[1, 3, 4, 5]"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_named_size_is_one_size_across_the_sample() {
        let named = |name: &str| InputSpec {
            shape: vec![Dim::Named("length".into())],
            ..input(name, DataType::Int64, &[])
        };
        let ids = |name: &str, n: usize| array(name, &[n], Values::I64(vec![0; n]));
        assert!(to_inputs(vec![ids("a", 3), ids("b", 3)], &[named("a"), named("b")]).is_ok());
        let text = message(vec![ids("a", 3), ids("b", 4)], &[named("a"), named("b")]);
        assert!(text.contains("length is 3"), "{text}");
    }

    #[test]
    fn non_finite_values_are_reported_with_their_index() {
        for (value, word) in [(f32::NAN, "NaN"), (f32::NEG_INFINITY, "-infinity")] {
            let values = Values::F32(vec![0.0, 0.0, 0.0, 0.0, value, 0.0]);
            let text = message(
                vec![array("x", &[2, 3], values)],
                &[input("x", DataType::Float, &[2, 3])],
            );
            assert!(text.contains(word) && text.contains("[1, 1]"), "{text}");
        }
    }

    #[test]
    fn a_missing_array_is_reported_with_the_present_ones() {
        let inputs = [
            input("ids", DataType::Int64, &[1]),
            input("mask", DataType::Int64, &[1]),
        ];
        let text = message(vec![array("ids", &[1], Values::I64(vec![1]))], &inputs);
        assert!(
            text.contains("\"mask\" is missing (given: \"ids\")"),
            "{text}"
        );
    }
}
