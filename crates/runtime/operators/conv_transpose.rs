//! ConvTranspose with ONNX Runtime's padding. With an explicit output shape, tract crops at the
//! opposite end, and it doesn't combine that with automatic padding.

use tract_onnx::Onnx;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::ops::cnn::{Deconv, KernelFormat, PaddingSpec, PoolSpec};
use tract_onnx::tract_core::ops::nn::DataFormat;
use tract_onnx::tract_hir::internal::*;

use crate::operator_inputs::BuildResult;
use octet_graph::{Around, SlidingWindow};

/// The attributes of a node, without its kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConvTranspose {
    strides: Option<TVec<usize>>,
    dilations: Option<TVec<usize>>,
    pads: Option<TVec<usize>>,
    automatic: Option<Automatic>,
    extra: Option<TVec<usize>>,
    output_shape: Option<TVec<usize>>,
    group: usize,
    biased: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Automatic {
    Upper,
    Lower,
    Valid,
}

/// Elements cropped before and after an axis, and elements appended.
#[derive(Clone, Copy)]
struct Crop {
    before: usize,
    after: usize,
    extra: usize,
    output: usize,
}

pub(super) fn register(onnx: &mut Onnx) {
    onnx.op_register.insert("ConvTranspose", build);
}

fn build(_context: &ParsingContext, node: &NodeProto) -> BuildResult {
    let automatic = match node.get_attr_opt::<&str>("auto_pad")? {
        Some("SAME_UPPER") => Some(Automatic::Upper),
        Some("SAME_LOWER") => Some(Automatic::Lower),
        Some("VALID") => Some(Automatic::Valid),
        _ => None,
    };
    let operator = ConvTranspose {
        strides: node.get_attr_opt_tvec("strides")?,
        dilations: node.get_attr_opt_tvec("dilations")?,
        pads: node.get_attr_opt_tvec("pads")?,
        automatic,
        extra: node.get_attr_opt_tvec("output_padding")?,
        output_shape: node.get_attr_opt_tvec("output_shape")?,
        group: node.get_attr_opt("group")?.unwrap_or(1),
        biased: node.input.get(2).is_some_and(|bias| !bias.is_empty()),
    };
    Ok((expand(operator), vec![]))
}

impl ConvTranspose {
    /// The window along an axis, for a kernel of these sizes.
    fn window(&self, kernel: &[usize], axis: usize) -> SlidingWindow {
        let number = |list: &Option<TVec<usize>>, at: usize, usual: usize| {
            list.as_ref().and_then(|l| l.get(at)).map_or(usual, |&v| v) as i64
        };
        SlidingWindow {
            taps: kernel[axis] as i64,
            stride: number(&self.strides, axis, 1),
            dilation: number(&self.dilations, axis, 1),
            around: match self.automatic {
                Some(Automatic::Upper) => Around::Upper,
                Some(Automatic::Lower) => Around::Lower,
                Some(Automatic::Valid) => Around::Fixed(0, 0),
                None => Around::Fixed(
                    number(&self.pads, axis, 0),
                    number(&self.pads, axis + kernel.len(), 0),
                ),
            },
        }
    }

    fn cut(&self, kernel: &[usize], axis: usize, size: usize) -> TractResult<Crop> {
        let window = self.window(kernel, axis);
        let extra = self.extra.as_ref().and_then(|extra| extra.get(axis));
        let extra = extra.map_or(0, |&extra| extra as i64);
        let output_shape = self
            .output_shape
            .as_ref()
            .and_then(|output_shape| output_shape.get(axis));
        let (before, output) = match output_shape {
            Some(&output_shape) => window.output_of_size(output_shape as i64, size as i64, extra),
            None => window.output(size as i64, extra),
        };
        let spread = window.full_output(size as i64, extra);
        // With an explicit output size, positions beyond the result hold only the bias.
        let after = spread - before - output;
        let number = |value: i64| {
            usize::try_from(value).with_context(|| {
                format!(
                    "the output has {spread} elements on axis {axis} for an input of {size}, and its padding would remove all of them"
                )
            })
        };
        Ok(Crop {
            before: number(before)?,
            after: number(after.max(0))?,
            extra: number(extra - after.min(0))?,
            output: number(output)?,
        })
    }
}

