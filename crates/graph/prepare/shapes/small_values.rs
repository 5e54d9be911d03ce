//! Arithmetic on the small values from which shapes are computed.

use super::{InferredValue, LARGEST, count, sizes};
use crate::Dim;
use octet_onnx::schema::{DataType, NodeProto};

/// True if a value fits the integer type.
fn fits(element: DataType, value: i64) -> bool {
    match element {
        DataType::Int64 => true,
        DataType::Int32 => i32::try_from(value).is_ok(),
        DataType::Int16 => i16::try_from(value).is_ok(),
        DataType::Int8 => i8::try_from(value).is_ok(),
        DataType::Uint8 => u8::try_from(value).is_ok(),
        DataType::Uint16 => u16::try_from(value).is_ok(),
        DataType::Uint32 => u32::try_from(value).is_ok(),
        DataType::Uint64 => value >= 0,
        DataType::Bool => value == 0 || value == 1,
        _ => false,
    }
}

impl InferredValue {
    /// Takes the elements of `source` at these positions.
    pub(super) fn with_elements_at(
        mut self,
        source: &InferredValue,
        places: &[usize],
    ) -> InferredValue {
        if places.len() <= LARGEST {
            let take = |v: &Vec<Option<i64>>| {
                places
                    .iter()
                    .map(|&p| v.get(p).copied().flatten())
                    .collect()
            };
            self.integers = source.integers.as_ref().map(take);
            self.floats = source
                .floats
                .as_ref()
                .and_then(|v| places.iter().map(|&p| v.get(p).copied()).collect());
        }
        self
    }

    /// Takes all elements of `source`; the shape stays.
    pub(super) fn with_elements_of(mut self, source: &InferredValue) -> InferredValue {
        self.integers = source.integers.clone();
        self.floats = source.floats.clone();
        self
    }

    /// All integers, if each is known.
    pub fn all_integers(&self) -> Option<Vec<i64>> {
        self.integers.as_ref()?.iter().copied().collect()
    }
}

/// For each index of a row-major tensor, the position of its element in another one.
pub(super) fn positions_of(shape: &[usize], mut of: impl FnMut(&[usize]) -> usize) -> Vec<usize> {
    let count = count(shape);
    let mut index = vec![0; shape.len()];
    let mut positions = Vec::with_capacity(count.min(LARGEST));
    for _ in 0..count {
        positions.push(of(&index));
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    positions
}

/// Row-major strides of a shape.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    (0..shape.len())
        .map(|axis| count(&shape[axis + 1..]))
        .collect()
}

/// The positions in `from` that broadcast it to `to`; `None` if the result is too large.
pub(super) fn broadcast_positions(from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    if count(to) > LARGEST || from.len() > to.len() {
        return None;
    }
    let steps = strides(from);
    let offset = to.len() - from.len();
    Some(positions_of(to, |index| {
        let axis = |(a, &step): (usize, &usize)| {
            if from[a] == 1 {
                0
            } else {
                index[a + offset] * step
            }
        };
        steps.iter().enumerate().map(axis).sum()
    }))
}

