//! DynamicQuantizeLSTM as an LSTM with dequantized weights.
//!
//! ONNX Runtime also quantizes the activations at every time step, which no ONNX operator
//! expresses. Here they stay float, so the result is closer to the float model.

use super::{Decomposer, Decomposition};
use octet_graph::{Graph, Model, Node};
use octet_onnx::schema::TensorProto;

pub(super) const DECOMPOSITIONS: &[Decomposition] = &[Decomposition {
    operators: &["com.microsoft::DynamicQuantizeLSTM"],
    rewrite: Decomposer::recurrent,
}];

/// Operator of ONNX Runtime's domain.
pub(super) const OPERATOR: &str = "DynamicQuantizeLSTM";

/// Number of inputs that it shares with LSTM; scale and zero point of both weights follow.
const SHARED: usize = 8;

impl Decomposer {
    fn recurrent(&mut self, node: &Node, model: &Model) -> Option<()> {
        let names = [1, 2].map(|slot| {
            let of = node.input_at(slot).unwrap_or_default();
            self.steps.names.fresh(&format!("{of}_as_floats"))
        });
        let (lstm, weights) = lstm_node(node, &model.graph, names)?;
        self.steps.nodes.push(lstm);
        self.steps.constants.extend(weights);
        Some(())
    }
}

/// Builds the LSTM and its two weights under the given names; `None` if the weights are not
/// constant or sizes do not fit.
fn lstm_node(node: &Node, graph: &Graph, names: [String; 2]) -> Option<(Node, [TensorProto; 2])> {
    let weight = |at: usize, name: &str| {
        let slot = |slot: usize| graph.initializers.get(node.input_at(slot)?);
        let behind = SHARED + 2 * at;
        dequantized(slot(1 + at)?, slot(behind)?, slot(behind + 1), name)
    };
    let weights = [weight(0, &names[0])?, weight(1, &names[1])?];
    let mut input = node.input.clone();
    input.truncate(SHARED);
    let [forward, recurrent] = names;
    (input[1], input[2]) = (forward, recurrent);
    while input.last().is_some_and(String::is_empty) {
        input.pop();
    }
    let lstm = Node {
        op_type: "LSTM".into(),
        domain: None,
        input,
        ..node.clone()
    };
    Some((lstm, weights))
}

/// Dequantizes integers of layout [directions, inputs, rows of all gates] into an LSTM's layout
/// [directions, rows, inputs]. Scales and zero points are per row, per direction or per tensor.
fn dequantized(
    integers: &TensorProto,
    scale: &TensorProto,
    zero_point: Option<&TensorProto>,
    name: &str,
) -> Option<TensorProto> {
    let &[directions, inputs, rows] = integers.shape().ok()?.as_slice() else {
        return None;
    };
    let values = integers.to_i64().ok()?;
    let scales = scale.to_f32().ok()?;
    let zero_points = match zero_point {
        Some(tensor) => tensor.to_i64().ok()?,
        None => vec![0; scales.len()],
    };
    let each = directions.checked_mul(rows)?;
    let known = [1, directions, each].contains(&scales.len());
    if !known || zero_points.len() != scales.len() || values.len() != each.checked_mul(inputs)? {
        return None;
    }
    let place = |direction: usize, row: usize| match scales.len() {
        1 => 0,
        count if count == each => direction * rows + row,
        _ => direction,
    };
    let mut reals = Vec::with_capacity(values.len());
    for direction in 0..directions {
        for row in 0..rows {
            let place = place(direction, row);
            reals.extend((0..inputs).map(|input| {
                let value = values[(direction * inputs + input) * rows + row];
                (value - zero_points[place]) as f32 * scales[place]
            }));
        }
    }
    Some(TensorProto::from_f32(
        name,
        &[directions, rows, inputs],
        &reals,
    ))
}
