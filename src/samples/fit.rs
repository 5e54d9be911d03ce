//! Holding the arrays of a sample against the inputs of the model: which is for which, element
//! types, shapes, and that every value is a number.
//!
//! A type is converted only where no value changes its meaning: between integer types if every value
//! fits, and between floats. Integers never become floats by themselves, since pixels would then be
//! fed unnormalised.

use std::collections::BTreeMap;

use super::error::{shape_text, type_name};
use super::{Array, Decoded, InputSpec, Problem};
use crate::graph::Dim;
use crate::onnx::schema::DataType;
use crate::tensor::{Tensor, Values};

/// One tensor for each input, in their order.
pub(super) fn to_inputs(arrays: Vec<Array>, inputs: &[InputSpec]) -> Result<Decoded, Problem> {
    let mut notes = vec![Vec::new(); inputs.len()];
    let mut arrays = arrange(arrays, inputs, &mut notes)?;
    let mut sizes = BTreeMap::new();
    for ((array, input), notes) in arrays.iter_mut().zip(inputs).zip(&mut notes) {
        shape_fits(array, input, &mut sizes)?;
        convert(array, input, notes)?;
        finite(array)?;
    }
    Ok(Decoded {
        tensors: arrays.into_iter().map(|a| a.tensor).collect(),
        notes,
    })
}

/// Brings the arrays into the order of the inputs: by name, else by the position in a file's name,
/// else the only one for the only one.
fn arrange(
    arrays: Vec<Array>,
    inputs: &[InputSpec],
    notes: &mut [Vec<String>],
) -> Result<Vec<Array>, Problem> {
    let given = list(arrays.iter().map(|a| a.name.as_str()));
    let all_named = arrays
        .iter()
        .all(|a| a.named && inputs.iter().any(|i| i.name == a.name));
    if !all_named && !arrays.is_empty() && arrays.iter().all(|a| a.position.is_some()) {
        return by_position(arrays, inputs, given);
    }
    if let ([array], [input]) = (arrays.as_slice(), inputs) {
        if array.named && array.name != input.name {
            notes[0].push(format!(
                "array {:?} is taken for input {:?}, the only one",
                array.name, input.name
            ));
        }
        return Ok(arrays);
    }
    if arrays.iter().any(|a| !a.named) {
        let wanted = format!(
            "{} inputs: {}",
            inputs.len(),
            list(inputs.iter().map(|i| i.name.as_str()))
        );
        return Err(Problem::Count {
            given: format!("the arrays {given}"),
            wanted,
        });
    }
    let mut by_name: BTreeMap<String, Array> =
        arrays.into_iter().map(|a| (a.name.clone(), a)).collect();
    let mut arranged = Vec::with_capacity(inputs.len());
    for input in inputs {
        let next = "name each array by the input it is for";
        let missing = || Problem::Missing {
            input: input.name.clone(),
            given: given.clone(),
            next,
        };
        arranged.push(by_name.remove(&input.name).ok_or_else(missing)?);
    }
    if let (Some(notes), false) = (notes.first_mut(), by_name.is_empty()) {
        let unused = list(by_name.keys().map(String::as_str));
        notes.push(format!(
            "not used, as the model has no such input: {unused}"
        ));
    }
    Ok(arranged)
}