impl Expansion for ConvTranspose {
    fn name(&self) -> StaticName {
        "ConvTranspose".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        check_input_arity(inputs, if self.biased { 3 } else { 2 })?;
        check_output_arity(outputs, 1)?;
        for input in inputs {
            solver.equals(&outputs[0].datum_type, &input.datum_type)?;
        }
        let (input, weight, output) = (&inputs[0], &inputs[1], &outputs[0]);
        solver.equals(&input.rank, &weight.rank)?;
        solver.equals(&input.rank, &output.rank)?;
        solver.equals(&output.shape[0], &input.shape[0])?;
        solver.equals(&input.shape[1], &weight.shape[0])?;
        solver.equals(&output.shape[1], self.group as i64 * weight.shape[1].bex())?;
        if self.biased {
            solver.equals(&inputs[2].rank, 1)?;
            solver.equals(&inputs[2].shape[0], &output.shape[1])?;
        }
        solver.given(&weight.shape, move |solver, weight| {
            let kernel: Result<Vec<usize>, _> = weight.iter().skip(2).map(TDim::to_usize).collect();
            // A computed weight may have any shape.
            let Ok(kernel) = kernel else { return Ok(()) };
            for axis in 0..kernel.len() {
                let kernel = kernel.clone();
                solver.given(&inputs[0].shape[axis + 2], move |solver, size| {
                    match size.to_usize() {
                        Ok(size) => {
                            let output = self.cut(&kernel, axis, size)?.output;
                            solver.equals(&outputs[0].shape[axis + 2], output.to_dim())
                        }
                        Err(_) => Ok(()),
                    }
                })?;
            }
            Ok(())
        })
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let fact = model.outlet_fact(inputs[0])?.clone();
        let sizes = fact.shape.as_concrete();
        let sizes = sizes.context("the shape of its input depends on values of the run")?;
        let weight = model.outlet_fact(inputs[1])?.shape.clone();
        let weight = weight.as_concrete();
        let weight = weight.context("the shape of its weight depends on values of the run")?;
        let kernel = &weight[2..];
        let cuts = sizes[2..].iter().enumerate();
        let cuts = cuts.map(|(axis, &size)| self.cut(kernel, axis, size));
        let cuts = cuts.collect::<TractResult<TVec<Crop>>>()?;
        let all = |of: fn(&Crop) -> usize| cuts.iter().map(of).collect::<TVec<usize>>();
        let slides: TVec<SlidingWindow> = (0..kernel.len())
            .map(|axis| self.window(kernel, axis))
            .collect();
        let window = PoolSpec::new(
            DataFormat::NCHW,
            kernel.into(),
            PaddingSpec::Explicit(all(|cut| cut.before), all(|cut| cut.after)),
            Some(
                slides
                    .iter()
                    .map(|window| window.dilation as usize)
                    .collect(),
            ),
            Some(slides.iter().map(|window| window.stride as usize).collect()),
            weight[0],
            weight[1] * self.group,
        );
        // ONNX orders the weight as [groups · inputs, outputs of a group]; tract wants [groups ·
        // outputs, inputs of a group].
        let name = |part: &str| format!("{prefix}.weight_{part}");
        let parted = AxisOp::wire_split_axis(model, name("groups"), inputs[1], 0, self.group)?;
        let turned = model.wire_node(name("turned"), AxisOp::Move(1, 2), &parted)?;
        let joined = AxisOp::wire_collapse_axis(model, name("joined"), turned[0], 0)?;
        let bias = match inputs.get(2).filter(|_| self.biased) {
            Some(&bias) => bias,
            None => {
                let none = Tensor::zero_scalar_dt(fact.datum_type)?;
                model.add_const(format!("{prefix}.bias"), none)?
            }
        };
        let deconv = Deconv::new(window, KernelFormat::OIHW, all(|cut| cut.extra), self.group);
        model.wire_node(prefix, deconv, &[inputs[0], joined[0], bias])
    }
}
