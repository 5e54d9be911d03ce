//! Conversion of an array to the element type of its input.
//!
//! Types are converted only where no value changes its meaning: between integer types if every
//! value fits, and between floats. Values for a half-precision input are rounded to that type and
//! stored as float32. Integers never become floats implicitly, since pixels would then enter the
//! model without normalization.

use super::{Array, InputSpec, SampleProblem};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::DataType;

/// Converts an array to the element type of the input.
pub(super) fn convert(
    array: &mut Array,
    input: &InputSpec,
    notes: &mut Vec<String>,
) -> Result<(), SampleProblem> {
    let expected = input.element;
    let actual = array.tensor.element_type();
    let mut note = || {
        notes.push(format!(
            "array {:?}, stored as {}, is converted to {}",
            array.name, array.stored, expected
        ));
    };
    if actual == expected {
        if array.stored != expected {
            note();
        }
        return Ok(());
    }
    let shape = array.tensor.shape().to_vec();
    let converted = match (array.tensor.values(), expected) {
        (Values::F64(v), DataType::Float) => Values::F32(v.iter().map(|&x| x as f32).collect()),
        (Values::F32(v), DataType::Double) => Values::F64(v.iter().map(|&x| x.into()).collect()),
        (Values::F32(v), half) if half.is_half() => halves(v.iter().copied(), array, input)?,
        (Values::F64(v), half) if half.is_half() => {
            halves(v.iter().map(|&x| x as f32), array, input)?
        }
        (values, _) => match (whole_numbers(values), is_whole(expected)) {
            (Some(numbers), true) => {
                numbers_as(expected, &numbers).map_err(|at| SampleProblem::Unfit {
                    array: array.name.clone(),
                    value: numbers[at].to_string(),
                    index: index_text(at, &shape),
                    input: input.name.clone(),
                    expected,
                })?
            }
            _ => {
                return Err(SampleProblem::Type {
                    array: array.name.clone(),
                    actual: array.stored,
                    input: input.name.clone(),
                    expected,
                    next: match expected {
                        DataType::String => {
                            "Octet can't feed that type yet: give the model a float32 input"
                        }
                        float if float.is_float() => {
                            "save the normalized array in that type (for images, use .png or .jpg files)"
                        }
                        _ => "save the array in that type",
                    },
                });
            }
        },
    };
    if array.stored != expected {
        note();
    }
    if let Some(tensor) = Tensor::new(shape, converted) {
        array.tensor = tensor;
    }
    Ok(())
}

/// Rounds values to a half-precision type and stores them as float32.
fn halves(
    numbers: impl Iterator<Item = f32>,
    array: &Array,
    input: &InputSpec,
) -> Result<Values, SampleProblem> {
    let expected = input.element;
    let one = |(at, actual): (usize, f32)| {
        let rounded = expected.rounded(actual);
        match actual.is_finite() && rounded.is_infinite() {
            false => Ok(rounded),
            true => Err(SampleProblem::Unfit {
                array: array.name.clone(),
                value: actual.to_string(),
                index: index_text(at, array.tensor.shape()),
                input: input.name.clone(),
                expected,
            }),
        }
    };
    let rounded = numbers.enumerate().map(one).collect::<Result<_, _>>()?;
    Ok(Values::F32(rounded))
}

fn is_whole(element: DataType) -> bool {
    use DataType::{Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
    matches!(
        element,
        Bool | Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64
    )
}

/// Values of an integer or boolean array, in a type that can represent all of them.
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

/// Converts numbers to another type, or returns the index of the first that doesn't fit.
fn numbers_as(expected: DataType, numbers: &[i128]) -> Result<Values, usize> {
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
    match expected {
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

/// Index of an element along each axis, as text.
pub(super) fn index_text(mut at: usize, shape: &[usize]) -> String {
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
    use octet_graph::Dim;

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
                Err("is uint8, but the model's input \"x\" expects float32"),
            ),
            (
                Values::F32(vec![1.0]),
                DataType::Int64,
                Err("expects int64"),
            ),
            (
                Values::F32(vec![0.1]),
                DataType::Float16,
                Ok(Values::F32(vec![0.099_975_586])),
            ),
            (
                Values::F64(vec![-0.1]),
                DataType::Bfloat16,
                Ok(Values::F32(vec![-0.100_097_656])),
            ),
            (
                Values::F32(vec![7e4]),
                DataType::Float16,
                Err("70000 at index [0], which is not a float16"),
            ),
            (
                Values::U8(vec![9]),
                DataType::Float16,
                Err("expects float16"),
            ),
        ];
        for (actual, expected, result) in cases {
            let input = InputSpec {
                name: "x".into(),
                element: expected,
                shape: vec![Dim::Known(1)],
            };
            let stored = actual.element_type();
            let tensor = Tensor::new(vec![1], actual).unwrap();
            let mut array = Array {
                name: "x".into(),
                named: true,
                position: None,
                stored,
                tensor,
            };
            let mut notes = Vec::new();
            match (convert(&mut array, &input, &mut notes), result) {
                (Ok(()), Ok(values)) => {
                    assert_eq!(array.tensor.values(), &values);
                    assert_eq!(notes.len(), 1);
                }
                (Err(problem), Err(word)) => {
                    assert!(problem.to_string().contains(word), "{problem}")
                }
                (found, result) => panic!("{found:?} is not {result:?}"),
            }
        }
    }
}