/// Computes an elementwise node into `result`, whose type and shape are set.
pub(super) fn elementwise(
    node: &NodeProto,
    inputs: &[&InferredValue],
    mut result: InferredValue,
) -> InferredValue {
    let Some(shape) = result.shape.as_deref().and_then(sizes) else {
        return result;
    };
    let inputs: Option<Vec<InferredValue>> = inputs
        .iter()
        .map(|k| {
            let places = broadcast_positions(&k.sizes()?, &shape)?;
            Some(InferredValue::new(k.element, result.shape.clone()).with_elements_at(k, &places))
        })
        .collect();
    let Some(inputs) = inputs else { return result };
    let count = count(&shape);
    let operator = node.op_type.as_deref().unwrap_or_default();

    let integers: Option<Vec<_>> = inputs.iter().map(|k| k.integers.as_ref()).collect();
    let floats: Option<Vec<_>> = inputs.iter().map(|k| k.floats.as_ref()).collect();
    if let Some(operands) = &integers {
        let compute = |i: usize| {
            let row: Vec<Option<i64>> = operands.iter().map(|v| v[i]).collect();
            integer(operator, node, &row).filter(|&v| fits(result.element, v))
        };
        let numbers: Vec<_> = (0..count).map(compute).collect();
        if numbers.iter().any(Option::is_some) && result.element != DataType::Float {
            result.integers = Some(numbers);
        }
        if operator == "Cast" && result.element == DataType::Float {
            let widen = |v: &Option<i64>| v.map(|v| v as f32);
            result.floats = operands[0].iter().map(widen).collect();
        }
    } else if let Some(operands) = &floats {
        let row = |i: usize| operands.iter().map(|v| v[i]).collect::<Vec<f32>>();
        if result.element == DataType::Float {
            result.floats = (0..count).map(|i| float(operator, &row(i))).collect();
        } else if operator == "Cast" && result.element != DataType::Bool {
            let whole = |i| Some(operands[0][i] as i64).filter(|&v| fits(result.element, v));
            let finite = operands[0].iter().all(|v| v.is_finite() && v.abs() < 9e18);
            result.integers = finite.then(|| (0..count).map(whole).collect());
        }
    }
    result
}

fn integer(operator: &str, node: &NodeProto, row: &[Option<i64>]) -> Option<i64> {
    if operator == "Where" {
        let &[condition, yes, no] = row else {
            return None;
        };
        return if condition? != 0 { yes } else { no };
    }
    let row: Vec<i64> = row.iter().copied().collect::<Option<_>>()?;
    let (&first, second) = (row.first()?, row.get(1).copied());
    Some(match (operator, second) {
        ("Add", Some(b)) => first.checked_add(b)?,
        ("Sub", Some(b)) => first.checked_sub(b)?,
        ("Mul", Some(b)) => first.checked_mul(b)?,
        // Truncates towards zero, as in C.
        ("Div", Some(b)) => first.checked_div(b)?,
        // Has the sign of the divisor, as in Python, unless `fmod` asks for C's.
        ("Mod", Some(b)) => {
            let rest = first.checked_rem(b)?;
            let python = node.int("fmod").unwrap_or(0) == 0;
            if python && rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            }
        }
        ("Equal", Some(b)) => (first == b).into(),
        ("Less", Some(b)) => (first < b).into(),
        ("LessOrEqual", Some(b)) => (first <= b).into(),
        ("Greater", Some(b)) => (first > b).into(),
        ("GreaterOrEqual", Some(b)) => (first >= b).into(),
        ("And", Some(b)) => (first != 0 && b != 0).into(),
        ("Or", Some(b)) => (first != 0 || b != 0).into(),
        ("Not", None) => (first == 0).into(),
        ("Neg", None) => first.checked_neg()?,
        ("Abs", None) => first.checked_abs()?,
        ("Min", _) => row.into_iter().min()?,
        ("Max", _) => row.into_iter().max()?,
        ("Cast", None) if node.int("to") == Some(DataType::Bool as i64) => (first != 0).into(),
        ("Cast" | "Identity", None) => first,
        _ => return None,
    })
}

/// Covers only operations that IEEE 754 defines to the last bit.
fn float(operator: &str, row: &[f32]) -> Option<f32> {
    let (&first, second) = (row.first()?, row.get(1).copied());
    Some(match (operator, second) {
        ("Add", Some(b)) => first + b,
        ("Sub", Some(b)) => first - b,
        ("Mul", Some(b)) => first * b,
        ("Div", Some(b)) => first / b,
        ("Neg", None) => -first,
        ("Abs", None) => first.abs(),
        ("Floor", None) => first.floor(),
        ("Ceil", None) => first.ceil(),
        ("Sqrt", None) => first.sqrt(),
        ("Cast" | "Identity", None) => first,
        _ => return None,
    })
}

/// Sizes as known dimensions.
pub(super) fn known_dims(sizes: &[usize]) -> Option<Vec<Dim>> {
    Some(sizes.iter().map(|&s| Dim::Known(s)).collect())
}
