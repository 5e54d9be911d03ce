//! Pad with all features of ONNX. tract reads a constant as the mode if both are present, and
//! supports neither negative pads nor wrap.

use tract_onnx::Onnx;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::ops::array::{Gather, Pad as Padded, PadMode, Slice};
use tract_onnx::tract_hir::internal::*;

use crate::operator_inputs::{BuildResult, axis_of, integers};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mode {
    Constant,
    Reflect,
    Edge,
    Wrap,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pad {
    mode: Mode,
    /// The input slots of the constant and of the axes.
    constant: Option<usize>,
    axes: Option<usize>,
}

pub(super) fn register(onnx: &mut Onnx) {
    onnx.op_register.insert("Pad", build);
}

fn build(_context: &ParsingContext, node: &NodeProto) -> BuildResult {
    let mode = match node.get_attr_opt::<&str>("mode")? {
        None | Some("constant") => Mode::Constant,
        Some("reflect") => Mode::Reflect,
        Some("edge") => Mode::Edge,
        Some("wrap") => Mode::Wrap,
        Some(other) => {
            bail!("its mode `{other}` is not supported; use constant, reflect, edge or wrap")
        }
    };
    let mut optional = tract_onnx::model::optional_inputs(node).skip(2);
    let pad = Pad {
        mode,
        constant: optional.next().flatten(),
        axes: optional.next().flatten(),
    };
    Ok((expand(pad), vec![]))
}

/// Pads before and behind each axis; negative values crop.
fn around(pads: &[i64], axes: Option<&[i64]>, rank: usize) -> TractResult<Vec<[i64; 2]>> {
    let axes = match axes {
        Some(axes) => axes.iter().map(|&axis| axis_of(axis, rank)).collect(),
        None => Ok((0..rank).collect::<Vec<usize>>()),
    }?;
    ensure!(
        pads.len() == 2 * axes.len(),
        "it has {} pads for {} axes and must have two for each",
        pads.len(),
        axes.len()
    );
    let mut around = vec![[0; 2]; rank];
    for (place, &axis) in axes.iter().enumerate() {
        around[axis] = [pads[place], pads[place + axes.len()]];
    }
    Ok(around)
}

impl Expansion for Pad {
    fn name(&self) -> StaticName {
        "Pad".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        let optional = [self.constant, self.axes];
        check_input_arity(inputs, 2 + optional.iter().flatten().count())?;
        check_output_arity(outputs, 1)?;
        solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)?;
        solver.equals(&inputs[0].rank, &outputs[0].rank)?;
        let given = [Some(1), self.axes].into_iter().flatten();
        let given: Vec<_> = given.map(|slot| &inputs[slot].value).collect();
        solver.given_all(given, move |solver, given: Vec<Arc<Tensor>>| {
            let axes = given.get(1).map(|axes| integers(axes)).transpose()?;
            // Symbolic sizes have no numeric value.
            let Ok(pads) = integers(&given[0]) else {
                return Ok(());
            };
            solver.given(&inputs[0].rank, move |solver, rank| {
                let around = around(&pads, axes.as_deref(), rank as usize)?;
                for (axis, [before, after]) in around.into_iter().enumerate() {
                    let padded = inputs[0].shape[axis].bex() + (before + after).to_dim();
                    solver.equals(&outputs[0].shape[axis], padded)?;
                }
                Ok(())
            })
        })
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let constant = |slot: usize, what: &str| -> TractResult<Arc<Tensor>> {
            let value = model.outlet_fact(inputs[slot])?.konst.clone();
            value.with_context(|| format!("its {what} depends on values of the run"))
        };
        let pads = integers(&*constant(1, "padding")?)?;
        let axes = self.axes.map(|slot| constant(slot, "axes")).transpose()?;
        let axes = axes.map(|axes| integers(&axes)).transpose()?;
        let filled = self.constant.filter(|_| self.mode == Mode::Constant);
        let filled = filled.map(|slot| constant(slot, "value")).transpose()?;
        let shape = model.outlet_fact(inputs[0])?.shape.clone();
        let around = around(&pads, axes.as_deref(), shape.rank())?;
        let mut wire = inputs[0];
        for (axis, &[before, after]) in around.iter().enumerate() {
            // Crop first, then pad.
            if before < 0 || after < 0 {
                let kept = Slice::new(axis, -before.min(0), shape[axis].clone() + after.min(0));
                wire = model.wire_node(format!("{prefix}.cut_{axis}"), kept, &[wire])?[0];
            }
            if self.mode == Mode::Wrap && before.max(after) > 0 {
                let size = model.outlet_fact(wire)?.shape[axis].to_i64();
                let size =
                    size.context("the size of the wrapped axis depends on values of the run")?;
                ensure!(size > 0, "axis {axis} is empty and can't be wrapped");
                let places = -before.max(0)..size + after.max(0);
                let places: Vec<i64> = places.map(|place| place.rem_euclid(size)).collect();
                let places =
                    model.add_const(format!("{prefix}.places_{axis}"), tensor1(&places))?;
                let name = format!("{prefix}.wrapped_{axis}");
                wire = model.wire_node(name, Gather::new(axis), &[wire, places])?[0];
            }
        }
        let put = |[before, after]: [i64; 2]| (before.max(0) as usize, after.max(0) as usize);
        let pads = match self.mode {
            Mode::Wrap => vec![(0, 0); around.len()],
            _ => around.into_iter().map(put).collect(),
        };
        let mode = match (self.mode, filled) {
            (Mode::Reflect, _) => PadMode::Reflect,
            (Mode::Edge, _) => PadMode::Edge,
            (_, Some(value)) => {
                ensure!(
                    value.len() == 1,
                    "its constant has {} elements and must have one",
                    value.len()
                );
                PadMode::Constant(value.into_tensor().into_shape(&[])?.into_arc_tensor())
            }
            _ => PadMode::default(),
        };
        model.wire_node(prefix, Padded { pads, mode }, &[wire])
    }
}
