//! Nearest Resize. tract computes positions differently and sometimes takes a neighbouring pixel.
//! tract determines the output size; the pixels follow the same formula as in integer regions.

use octet_kernels::int8::select;
use tract_onnx::Onnx;
use tract_onnx::model::{ParsingContext, optional_inputs};
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::ops::nn::NearestUpsample;
use tract_onnx::tract_core::{as_op, op_as_typed_op, op_out_of_plan};
use tract_onnx::tract_hir::internal::*;

use crate::operator_inputs::{BuildResult, integers};
use octet_int8::{ResizeSampling, ResizeTarget};

/// A name for tract's own Resize, which no model contains.
const TRACT_RESIZE: &str = "OctetResizeOfTract";

pub(super) fn register(onnx: &mut Onnx) {
    let operators = &mut onnx.op_register;
    if let Some(tract_resize) = operators.0.get("Resize").copied() {
        operators.insert(TRACT_RESIZE, tract_resize);
        operators.insert("Resize", build);
    }
}

fn build(context: &ParsingContext, node: &NodeProto) -> BuildResult {
    let tract_resize = context.framework.op_register.0.get(TRACT_RESIZE);
    let tract_resize = tract_resize.context("Resize is not among tract's operators")?;
    let (tract_resize, closures) = tract_resize(context, node)?;
    let nearest = node.get_attr_opt::<&str>("mode")?.unwrap_or("nearest") == "nearest";
    let pixels = ResizeSampling::parse(
        node.get_attr_opt("coordinate_transformation_mode")?,
        node.get_attr_opt("nearest_mode")?,
    );
    let (Ok(pixels), true) = (pixels, nearest) else {
        return Ok((tract_resize, closures));
    };
    let Some(expansion) = tract_resize
        .as_op()
        .downcast_ref::<Box<dyn Expansion>>()
        .cloned()
    else {
        return Ok((tract_resize, closures));
    };
    let mut optional = optional_inputs(node).skip(2);
    let resize = NearestResize {
        tract_resize: expansion,
        pixels,
        axes: node.get_attr_opt_vec("axes")?,
        policy: node.get_attr_opt("keep_aspect_ratio_policy")?,
        scales: optional.next().flatten(),
        sizes: optional.next().flatten(),
    };
    Ok((expand(resize), closures))
}

#[derive(Clone, Debug)]
struct NearestResize {
    tract_resize: Box<dyn Expansion>,
    pixels: ResizeSampling,
    axes: Option<Vec<i64>>,
    policy: Option<String>,
    /// The input slots.
    scales: Option<usize>,
    sizes: Option<usize>,
}

