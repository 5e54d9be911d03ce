//! One layer of a run: the closed form and the fine-tuning propose, held-out positions judge.

use octet_onnx::schema::TensorProto;

use crate::TuneError;
use crate::closed_form::{ClosedForm, Freedom};
use crate::learn::learn;
use crate::learned_part::{GIVEN, LayerReport, TunedPart};
use crate::problem::{LayerProblem, positions_within};
use crate::solution::Solution;
use crate::tuning::{GAIN, Tuning};

impl Tuning {
    /// The constants of a layer.
    pub(crate) fn layer(
        &self,
        place: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Vec<TensorProto>, LayerReport), TuneError> {
        let (layer, options) = (&self.layers[place], &self.options);
        let (weights, bias) = layer.floats(&self.float.graph)?;
        let given = layer.solution(&self.quantized.graph)?;
        let seed = options.seed.wrapping_add(place as u64);
        let outputs = layer.rows.outputs();
        let (groups, inputs) = (layer.rows.view().groups(), layer.rows.inputs());
        let positions = positions_within(
            groups,
            inputs,
            outputs / groups.max(1),
            options.layer_values,
        );
        let bias = bias.unwrap_or_default();
        let frontiers = (&self.originals, &self.integers);
        let mut problem = LayerProblem::gather(
            layer,
            [weights, bias],
            frontiers,
            &self.store,
            positions,
            seed,
        )?;
        problem.output = layer.output.filter(|_| options.output_qdq);
        let judged = |solution: &Solution| -> Result<f64, TuneError> {
            let losses = problem.losses(&problem.judged, solution)?;
            Ok(losses.iter().sum::<f64>() / losses.len().max(1) as f64)
        };
        let before = judged(&given)?;
        let mut best = (before, given, GIVEN);
        let mut propose = |solution: Solution, name: &'static str| -> Result<(), TuneError> {
            let loss = judged(&solution)?;
            if loss < best.0 * (1.0 - GAIN) {
                best = (loss, solution, name);
            }
            Ok(())
        };
        if options.closed_form {
            let given = layer.solution(&self.quantized.graph)?;
            let (ends, zero_points) = (layer.ends, &layer.zero_points);
            let closed_form = ClosedForm::new(&problem, ends, zero_points, layer.per_output)?;
            let proposals = [
                (0.0, false),
                (0.5, false),
                (1.0, false),
                (0.5, true),
                (1.0, true),
            ];
            for (shift, scales) in proposals {
                if stop() {
                    return Err(TuneError::Stopped);
                }
                let freedom = Freedom {
                    shift,
                    scales,
                    refit: scales,
                };
                let solved = closed_form.solve(&given, freedom)?;
                propose(solved, "closed form")?;
            }
        }
        let mut curve = Vec::new();
        if options.learn && !self.in_block(place) {
            let from = best.1.clone();
            let how = (options, seed, layer.per_output);
            let learned = learn(&problem, &from, layer.ends, &layer.zero_points, how, stop)?;
            curve = learned.curve;
            let loss = judged(&learned.solution)?;
            if loss < best.0 * (1.0 - GAIN) {
                best = (loss, learned.solution, "learned");
            }
        }
        let (after, solution, taken) = best;
        let report = LayerReport {
            part: TunedPart::Layer,
            layer: layer.title.clone(),
            operator: layer.operator.clone(),
            taken: taken.into(),
            before,
            after,
            curve,
        };
        let constants = match taken {
            GIVEN => Vec::new(),
            _ => layer.constants(&solution, layer.input_scale),
        };
        Ok((constants, report))
    }
}