fn by_position(
    arrays: Vec<Array>,
    inputs: &[InputSpec],
    given: String,
) -> Result<Vec<Array>, Problem> {
    let mut slots: BTreeMap<usize, Array> = BTreeMap::new();
    for array in arrays {
        slots.insert(array.position.unwrap_or(usize::MAX), array);
    }
    let mut arranged = Vec::with_capacity(inputs.len());
    for (position, input) in inputs.iter().enumerate() {
        let next = "add the input_K.pb of that position, counted from 0";
        let missing = || Problem::Missing {
            input: input.name.clone(),
            given: given.clone(),
            next,
        };
        arranged.push(slots.remove(&position).ok_or_else(missing)?);
    }
    if slots.is_empty() {
        return Ok(arranged);
    }
    let files = arranged.len() + slots.len();
    Err(Problem::Count {
        given: format!("{files} input files"),
        wanted: format!("{} inputs", inputs.len()),
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

/// Every known size must be met, and one named size be the same wherever it stands in the sample.
fn shape_fits<'a>(
    array: &Array,
    input: &'a InputSpec,
    sizes: &mut BTreeMap<&'a str, usize>,
) -> Result<(), Problem> {
    let given = array.tensor.shape();
    let wanted = &input.shape;
    let wrong = |next: String| Problem::Shape {
        array: array.name.clone(),
        given: format!("{given:?}"),
        input: input.name.clone(),
        wanted: shape_text(wanted),
        next,
    };
    let allows = |dims: &[Dim]| {
        dims.len() == given.len()
            && dims
                .iter()
                .zip(given)
                .all(|(d, &n)| !matches!(d, Dim::Known(k) if *k != n))
    };
    if !allows(wanted) {
        let batch_missing = wanted.split_first().is_some_and(|(batch, rest)| {
            allows(rest) && matches!(batch, Dim::Known(1) | Dim::Named(_) | Dim::Unknown)
        });
        let axes_swapped = match *given {
            [n, h, w, c] => {
                wanted.len() == 4 && fits(&[n, c, h, w], wanted) || fits(&[n, w, h, c], wanted)
            }
            _ => false,
        };
        return Err(wrong(if batch_missing {
            "add the batch axis in front".into()
        } else if axes_swapped {
            "the channel axis seems to stand elsewhere: transpose it".into()
        } else if given.len() == wanted.len() && allows_but_batch(wanted, given) {
            "split it: one sample a file".into()
        } else {
            "save the sample in that shape".into()
        }));
    }
    for (dim, &size) in wanted.iter().zip(given) {
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

fn fits(given: &[usize], wanted: &[Dim]) -> bool {
    given.len() == wanted.len()
        && wanted
            .iter()
            .zip(given)
            .all(|(d, &n)| !matches!(d, Dim::Known(k) if *k != n))
}

fn allows_but_batch(wanted: &[Dim], given: &[usize]) -> bool {
    matches!(wanted.first(), Some(Dim::Known(1))) && fits(&given[1..], &wanted[1..])
}

/// Gives the array the element type the input wants.
fn convert(array: &mut Array, input: &InputSpec, notes: &mut Vec<String>) -> Result<(), Problem> {
    let wanted = input.element;
    let given = array.tensor.element_type();
    let mut note = || {
        notes.push(format!(
            "array {:?}, stored as {}, is read as {}",
            array.name,
            array.stored,
            type_name(wanted)
        ));
    };
    if given == wanted {
        if array.stored != type_name(wanted) {
            note();
        }
        return Ok(());
    }
    let shape = array.tensor.shape().to_vec();
    let converted = match (array.tensor.values(), wanted) {
        (Values::F64(v), DataType::Float) => Values::F32(v.iter().map(|&x| x as f32).collect()),
        (Values::F32(v), DataType::Double) => Values::F64(v.iter().map(|&x| x.into()).collect()),
        (values, _) => match (whole_numbers(values), is_whole(wanted)) {
            (Some(numbers), true) => numbers_as(wanted, &numbers).map_err(|at| Problem::Unfit {
                array: array.name.clone(),
                value: numbers[at].to_string(),
                index: index_text(at, &shape),
                input: input.name.clone(),
                wanted: type_name(wanted),
            })?,
            _ => {
                return Err(Problem::Type {
                    array: array.name.clone(),
                    given: array.stored,
                    input: input.name.clone(),
                    wanted: type_name(wanted),
                    next: match wanted {
                        DataType::Float16 | DataType::Bfloat16 | DataType::String => {
                            "Octet can't feed that type yet: give the model a float32 input"
                        }
                        DataType::Float | DataType::Double => {
                            "save the array as the model wants it, normalised (pictures: give .png or .jpg files)"
                        }
                        _ => "save the array in that type",
                    },
                });
            }
        },
    };
    note();
    if let Some(tensor) = Tensor::new(shape, converted) {
        array.tensor = tensor;
    }
    Ok(())
}

fn is_whole(element: DataType) -> bool {
    use DataType::{Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
    matches!(
        element,
        Bool | Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64
    )
}

/// The values of an integer or boolean array in a type that holds them all.
fn whole_numbers(values: &Values) -> Option<Vec<i128>> {
    Some(match values {
        Values::I8(v) => v.iter().map(|&x| x.into()).collect(),
        Values::I16(v) => v.iter().map(|&x| x.into()).collect(),
        Values::I32(v) => v.iter().map(|&x| x.into()).collect(),
        Values::I64(v) => v.iter().map(|&x| x.into()).collect(),
        Values::U8(v) => v.iter().map(|&x| x.into()).collect(),
        Values::U16(v) => v.iter().map(|&x| x.into()).collect(),
        Values::U32(v) => v.iter().map(|&x| x.into()).collect(),
        Values::U64(v) => v.iter().map(|&x| x.into()).collect(),
        Values::Bool(v) => v.iter().map(|&x| x.into()).collect(),
        Values::F32(_) | Values::F64(_) => return None,
    })
}

/// The numbers in another type, or where one does not fit.
fn numbers_as(wanted: DataType, numbers: &[i128]) -> Result<Values, usize> {
    macro_rules! narrow {
        ($kind:ident, $type:ty) => {
            numbers
                .iter()
                .enumerate()
                .map(|(at, &n)| <$type>::try_from(n).map_err(|_| at))
                .collect::<Result<_, _>>()
                .map(Values::$kind)
        };
    }
    match wanted {
        DataType::Int8 => narrow!(I8, i8),
        DataType::Int16 => narrow!(I16, i16),
        DataType::Int32 => narrow!(I32, i32),
        DataType::Int64 => narrow!(I64, i64),
        DataType::Uint8 => narrow!(U8, u8),
        DataType::Uint16 => narrow!(U16, u16),
        DataType::Uint32 => narrow!(U32, u32),
        DataType::Uint64 => narrow!(U64, u64),
        _ => match numbers.iter().position(|n| !matches!(n, 0 | 1)) {
            Some(at) => Err(at),
            None => Ok(Values::Bool(numbers.iter().map(|&n| n == 1).collect())),
        },
    }
}

fn finite(array: &Array) -> Result<(), Problem> {
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
        "NaN (not a number)"
    } else if value > 0.0 {
        "infinity"
    } else {
        "-infinity"
    };
    Err(Problem::NotFinite {
        array: array.name.clone(),
        value,
        index: index_text(at, array.tensor.shape()),
    })
}

/// Where an element stands, axis by axis.
fn index_text(mut at: usize, shape: &[usize]) -> String {
    let mut index = vec![0; shape.len()];
    for (axis, &size) in shape.iter().enumerate().rev() {
        index[axis] = at % size.max(1);
        at /= size.max(1);
    }
    format!("{index:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(name: &str, shape: &[usize], values: Values) -> Array {
        let stored = type_name(values.element_type());
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

    fn said(arrays: Vec<Array>, inputs: &[InputSpec]) -> String {
        to_inputs(arrays, inputs).unwrap_err().to_string()
    }

    #[test]
    fn arrays_come_in_the_order_of_the_inputs() {
        let inputs = [
            input("b", DataType::Float, &[1]),
            input("a", DataType::Float, &[1]),
        ];
        let given = vec![
            array("a", &[1], Values::F32(vec![1.0])),
            array("b", &[1], Values::F32(vec![2.0])),
            array("labels", &[1], Values::F32(vec![3.0])),
        ];
        let decoded = to_inputs(given, &inputs).unwrap();
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
        assert!(said(vec![at(1, 1.0), at(2, 1.0)], &inputs).contains("\"b\" is missing"));
    }

    #[test]
    fn types_are_converted_only_where_every_value_keeps_its_meaning() {
        let cases = [
            (
                Values::F64(vec![0.5]),
                DataType::Float,
                Ok(Values::F32(vec![0.5])),
            ),
            (
                Values::I64(vec![7]),
                DataType::Int32,
                Ok(Values::I32(vec![7])),
            ),
            (
                Values::I32(vec![-7]),
                DataType::Int64,
                Ok(Values::I64(vec![-7])),
            ),
            (
                Values::I64(vec![1]),
                DataType::Bool,
                Ok(Values::Bool(vec![true])),
            ),
            (
                Values::I64(vec![1 << 40]),
                DataType::Int32,
                Err("1099511627776 at index [0]"),
            ),
            (Values::I8(vec![-1]), DataType::Uint8, Err("holds -1")),
            (
                Values::U8(vec![9]),
                DataType::Float,
                Err("is uint8, but the model's input \"x\" wants float32"),
            ),
            (Values::F32(vec![1.0]), DataType::Int64, Err("wants int64")),
        ];
        for (given, wanted, result) in cases {
            let found = to_inputs(vec![array("x", &[1], given)], &[input("x", wanted, &[1])]);
            match (found, result) {
                (Ok(decoded), Ok(values)) => {
                    assert_eq!(decoded.tensors[0].values(), &values);
                    assert_eq!(decoded.notes[0].len(), 1);
                }
                (Err(problem), Err(word)) => {
                    assert!(problem.to_string().contains(word), "{problem}")
                }
                (found, result) => panic!("{found:?} is not {result:?}"),
            }
        }
    }

    #[test]
    fn a_wrong_shape_is_said_with_the_likely_cause() {
        let wanted = [input("x", DataType::Float, &[1, 3, 4, 5])];
        for (shape, cause) in [
            (vec![3, 4, 5], "batch axis"),
            (vec![1, 4, 5, 3], "transpose"),
            (vec![2, 3, 4, 5], "one sample a file"),
            (vec![1, 3, 4, 6], "in that shape"),
        ] {
            let count = shape.iter().product();
            let text = said(
                vec![array("x", &shape, Values::F32(vec![0.0; count]))],
                &wanted,
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
        let text = said(vec![ids("a", 3), ids("b", 4)], &[named("a"), named("b")]);
        assert!(text.contains("length is 3"), "{text}");
    }

    #[test]
    fn what_is_no_number_is_found_and_its_place_told() {
        for (value, word) in [(f32::NAN, "NaN"), (f32::NEG_INFINITY, "-infinity")] {
            let values = Values::F32(vec![0.0, 0.0, 0.0, 0.0, value, 0.0]);
            let text = said(
                vec![array("x", &[2, 3], values)],
                &[input("x", DataType::Float, &[2, 3])],
            );
            assert!(text.contains(word) && text.contains("[1, 1]"), "{text}");
        }
    }

    #[test]
    fn a_missing_array_is_named_with_those_given() {
        let inputs = [
            input("ids", DataType::Int64, &[1]),
            input("mask", DataType::Int64, &[1]),
        ];
        let text = said(vec![array("ids", &[1], Values::I64(vec![1]))], &inputs);
        assert!(
            text.contains("\"mask\" is missing (given: \"ids\")"),
            "{text}"
        );
    }
}