impl NearestResize {
    /// The input index of each output index, per axis, if all are known.
    fn places(
        &self,
        model: &TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<Option<Vec<Vec<Option<usize>>>>> {
        // tract computes the output size in a separate model.
        let mut alone = TypedModel::default();
        let source = |(at, &input): (usize, &OutletId)| {
            let fact = model.outlet_fact(input)?.clone();
            alone.add_source(format!("input_{at}"), fact)
        };
        let sources = inputs.iter().enumerate().map(source);
        let sources = sources.collect::<TractResult<Vec<_>>>()?;
        let made = self.tract_resize.wire("resize", &mut alone, &sources)?[0];
        let known = |slot: Option<usize>| -> TractResult<Option<Arc<Tensor>>> {
            let fact = slot
                .map(|slot| model.outlet_fact(inputs[slot]))
                .transpose()?;
            Ok(fact.and_then(|fact| fact.konst.clone()))
        };
        let (scales, sizes) = (known(self.scales)?, known(self.sizes)?);
        let fact = model.outlet_fact(inputs[0])?;
        let shape = fact.shape.as_concrete();
        let output = alone.outlet_fact(made)?.shape.as_concrete();
        let (Some(shape), Some(output)) = (shape, output) else {
            return Ok(None);
        };
        let whole = scales.is_some() == self.scales.is_some()
            && sizes.is_some() == self.sizes.is_some()
            && (scales.is_some() || sizes.is_some());
        if !whole || !TYPES.contains(&fact.datum_type) {
            return Ok(None);
        }
        let target = ResizeTarget {
            axes: self.axes.clone(),
            scales: match scales {
                Some(scales) => {
                    let scales = scales.cast_to::<f32>()?;
                    scales.try_as_plain_ram()?.as_slice::<f32>()?.to_vec()
                }
                None => Vec::new(),
            },
            sizes: sizes.map(|sizes| integers(&sizes)).transpose()?,
            policy: self.policy.clone(),
        };
        let scales = target.scales(shape, output).ok();
        Ok(scales.map(|scales| self.pixels.nearest(shape, output, &scales)))
    }
}

impl Expansion for NearestResize {
    fn name(&self) -> StaticName {
        "Resize".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        self.tract_resize.rules(solver, inputs, outputs)
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let Some(places) = self.places(model, inputs)? else {
            return self.tract_resize.wire(prefix, model, inputs);
        };
        let shape = model.outlet_fact(inputs[0])?.shape.as_concrete();
        let sides = places.iter().zip(shape.unwrap_or_default());
        let times: Option<TVec<usize>> = sides.map(|(of, &size)| repeated(of, size)).collect();
        match times.filter(|times| times.iter().any(|&times| times > 1)) {
            // tract's kernel is faster for whole factors.
            Some(scales) => model.wire_node(prefix, NearestUpsample { scales }, &inputs[..1]),
            None => model.wire_node(prefix, PixelSelection { places }, &inputs[..1]),
        }
    }
}

/// Returns the factor if each index of an axis repeats equally often, in order.
fn repeated(places: &[Option<usize>], size: usize) -> Option<usize> {
    let times = places.len().checked_div(size)?;
    let whole = times > 0 && times * size == places.len();
    let same = |(at, place): (usize, &Option<usize>)| *place == Some(at / times);
    (whole && places.iter().enumerate().all(same)).then_some(times)
}

/// The element types that [`PixelSelection`] supports.
const TYPES: [DatumType; 5] = [
    DatumType::F32,
    DatumType::F16,
    DatumType::U8,
    DatumType::I8,
    DatumType::I32,
];

/// Selects these indices of each axis of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PixelSelection {
    places: Vec<Vec<Option<usize>>>,
}

impl PixelSelection {
    fn select_pixels<T: Datum + Copy + Default>(&self, input: &Tensor) -> TractResult<Tensor> {
        let shape: Vec<usize> = self.places.iter().map(Vec::len).collect();
        let mut made = Tensor::zero_dt(T::datum_type(), &shape)?;
        let from = input.try_as_plain_ram()?;
        let mut view = made.try_as_plain_ram_mut()?;
        let to = view.as_slice_mut::<T>()?;
        select(
            from.as_slice::<T>()?,
            input.shape(),
            &self.places,
            T::default(),
            to,
        )?;
        Ok(made)
    }
}

impl Op for PixelSelection {
    fn name(&self) -> StaticName {
        "Resize".into()
    }

    op_as_typed_op!();
}

impl EvalOp for PixelSelection {
    op_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let input = &inputs[0];
        let made = match input.datum_type() {
            DatumType::F32 => self.select_pixels::<f32>(input),
            DatumType::F16 => self.select_pixels::<f16>(input),
            DatumType::U8 => self.select_pixels::<u8>(input),
            DatumType::I8 => self.select_pixels::<i8>(input),
            DatumType::I32 => self.select_pixels::<i32>(input),
            other => bail!("a nearest Resize of {other:?} is not supported"),
        };
        Ok(tvec!(made?.into_tvalue()))
    }
}

impl TypedOp for PixelSelection {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let shape: Vec<usize> = self.places.iter().map(Vec::len).collect();
        Ok(tvec!(inputs[0].datum_type.fact(&shape)))
    }

    as_op!();
}
