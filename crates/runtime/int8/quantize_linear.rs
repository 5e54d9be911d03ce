//! QuantizeLinear and DequantizeLinear outside of regions, exactly as ONNX defines them. NaN, which
//! ONNX leaves open, becomes the zero point.
//!
//! tract's own operators multiply by the reciprocal of the scale, which changes ties, and support
//! eight bits only. These support every integer type of tract with per-tensor, per-channel and
//! block-wise scales.

use octet_kernels::nearest_whole;
use tract_onnx::Onnx;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::{as_op, op_as_typed_op, op_out_of_plan};
use tract_onnx::tract_hir::infer::{
    InferenceOp, InferenceResult, InferenceRulesOp, Solver, TensorProxy,
};
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::to_typed;

use octet_graph::prepare::position;

type BuiltOperator = TractResult<(Box<dyn InferenceOp>, Vec<String>)>;

/// One of the two operators.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct LinearOperator {
    quantizes: bool,
    axis: i64,
    /// 0 without blocks.
    block: usize,
    zero_point: bool,
    /// Output type of a QuantizeLinear without zero point.
    element: DatumType,
}

/// Registers both operators in place of tract's.
pub(in super::super) fn register(onnx: &mut Onnx) {
    onnx.op_register.insert("QuantizeLinear", quantize);
    onnx.op_register.insert("DequantizeLinear", dequantize);
}

fn quantize(context: &ParsingContext, node: &NodeProto) -> BuiltOperator {
    build(context, node, true)
}

fn dequantize(context: &ParsingContext, node: &NodeProto) -> BuiltOperator {
    build(context, node, false)
}

fn build(_context: &ParsingContext, node: &NodeProto, quantizes: bool) -> BuiltOperator {
    let wanted = node.get_attr_opt::<i64>("output_dtype")?.unwrap_or(0);
    // Type numbers of ONNX.
    let element = match wanted {
        3 if quantizes => DatumType::I8,
        4 if quantizes => DatumType::U16,
        5 if quantizes => DatumType::I16,
        0..=2 => DatumType::U8,
        other => bail!(
            "{}: the output type {other} (ONNX numbering) is not supported",
            node.op_type
        ),
    };
    let linear = LinearOperator {
        quantizes,
        axis: node.get_attr_opt("axis")?.unwrap_or(1),
        block: node.get_attr_opt::<i64>("block_size")?.unwrap_or(0).max(0) as usize,
        zero_point: node.input.get(2).is_some_and(|name| !name.is_empty()),
        element,
    };
    Ok((Box::new(linear), vec![]))
}

impl LinearOperator {
    fn output_type(&self, zero_point: Option<DatumType>) -> DatumType {
        match self.quantizes {
            true => zero_point.unwrap_or(self.element),
            false => DatumType::F32,
        }
    }

    /// Maps the index of an element to the index of its scale. A tensor has `outer` × `channels` ×
    /// `inner` elements, with one scale per channel or per block of an axis.
    fn scale_index(
        &self,
        shape: &[usize],
        scales: &[usize],
    ) -> TractResult<impl Fn(usize) -> usize> {
        let count: usize = scales.iter().product();
        let (inner, size, block) = if count == 1 {
            (1, 1, 1)
        } else {
            let axis = position(self.axis, shape.len()).with_context(|| {
                format!(
                    "the axis {} is out of range for the shape {shape:?}",
                    self.axis
                )
            })?;
            let inner: usize = shape[axis + 1..].iter().product();
            let block = self.block.max(1);
            let per_axis = shape[axis].div_ceil(block);
            let outer: usize = shape[..axis].iter().product();
            let wanted = if self.block > 0 {
                outer * per_axis * inner
            } else {
                per_axis
            };
            ensure!(
                count == wanted,
                "{count} scales do not fit the shape {shape:?}"
            );
            (inner.max(1), shape[axis].max(1), block)
        };
        let blocks = self.block > 0 && count > 1;
        Ok(move |place: usize| {
            if count == 1 {
                return 0;
            }
            let along = place / inner % size;
            if blocks {
                let outer = place / inner / size;
                (outer * size.div_ceil(block) + along / block) * inner + place % inner
            } else {
                along
            }
        })
    }
}

