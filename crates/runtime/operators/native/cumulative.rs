//! CumProd: products of the elements up to each position of an axis.

use std::ops::Mul;

use tract_onnx::tract_hir::internal::*;

use super::{NativeCall, NativeKernel};
use crate::operator_inputs::axis_of;
use octet_graph::prepare::count;

/// The operators of this file.
pub(super) static KERNELS: &[NativeKernel] = &[NativeKernel::bytes("CumProd", product)];

/// Multiplies the elements up to each position, or from it on if the attribute `reverse` is set.
/// The attribute `exclusive` leaves out the element at the position.
fn product(call: &NativeCall, made: &mut [u8]) -> TractResult<()> {
    match call.tensor(0)?.datum_type() {
        DatumType::F32 => products(call, made, 1.0f32, f32::mul),
        DatumType::F64 => products(call, made, 1.0f64, f64::mul),
        DatumType::I32 => products(call, made, 1i32, i32::wrapping_mul),
        DatumType::I64 => products(call, made, 1i64, i64::wrapping_mul),
        DatumType::U32 => products(call, made, 1u32, u32::wrapping_mul),
        DatumType::U64 => products(call, made, 1u64, u64::wrapping_mul),
        other => bail!("its elements have type {other:?} and must be 32- or 64-bit numbers"),
    }
}

fn products<T: Datum + Copy>(
    call: &NativeCall,
    made: &mut [u8],
    one: T,
    multiply: fn(T, T) -> T,
) -> TractResult<()> {
    let input = call.tensor(0)?;
    let source = input.try_as_plain_ram()?.as_slice::<T>()?;
    let shape = input.shape();
    let axis = call.integers(1)?;
    let axis = axis.first().context("its axis is missing")?;
    let axis = axis_of(*axis, shape.len())?;
    let flag = |name: &str| call.node.int(name).unwrap_or(0) != 0;
    let (exclusive, reverse) = (flag("exclusive"), flag("reverse"));
    let (steps, behind) = (shape[axis], count(&shape[axis + 1..]));
    let mut results = source.to_vec();
    for start in 0..source.len() / steps.max(1) {
        let first = start / behind * behind * steps + start % behind;
        let mut total = one;
        for step in 0..steps {
            let place = first + behind * if reverse { steps - 1 - step } else { step };
            let with_own = multiply(total, source[place]);
            results[place] = if exclusive { total } else { with_own };
            total = with_own;
        }
    }
    let results = Tensor::from_shape(shape, &results)?;
    made.copy_from_slice(results.try_as_plain_ram()?.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Engine;
    use crate::operators::test_models::{Beside, model, node};
    use octet_onnx::in_memory::{Tensor, Values};
    use octet_onnx::schema::AttributeProto;

    fn products(flags: &[&str], axis: i64) -> Vec<f32> {
        let flag = |name: &&str| AttributeProto::int(name, 1);
        let node = flags
            .iter()
            .map(flag)
            .fold(node("CumProd"), |node, flag| node.with(flag));
        let engine = Engine::new(model(node, &[2, 3], &[Beside::Integers(&[axis])]), vec![]);
        let values = Values::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let fed = Tensor::new(vec![2, 3], values).unwrap();
        let outputs = engine.run(&[fed], |_, _| {}, || false).unwrap();
        outputs[0].as_f32().unwrap().to_vec()
    }

    /// Expected values from ONNX Runtime 1.31.
    #[test]
    fn products_accumulate_along_the_axis() {
        assert_eq!(products(&[], 1), [1.0, 2.0, 6.0, 4.0, 20.0, 120.0]);
        assert_eq!(products(&[], -2), [1.0, 2.0, 3.0, 4.0, 10.0, 18.0]);
        assert_eq!(products(&["exclusive"], 1), [1.0, 1.0, 2.0, 1.0, 4.0, 20.0]);
        assert_eq!(products(&["reverse"], 1), [6.0, 6.0, 3.0, 120.0, 30.0, 6.0]);
        let both = products(&["reverse", "exclusive"], 1);
        assert_eq!(both, [6.0, 3.0, 1.0, 30.0, 6.0, 1.0]);
    }
}