impl LinearOperator {
    /// Per-tensor quantization, in loops that the compiler vectorizes.
    fn with_one_scale(
        &self,
        input: &Tensor,
        (scale, zero_point): (f32, f32),
        result: DatumType,
    ) -> TractResult<Tensor> {
        let shape = input.shape();
        macro_rules! quantized {
            ($number:ty) => {{
                let numbers = input.cast_to::<f32>()?;
                let numbers = numbers.try_as_plain_ram()?.as_slice::<f32>()?;
                // The bounds are whole numbers, so clamping before or after the rounding is the
                // same.
                let low = <$number>::MIN as f32 - zero_point;
                let high = <$number>::MAX as f32 - zero_point;
                let one = |real: &f32| {
                    let steps = real / scale;
                    let steps = if steps.is_nan() {
                        0.0
                    } else {
                        steps.clamp(low, high)
                    };
                    (nearest_whole(steps) + zero_point) as $number
                };
                Tensor::from_shape(shape, &numbers.iter().map(one).collect::<Vec<$number>>())
            }};
        }
        macro_rules! dequantized {
            ($number:ty) => {{
                let numbers = input.try_as_plain_ram()?.as_slice::<$number>()?;
                let zero_point = zero_point as i32;
                let one = |&integer: &$number| (i32::from(integer) - zero_point) as f32 * scale;
                Tensor::from_shape(shape, &numbers.iter().map(one).collect::<Vec<f32>>())
            }};
        }
        match (self.quantizes, result, input.datum_type()) {
            (true, DatumType::U8, _) => quantized!(u8),
            (true, DatumType::I8, _) => quantized!(i8),
            (true, DatumType::U16, _) => quantized!(u16),
            (true, DatumType::I16, _) => quantized!(i16),
            (true, other, _) => bail!("QuantizeLinear to {other:?} is not supported"),
            (false, _, DatumType::U8) => dequantized!(u8),
            (false, _, DatumType::I8) => dequantized!(i8),
            (false, _, DatumType::U16) => dequantized!(u16),
            (false, _, DatumType::I16) => dequantized!(i16),
            (false, ..) => {
                let numbers = input.cast_to::<i64>()?;
                let numbers = numbers.try_as_plain_ram()?.as_slice::<i64>()?;
                let one = |integer: &i64| (integer - zero_point as i64) as f32 * scale;
                Tensor::from_shape(shape, &numbers.iter().map(one).collect::<Vec<f32>>())
            }
        }
    }
}

impl Op for LinearOperator {
    fn name(&self) -> StaticName {
        match self.quantizes {
            true => "QuantizeLinear".into(),
            false => "DequantizeLinear".into(),
        }
    }

    op_as_typed_op!();
}

impl EvalOp for LinearOperator {
    op_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let shape = inputs[0].shape().to_vec();
        let place = self.scale_index(&shape, inputs[1].shape())?;
        let scales = inputs[1].cast_to::<f32>()?;
        let scales = scales.try_as_plain_ram()?.as_slice::<f32>()?;
        ensure!(!scales.is_empty(), "the scale is empty");
        let result = self.output_type(inputs.get(2).map(|z| z.datum_type()));
        let zero_points: Vec<f32> = match inputs.get(2) {
            Some(numbers) => {
                let numbers = numbers.cast_to::<f32>()?;
                numbers.try_as_plain_ram()?.as_slice::<f32>()?.to_vec()
            }
            None => vec![0.0; scales.len()],
        };
        let zero_point = |at: usize| match zero_points.len() {
            1 => zero_points[0],
            _ => zero_points.get(at).copied().unwrap_or(0.0),
        };
        ensure!(
            zero_points.len() == scales.len() || zero_points.len() == 1,
            "{} zero points for {} scales",
            zero_points.len(),
            scales.len()
        );
        if scales.len() == 1 {
            let one = (scales[0], zero_point(0));
            return Ok(tvec!(
                self.with_one_scale(&inputs[0], one, result)?.into_tvalue()
            ));
        }
        let computed: Vec<f32> = if self.quantizes {
            let (low, high) = match result {
                DatumType::U8 => (0.0, 255.0),
                DatumType::I8 => (-128.0, 127.0),
                DatumType::U16 => (0.0, 65535.0),
                DatumType::I16 => (-32768.0, 32767.0),
                other => bail!("QuantizeLinear to {other:?} is not supported"),
            };
            let numbers = inputs[0].cast_to::<f32>()?;
            let numbers = numbers.try_as_plain_ram()?.as_slice::<f32>()?;
            let one = |(index, &real): (usize, &f32)| {
                let at = place(index);
                let steps = (real / scales[at]).round_ties_even() + zero_point(at);
                if steps.is_nan() {
                    zero_point(at)
                } else {
                    steps.clamp(low, high)
                }
            };
            numbers.iter().enumerate().map(one).collect()
        } else {
            // In 64 bits, where differences of 32-bit integers are exact.
            let numbers = inputs[0].cast_to::<i64>()?;
            let numbers = numbers.try_as_plain_ram()?.as_slice::<i64>()?;
            let one = |(index, &integer): (usize, &i64)| {
                let at = place(index);
                (integer - zero_point(at) as i64) as f32 * scales[at]
            };
            numbers.iter().enumerate().map(one).collect()
        };
        let reals = Tensor::from_shape(&shape, &computed)?;
        Ok(tvec!(reals.cast_to_dt(result)?.into_owned().into_tvalue()))
    }
}

impl TypedOp for LinearOperator {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let result = self.output_type(inputs.get(2).map(|fact| fact.datum_type));
        Ok(tvec!(result.fact(inputs[0].shape.clone())))
    }

    as_op!();
}

impl InferenceRulesOp for LinearOperator {
    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        let arity = if self.zero_point { 3 } else { 2 };
        ensure!(
            inputs.len() >= arity,
            "{} takes {arity} inputs",
            self.name()
        );
        match (self.quantizes, self.zero_point) {
            (true, true) => solver.equals(&inputs[2].datum_type, &outputs[0].datum_type)?,
            (true, false) => solver.equals(&outputs[0].datum_type, self.element)?,
            (false, _) => solver.equals(&outputs[0].datum_type, DatumType::F32)?,
        }
        solver.equals(&inputs[0].shape, &outputs[0].shape)
    }

    as_op!();
    to_typed!();
}
